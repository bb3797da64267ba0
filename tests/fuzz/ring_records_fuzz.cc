// A thread's ring whose storage is overwritten under the collector, as another process could do to
// a shared one: the collector stays within it, and what comes out is a well-formed profile that
// pprof's format can hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/core/record.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/wall_time_provider.h"
#include "strobe/ring/spsc_ring.h"
#include "strobe/runtime/session/session.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/testing/fakes/archetypes.h"
#include "strobe/testing/fakes/manual_platform.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profile_check.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kRingBytes = 4096;
constexpr std::size_t kMaxRecordBytes = 1024;
constexpr std::size_t kMaxSteps = 256;

struct FuzzTraits : ArchetypeTraits {
  using Ring = SpscRing;
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
  using Providers = ProviderList<CpuTimeProvider, WallTimeProvider>;
  using Platform = ManualPlatform;
};
using Thread = internal::RegisteredThread<FuzzTraits>;

// A registry with one live thread, for all inputs.
struct Fixture {
  internal::ThreadRegistry<FuzzTraits> registry{1, kRingBytes};
  internal::CodeRegistry code;
  internal::CollectorCounters counters;
  Thread* thread = nullptr;
  Fixture() { thread = *registry.Register({.id = 1, .stack = {}}, "fuzzed"); }
};

// A record as a capture writes it, if the bytes say so, or any bytes.
void Commit(Thread& thread, FuzzInput& input, std::uint8_t size_code, bool is_framed) {
  const auto bytes = input.TakeBytes(std::size_t{size_code} * 4);
  std::byte* record = thread.channel->ring.Reserve(kMaxRecordBytes + sizeof(RecordHeader));
  if (record == nullptr || bytes.empty()) return;
  std::memcpy(record, bytes.data(), bytes.size());
  std::size_t size = bytes.size();
  if (is_framed && size >= RecordBytes(4, 0)) {
    RecordHeader header;
    std::memcpy(&header, record, sizeof(header));
    const bool wants_slice = (header.flags & 4) != 0;
    header.amounts &= FuzzTraits::Providers::RecordedValueTypes();
    header.flags &= kAllRecordFlags;
    // What is behind the words is frames or, if the bytes say so, one frame and a slice.
    const std::size_t words = RecordWords(header);
    const std::size_t rest = (size - RecordBytes(words, 0)) / sizeof(Address);
    const bool has_slice = wants_slice && rest > sizeof(SliceHeader) / sizeof(Address);
    header.frame_count = static_cast<std::uint16_t>(has_slice ? 1 : rest);
    header.slice_bytes = static_cast<std::uint32_t>(has_slice ? (rest - 1) * sizeof(Address) : 0);
    size = RecordBytes(words, header.frame_count, header.slice_bytes);
    std::memcpy(record, &header, sizeof(header));
  }
  thread.channel->ring.Commit(size);
}

void Overwrite(std::span<std::byte> storage, FuzzInput& input, std::uint8_t size_code) {
  const std::size_t offset = input.Take<std::uint16_t>() % storage.size();
  const auto bytes = input.TakeBytes(std::min<std::size_t>(size_code, storage.size() - offset));
  if (!bytes.empty()) std::memcpy(storage.data() + offset, bytes.data(), bytes.size());
}

void CheckAndEncode(Profile& profile) {
  const std::string wrong = CheckProfile(profile);
  testing::Check(wrong.empty(), wrong.c_str());
  PprofEncoder encoder;
  const auto encoded = encoder.Encode(profile, Symbols());
  testing::Check(encoded.ok() && ReadPprof(*encoded).has_value(), "a profile that cannot be read");
}

void Run(FuzzInput input) {
  static auto* const fixture = new Fixture;
  static const ProfilerOptions options(
      {.sampling = {.wall_frequency_hz = 10}, .collector = {.memory_bytes = 1048576}});
  Thread& thread = *fixture->thread;
  const std::span<std::byte> storage = fixture->registry.arena()->RingMemory(thread.index());
  thread.channel->ring.Reset(storage);
  std::fill(storage.begin(), storage.end(), std::byte{0});
  internal::LoadedCode<FuzzTraits> code(fixture->code, fixture->counters.code);
  internal::Session<FuzzTraits> session(options, fixture->registry, code, fixture->counters, 1);
  fixture->registry.BeginCollecting();
  session.Begin();
  for (std::size_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
    const auto operation = input.Take<std::uint8_t>();
    const auto size_code = input.Take<std::uint8_t>();
    switch (operation % 4) {
      case 0: Commit(thread, input, size_code, true); break;
      case 1: Commit(thread, input, size_code, false); break;
      case 2: Overwrite(storage, input, size_code); break;
      default:
        fixture->registry.arena()->Mark(*thread.channel);
        testing::Check(session.Drain() <= 1, "a ring that is more than full");
        testing::Check(thread.channel->ring.Peek().empty(),
                       "a ring that has been drained and is not empty");
    }
  }
  session.End();
  session.FinishAll();
  Profile profile;
  profile.value_types =
      internal::ValueTypesOf(session.columns(), FuzzTraits::Providers::AllValueTypes());
  profile.period_type = profile.value_types[1];
  FillProfile(session.TakePeriod().samples, profile);
  CheckAndEncode(profile);
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
