#include "read_gperftools.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "pprof_reading.h"
#include "profile/columns.h"
#include "profile/profile_builder.h"
#include "strobe/process/mapping.h"
#include "text_frames.h"

namespace strobe::internal {
namespace {

// The texts of mappings of a process have at most this much.
constexpr std::size_t kMaxMapsBytes = std::size_t{64} << 20;
constexpr std::size_t kHeadWords = 5;

// Frames of addresses, and the modules that the list at the end of the file says.
class AddressFrames {
 public:
  explicit AddressFrames(ProfileBuilder& builder) : builder_(builder) {}

  std::uint32_t Of(Address address) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    const auto [place, is_new] = numbers_.try_emplace(address, next);
    if (is_new) {
      builder_.profile().frames.push_back({address});
      builder_.symbols().frames.emplace_back();
      builder_.Take(2 * (sizeof(Frame) + sizeof(FrameSymbols) + sizeof(*place)));
    }
    return place->second;
  }

  // What is left of the input is text, a mapping a line.
  absl::Status ReadModules(Input& input) {
    std::string maps;
    std::string_view line;
    while (true) {
      const absl::StatusOr<bool> has_line = input.Line(line, kMaxLineBytes);
      if (!has_line.ok()) return has_line.status();
      if (!*has_line) break;
      if (maps.size() + line.size() > kMaxMapsBytes)
        return absl::ResourceExhaustedError("the list of mappings is too long");
      maps.append(line).append("\n");
    }
    std::vector<Module> modules;
    for (const Mapping& mapping : ParseMaps(maps)) {
      Module module;
      module.start = mapping.start;
      module.limit = mapping.limit;
      module.file_offset = mapping.file_offset;
      module.load_bias = mapping.start - mapping.file_offset;
      module.path = mapping.path;
      module.kind = KindOfModule(mapping.path, modules.empty());
      modules.push_back(std::move(module));
    }
    Profile& profile = builder_.profile();
    if (!modules.empty() && modules[0].kind == ModuleKind::kProgram)
      profile.program = ValidUtf8(modules[0].path.substr(modules[0].path.rfind('/') + 1));
    const ModuleMap map(std::move(modules));
    profile.modules = map.modules();
    for (Frame& frame : profile.frames)
      frame.module = map.Find(frame.address).value_or(Frame::kNoModule);
    return absl::OkStatus();
  }

