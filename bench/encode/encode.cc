// Question: how long does a profile of 100,000 stacks of 30 frames, with names, take to become
// profile.proto, before gzip and with it? PprofEncoder against protobuf's own C++ code, which is
// given the same tables and builds the same message; and with gzip against zlib at level 1. Each
// answer is read back once and compared.
#include <time.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profiles.h"
#ifdef STROBE_BENCH_PROTOBUF
#include "profile.pb.h"
#endif

namespace strobe {
namespace {

constexpr std::size_t kStacks = 100'000;
constexpr std::size_t kDepth = 30;
constexpr std::size_t kFrames = 50'000;

// Stacks that share 26 frames with the one before, as those of one thread do, and stacks that share
// nothing but by chance.
const testing::SampleProfile& Input(bool is_shared) {
  static const testing::SampleProfile shared = testing::RandomProfile(kStacks, kDepth, 26, kFrames);
  static const testing::SampleProfile random = testing::RandomProfile(kStacks, kDepth, 0, kFrames);
  return is_shared ? shared : random;
}

// Whether `bytes` hold every stack and value of the input.
bool IsRight(const std::string& bytes, const testing::SampleProfile& input) {
  const auto read = testing::ReadPprof(bytes);
  const Profile& profile = input.profile;
  if (!read.has_value() || !testing::CheckPprof(*read).empty() ||
      read->samples.size() != profile.samples.size())
    return false;
  if (read->locations.size() != profile.frames.size() ||
      read->functions.size() != input.symbols.functions.size())
    return false;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const auto& sample = read->samples[i];
    const auto values = profile.Values(i);
    if (!std::equal(values.begin(), values.end(), sample.values.begin(), sample.values.end()) ||
        sample.labels.size() != 2)
      return false;
    std::size_t level = 0;
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent, ++level) {
      if (level >= sample.locations.size() ||
          sample.locations[level] != profile.stacks[node].frame + 1)
        return false;
    }
    if (level != sample.locations.size()) return false;
  }
  return true;
}

// On one core: what else runs on the machine does not count.
double ThreadCpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Encode>
void Run(benchmark::State& state, bool is_shared, Encode encode) {
  const testing::SampleProfile& input = Input(is_shared);
  if (!IsRight(encode(input), input)) {
    state.SkipWithError("the answer is wrong");
    return;
  }
  std::size_t bytes = 0;
  for (auto _ : state) {
    const double begin_s = ThreadCpuSeconds();
    const std::string message = encode(input);
    benchmark::DoNotOptimize(message.data());
    state.SetIterationTime(ThreadCpuSeconds() - begin_s);
    bytes = message.size();
  }
  state.counters["message_MiB"] = static_cast<double>(bytes) / (1 << 20);
}

std::string EncodeWithStrobe(const testing::SampleProfile& input) {
  return PprofEncoder().EncodeUncompressed(input.profile, input.symbols).value_or("");
}

std::string EncodeWithStrobeAndGzip(const testing::SampleProfile& input) {
  return PprofEncoder().Encode(input.profile, input.symbols).value_or("");
}

std::string EncodeWithStrobeAndZlib(const testing::SampleProfile& input) {
  const std::string message = EncodeWithStrobe(input);
  z_stream stream = {};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string result(deflateBound(&stream, message.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(message.data()));
  stream.avail_in = static_cast<uInt>(message.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  result.resize(is_whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return result;
}

#ifdef STROBE_BENCH_PROTOBUF
std::string EncodeWithProtobuf(const testing::SampleProfile& input) {
  const Profile& profile = input.profile;
  perftools::profiles::Profile message;
  message.add_string_table("");
  const auto text = [&message](std::string_view content) {
    message.add_string_table(content.data(), content.size());
    return message.string_table_size() - 1;
  };
  for (const ValueType& value_type : profile.value_types) {
    auto* added = message.add_sample_type();
    added->set_type(text(value_type.type));
    added->set_unit(text(value_type.unit));
  }
  for (std::size_t i = 0; i < profile.modules.size(); ++i) {
    auto* mapping = message.add_mapping();
    mapping->set_id(i + 1);
    mapping->set_memory_start(profile.modules[i].start);
    mapping->set_memory_limit(profile.modules[i].limit);
    mapping->set_filename(text(profile.modules[i].path));
  }
  for (std::size_t i = 0; i < input.symbols.functions.size(); ++i) {
    auto* function = message.add_function();
    function->set_id(i + 1);
    function->set_name(text(input.symbols.functions[i].name));
    function->set_system_name(text(input.symbols.functions[i].system_name));
  }
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    auto* location = message.add_location();
    location->set_id(i + 1);
    location->set_mapping_id(profile.frames[i].module + 1);
    location->set_address(profile.frames[i].address);
    location->add_line()->set_function_id(input.symbols.frames[i].function + 1);
  }
  const int id_key = text("thread_id"), name_key = text("thread_name");
  std::vector<int> ids, names;
  for (const LabelSet& set : profile.label_sets) {
    ids.push_back(text(std::to_string(set.Number(kThreadIdLabel))));
    names.push_back(text(set.Text(kThreadNameLabel)));
  }
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    auto* sample = message.add_sample();
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      sample->add_location_id(profile.stacks[node].frame + 1);
    }
    for (const std::int64_t value : profile.Values(i)) sample->add_value(value);
    auto* id = sample->add_label();
    id->set_key(id_key);
    id->set_str(ids[profile.samples[i].labels]);
    auto* name = sample->add_label();
    name->set_key(name_key);
    name->set_str(names[profile.samples[i].labels]);
  }
  return message.SerializeAsString();
}
#endif

// `step` is what is measured: "", or "_and_gzip".
void Register(const char* step, const char* name,
              std::string (*encode)(const testing::SampleProfile&)) {
  for (const bool is_shared : {true, false}) {
    const std::string full =
        std::string(is_shared ? "shared_26_of_30" : "random") + step + "/" + name;
    benchmark::RegisterBenchmark(
        full.c_str(),
        [is_shared, encode](benchmark::State& state) { Run(state, is_shared, encode); })
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->MinTime(0.5);
  }
}

}  // namespace
}  // namespace strobe

int main(int argc, char** argv) {
  strobe::Register("", "strobe", strobe::EncodeWithStrobe);
#ifdef STROBE_BENCH_PROTOBUF
  strobe::Register("", "protobuf", strobe::EncodeWithProtobuf);
#else
  std::fprintf(stderr,
               "skipped: protobuf (needs libprotobuf-dev, protobuf-compiler and "
               "golang-github-google-pprof-dev's profile.proto)\n");
#endif
  strobe::Register("_and_gzip", "strobe", strobe::EncodeWithStrobeAndGzip);
  strobe::Register("_and_gzip", "zlib", strobe::EncodeWithStrobeAndZlib);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