 private:
  ProfileBuilder& builder_;
  absl::flat_hash_map<Address, std::uint32_t> numbers_;
};

template <class Word>
std::uint64_t WordAt(std::string_view bytes, std::size_t index) {
  Word word = 0;
  if (bytes.size() >= (index + 1) * sizeof(Word))
    std::memcpy(&word, bytes.data() + index * sizeof(Word), sizeof(Word));
  return word;
}

// 0, the number of words of the head that follow, the version, the period in µs, and 0.
template <class Word>
bool IsCpuHead(std::string_view bytes) {
  constexpr std::uint64_t kMoreWords = 3;
  return bytes.size() >= kHeadWords * sizeof(Word) && WordAt<Word>(bytes, 0) == 0 &&
         WordAt<Word>(bytes, 1) == kMoreWords && WordAt<Word>(bytes, 2) == 0 &&
         WordAt<Word>(bytes, 3) != 0 && WordAt<Word>(bytes, 4) == 0;
}

struct CpuSample {
  std::int64_t count = 0;
  std::vector<Address> stack;  // as in the file, from the leaf to the root
};

constexpr absl::string_view kCutOff = "the gperftools profile is cut off";

// All samples: count, depth, and so many addresses. The last one is 0, 1, 0.
template <class Word>
absl::Status ReadCpuSamples(Input& input, ProfileBuilder& builder,
                            std::vector<CpuSample>& samples) {
  input.Skip(kHeadWords * sizeof(Word));
  while (true) {
    if (absl::Status status = input.Fill(2 * sizeof(Word)); !status.ok()) return status;
    const std::uint64_t count = WordAt<Word>(input.view(), 0);
    const std::uint64_t depth = WordAt<Word>(input.view(), 1);
    if (input.view().size() < 2 * sizeof(Word)) return absl::DataLossError(kCutOff);
    if (depth > kMaxTextFrames || count > std::numeric_limits<std::int32_t>::max())
      return absl::DataLossError("the gperftools profile is damaged");
    const auto bytes = (2 + static_cast<std::size_t>(depth)) * sizeof(Word);
    if (absl::Status status = input.Fill(bytes); !status.ok()) return status;
    if (input.view().size() < bytes) return absl::DataLossError(kCutOff);
    CpuSample sample{.count = static_cast<std::int64_t>(count), .stack = {}};
    for (std::size_t i = 0; i < depth; ++i)
      sample.stack.push_back(WordAt<Word>(input.view(), 2 + i));
    input.Skip(bytes);
    if (count == 0 && depth == 1 && sample.stack[0] == 0) return absl::OkStatus();
    builder.Take(2 * (sizeof(CpuSample) + sample.stack.size() * sizeof(Address)));
    samples.push_back(std::move(sample));
    if (absl::Status status = builder.status(); !status.ok()) return status;
  }
}

// A signal's handler may leave its own frame behind the leaf, in all stacks but a few.
void RemoveHandlerFrame(std::vector<CpuSample>& samples) {
  constexpr std::size_t kOneOther = 32;  // of so many
  absl::flat_hash_map<Address, std::size_t> second;
  for (const CpuSample& sample : samples) {
    if (sample.stack.size() > 1) ++second[sample.stack[1]];
  }
  for (const auto& [address, count] : second) {
    if (samples.size() < 2 || count < samples.size() - samples.size() / kOneOther) continue;
    for (CpuSample& sample : samples) {
      if (sample.stack.size() > 1 && sample.stack[1] == address)
        sample.stack.erase(sample.stack.begin() + 1);
    }
    return;
  }
}

// The leaf first. Of callers, the addresses are those that calls return to.
std::uint32_t AddStack(ProfileBuilder& builder, AddressFrames& frames,
                       std::span<const Address> stack, bool has_leaf) {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const bool is_return = (i > 0 || !has_leaf) && stack[i] != 0;
    numbers.push_back(frames.Of(stack[i] - (is_return ? 1 : 0)));
  }
  return builder.Stack(numbers);
}

// The four numbers of a place: objects and bytes in use, and those allocated.
struct HeapAmounts {
  std::int64_t objects = 0, bytes = 0, all_objects = 0, all_bytes = 0;
};

// "3: 300 [9: 900]" at the begin of `text`, which it takes off it.
bool TakeHeapAmounts(std::string_view& text, HeapAmounts& amounts) {
  const auto number = [&text](std::string_view before, std::int64_t& value,
                              std::string_view after) {
    text = WithoutSpaces(text);
    if (!text.starts_with(before)) return false;
    text = WithoutSpaces(text.substr(before.size()));
    const std::size_t end = text.find_first_not_of("0123456789");
    if (!TakeNumber(text.substr(0, end), value)) return false;
    text = WithoutSpaces(end == std::string_view::npos ? std::string_view() : text.substr(end));
    if (!text.starts_with(after)) return false;
    text.remove_prefix(after.size());
    return true;
  };
  return number("", amounts.objects, ":") && number("", amounts.bytes, "") &&
         number("[", amounts.all_objects, ":") && number("", amounts.all_bytes, "]");
}

// Of a heap of which one in `rate` bytes is sampled: an object of `bytes / objects` is met with a
// probability of 1 - exp(-size / rate).
void Unsample(std::int64_t& objects, std::int64_t& bytes, std::int64_t rate) {
  if (objects <= 0 || bytes <= 0 || rate <= 1) return;
  const double mean = static_cast<double>(bytes) / static_cast<double>(objects);
  const double factor = 1 / -std::expm1(-mean / static_cast<double>(rate));
  const auto scale = [factor](std::int64_t value) {
    constexpr double kMost = 9e18;
    return static_cast<std::int64_t>(
        std::min(std::round(static_cast<double>(value) * factor), kMost));
  };
  objects = scale(objects);
  bytes = scale(bytes);
}

// What the first line says of sampling: "heap_v2/524288". 1 if all is in the file; nothing if the
// line is none.
std::optional<std::int64_t> SampleRate(std::string_view kind) {
  kind = WithoutSpaces(kind);
  const std::size_t slash = kind.find('/');
  const std::string_view name = kind.substr(0, slash);
  std::int64_t rate = 1;
  if (slash != std::string_view::npos && !TakeNumber(kind.substr(slash + 1), rate))
    return std::nullopt;
  if (name == "heapprofile" || name == "growth") return 1;
  if (name == "heap_v2" || name == "heapz_v2") return rate;
  if (name == "heap") return std::max<std::int64_t>(rate / 2, 1);
  return std::nullopt;
}

constexpr std::string_view kHeapHead = "heap profile:";

std::optional<std::int64_t> HeapRate(std::string_view line) {
  if (line.starts_with("heap_v2/")) return SampleRate(line);
  HeapAmounts amounts;
  if (!line.starts_with(kHeapHead)) return std::nullopt;
  line.remove_prefix(kHeapHead.size());
  if (!TakeHeapAmounts(line, amounts)) return std::nullopt;
  line = WithoutSpaces(line);
  return line.starts_with('@') ? SampleRate(line.substr(1)) : std::nullopt;
}

class HeapReading {
 public:
  absl::StatusOr<LoadedProfile> Read(Input& input) {
    builder_.profile().value_types.assign(kTypes.begin(), kTypes.end());
    builder_.profile().default_value_type = kTypes.size() - 1;
    no_labels_ = builder_.Labels({});
    std::string_view line;
    for (std::uint64_t number = 1;; ++number) {
      const absl::StatusOr<bool> has_line = input.Line(line, kMaxLineBytes);
      if (!has_line.ok()) return has_line.status();
      line = WithoutSpaces(line);
      if (!*has_line || line == "MAPPED_LIBRARIES:" || line.starts_with("--- Memory map")) break;
      if (!Take(line, number == 1))
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, " is none of a heap profile"));
      if (absl::Status status = builder_.status(); !status.ok()) return status;
    }
    if (absl::Status status = frames_.ReadModules(input); !status.ok()) return status;
    LoadedProfile loaded = builder_.Finish();
    loaded.format = is_jemalloc_ ? "heap profile of jemalloc" : "heap profile of gperftools";
    LeaveOutEmptyColumns(loaded);
    return loaded;
  }

 private:
  static constexpr std::array<ValueType, 4> kTypes{{{"alloc_objects", "count"},
                                                    {"alloc_space", "bytes"},
                                                    {"inuse_objects", "count"},
                                                    {"inuse_space", "bytes"}}};

  bool Take(std::string_view line, bool is_first) {
    if (is_first) {
      const std::optional<std::int64_t> rate = HeapRate(line);
      rate_ = rate.value_or(1);
      is_jemalloc_ = !line.starts_with(kHeapHead);
      return rate.has_value();
    }
    if (line.empty() || line[0] == '#') return true;
    // jemalloc's stack stands before its amounts: those of all threads, and then of each.
    if (is_jemalloc_ && line[0] == '@') return TakeStack(line.substr(1));
    if (is_jemalloc_) {
      if (!line.starts_with("t*:")) return line[0] == 't';
      line.remove_prefix(3);
    }
    HeapAmounts amounts;
    if (!TakeHeapAmounts(line, amounts)) return false;
    line = WithoutSpaces(line);
    if (!is_jemalloc_ && (!line.starts_with('@') || !TakeStack(line.substr(1)))) return false;
    if (!stack_.has_value()) return is_jemalloc_;  // the sum of all
    Unsample(amounts.objects, amounts.bytes, rate_);
    Unsample(amounts.all_objects, amounts.all_bytes, rate_);
    builder_.AddRow(
        *std::exchange(stack_, std::nullopt), no_labels_,
        std::array{amounts.all_objects, amounts.all_bytes, amounts.objects, amounts.bytes});
    return true;
  }

  bool TakeStack(std::string_view text) {
    std::vector<Address> stack;
    while (!WithoutSpaces(text).empty()) {
      Address address = 0;
      if (stack.size() == kMaxTextFrames || !absl::SimpleHexAtoi(Absl(FirstWord(text)), &address))
        return false;
      stack.push_back(address);
    }
    stack_ = AddStack(builder_, frames_, stack, false);
    return true;
  }

  static void LeaveOutEmptyColumns(LoadedProfile& loaded) {
    const Profile& profile = loaded.profile;
    std::vector<ValueType> used;
    for (std::size_t column = 0; column < kTypes.size(); ++column) {
      for (std::size_t i = 0; i < profile.samples.size(); ++i) {
        if (profile.Values(i)[column] == 0) continue;
        used.push_back(kTypes[column]);
        break;
      }
    }
    if (!used.empty()) SetColumns(loaded, used);
  }

  ProfileBuilder builder_;
  AddressFrames frames_{builder_};
  std::uint32_t no_labels_ = 0;
  std::int64_t rate_ = 1;
  bool is_jemalloc_ = false;
  std::optional<std::uint32_t> stack_;  // that of the amounts that come
};

}  // namespace

bool IsGperftoolsCpu(std::string_view first_bytes) {
  return IsCpuHead<std::uint64_t>(first_bytes) || IsCpuHead<std::uint32_t>(first_bytes);
}

bool IsHeapText(std::string_view line) { return HeapRate(line).has_value(); }

std::string_view NameOfLegacyText(std::string_view line) {
  constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"heap profile:", "a heap profile of an unknown kind"},
      {"goroutine profile:", "Go's text of goroutines"},
      {"threadcreate profile:", "Go's text of threads"},
      {"--- contention", "a text of contended locks"},
      {"--- mutex:", "Go's text of contended locks"},
      {"--- threadz", "a text of threads"},
  };
  for (const auto& [begin, name] : kKnown) {
    if (line.starts_with(begin)) return name;
  }
  return {};
}

absl::StatusOr<LoadedProfile> ReadGperftoolsCpu(Input& input) {
  if (absl::Status status = input.Fill(kHeadWords * sizeof(std::uint64_t)); !status.ok())
    return status;
  const bool is_64 = IsCpuHead<std::uint64_t>(input.view());
  const std::uint64_t period_us =
      is_64 ? WordAt<std::uint64_t>(input.view(), 3) : WordAt<std::uint32_t>(input.view(), 3);
  constexpr std::uint64_t kMostUs = 1'000'000'000;
  if (period_us > kMostUs) return absl::DataLossError("the gperftools profile is damaged");
  const auto period_ns = static_cast<std::int64_t>(period_us) * 1000;
  ProfileBuilder builder;
  AddressFrames frames(builder);
  std::vector<CpuSample> samples;
  absl::Status status = is_64 ? ReadCpuSamples<std::uint64_t>(input, builder, samples)
                              : ReadCpuSamples<std::uint32_t>(input, builder, samples);
  if (!status.ok()) return status;
  RemoveHandlerFrame(samples);
  Profile& profile = builder.profile();
  profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}};
  profile.default_value_type = 1;
  profile.period_type = {"cpu", "nanoseconds"};
  profile.period = period_ns;
  const std::uint32_t no_labels = builder.Labels({});
  for (const CpuSample& sample : samples) {
    builder.AddRow(AddStack(builder, frames, sample.stack, true), no_labels,
                   std::array{sample.count, sample.count * period_ns});
  }
  status = frames.ReadModules(input);
  if (status.ok()) status = builder.status();
  if (!status.ok()) return status;
  LoadedProfile loaded = builder.Finish();
  loaded.format = "CPU profile of gperftools";
  return loaded;
}

absl::StatusOr<LoadedProfile> ReadHeapText(Input& input) { return HeapReading().Read(input); }

}  // namespace strobe::internal
