// The memory that a program shares with its worker, written over at any place while the worker's
// session drains: registrations, channels, rings, words of changed slots, what captures know of the
// code. The worker touches nothing else, ends, and what comes out is a well-formed profile.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../worker/manual_worker.h"
#include "fuzz_input.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/core/record.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profile_check.h"
#include "strobe/worker/serve/registration_keeper.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

using Traits = ManualWorkerTraits;
using internal::SharedRegistration;

constexpr std::uint32_t kThreads = 3;
constexpr std::size_t kMaxRecordBytes = 1024;
constexpr std::size_t kMaxSteps = 256;
constexpr std::int64_t kLongStepNs = 11'000'000'000;  // after that, idle memory is given back

// The area as a program has made it, to begin each input with.
class Pristine {
 public:
  Pristine() : sharing_(kThreads) {
    for (const std::span<std::byte> part : Parts()) saved_.emplace_back(part.begin(), part.end());
  }
  ManualSharing& Restore() {
    const auto parts = Parts();
    for (std::size_t i = 0; i < parts.size(); ++i)
      std::memcpy(parts[i].data(), saved_[i].data(), saved_[i].size());
    return sharing_;
  }
  // All that the program may write: the front of the area with the registrations, and the first
  // chunk with its rings.
  static std::array<std::span<std::byte>, 2> Parts() {
    auto* const front = reinterpret_cast<std::byte*>(&TheArea().header());
    const auto registrations = reinterpret_cast<std::byte*>(TheArea().At(kThreads + 1));
    return {std::span<std::byte>{front, static_cast<std::size_t>(registrations - front)},
            TheArea().Chunk(0)};
  }

 private:
  ManualSharing sharing_;
  std::vector<std::vector<std::byte>> saved_;
};

// The worker's side of one input.
struct Worker {
  Worker() {
    ManualWorker::used_chunks = 0;
    testing::Check(registry.Open().ok(), "no arena");
    session.emplace(options, registry, code, counters, 1);
    registry.BeginCollecting();
    session->Begin();
  }
  static const ProfilerOptions& Options() {
    static const ProfilerOptions options(
        {.sampling = {.wall_frequency_hz = 10}, .collector = {.memory_bytes = 1048576}});
    return options;
  }

  const ProfilerOptions& options = Options();
  internal::CodeRegistry generated;
  internal::CollectorCounters counters;
  internal::ThreadRegistry<Traits> registry{1000, kSharedRingBytes};
  internal::LoadedCode<Traits> code{generated, counters.code};  // asks the registry at its end
  std::optional<internal::Session<Traits>> session;
  internal::RegistrationKeeper<Traits> keeper{TheArea(), registry, counters};
};

// The first channel's word of marks: a capture finds it by its token, which may be written over.
std::atomic<std::uint64_t>& TheMarks(ManualSharing& sharing) {
  return sharing.At(0).channel->marks;
}

// A record as a capture writes it, or any bytes, in a ring whose state is as after a Reset.
void Commit(ManualSharing& sharing, FuzzInput& input, std::uint8_t size_code) {
  const std::uint32_t index = size_code % kThreads;
  auto& channel = *sharing.At(index).channel;
  channel.ring.Reset(sharing.RingAt(index));
  const auto bytes = input.TakeBytes(std::size_t{size_code} * 4);
  std::byte* record = channel.ring.Reserve(kMaxRecordBytes + sizeof(RecordHeader));
  if (record == nullptr || bytes.empty()) return;
  std::memcpy(record, bytes.data(), bytes.size());
  std::size_t size = bytes.size();
  if (size >= RecordBytes(5, 0)) {
    RecordHeader header;
    std::memcpy(&header, record, sizeof(header));
    header.amounts &= Traits::Providers::RecordedValueTypes();
    header.flags &= kAllRecordFlags;
    const std::size_t words = RecordWords(header);
    if (size >= RecordBytes(words, 0)) {
      header.slice_bytes = 0;
      header.frame_count =
          static_cast<std::uint16_t>((size - RecordBytes(words, 0)) / sizeof(Address));
      size = RecordBytes(words, header.frame_count);
      std::memcpy(record, &header, sizeof(header));
    }
  }
  channel.ring.Commit(size);
  TheMarks(sharing).fetch_or(std::uint64_t{1} << index);
}

// The channels are the most interesting part, then the front.
void Overwrite(ManualSharing& sharing, FuzzInput& input, std::uint8_t code) {
  const auto parts = Pristine::Parts();
  const auto ring = sharing.RingAt(code % kThreads);
  auto* const channel = reinterpret_cast<std::byte*>(sharing.At(code % kThreads).channel);
  const std::array<std::span<std::byte>, 4> places{
      std::span<std::byte>{channel, sizeof(*sharing.At(0).channel)}, ring, parts[0], parts[1]};
  const std::span<std::byte> place = places[code / 64];
  const std::size_t offset = input.Take<std::uint32_t>() % place.size();
  const auto bytes =
      input.TakeBytes(std::min<std::size_t>(input.Take<std::uint8_t>(), place.size() - offset));
  if (!bytes.empty()) std::memcpy(place.data() + offset, bytes.data(), bytes.size());
}

void ChangeShared(FuzzInput& input, std::uint8_t code) {
  const auto index = static_cast<std::uint32_t>(code / 4);  // up to that of the last slot
  SharedRegistration& shared = *TheArea().At(index);
  switch (code % 4) {
    case 0: shared.state = internal::SharedRegistrationState::kTaken; break;
    case 1: shared.state = internal::SharedRegistrationState::kLeft; break;
    case 2:
      shared.state = static_cast<internal::SharedRegistrationState>(input.Take<std::uint32_t>());
      break;
    default: shared.since_cpu_ns = input.Take<std::int64_t>(); break;
  }
  TheArea().Announce(index);
}

void CheckAndEncode(internal::Session<Traits>& session) {
  Profile profile;
  profile.value_types =
      internal::ValueTypesOf(session.columns(), Traits::Providers::AllValueTypes());
  profile.period_type = profile.value_types[1];
  FillProfile(session.TakePeriod().samples, profile);
  const std::string wrong = CheckProfile(profile);
  testing::Check(wrong.empty(), wrong.c_str());
  PprofEncoder encoder;
  const auto encoded = encoder.Encode(profile, Symbols());
  testing::Check(encoded.ok() && ReadPprof(*encoded).has_value(), "a profile that cannot be read");
}

void Step(ManualSharing& sharing, Worker& worker, FuzzInput& input) {
  const auto operation = input.Take<std::uint8_t>();
  const auto code = input.Take<std::uint8_t>();
  ManualClock::Advance(operation % 16 == 15 ? kLongStepNs : 1'000'000);
  switch (operation % 8) {
    case 0: return Commit(sharing, input, code);
    case 1:
    case 2: return Overwrite(sharing, input, code);
    case 3: return ChangeShared(input, code);
    case 4: return worker.keeper.Update(*worker.session);
    case 5: return static_cast<void>(worker.session->Drain());
    case 6:
      worker.session->Poll({}, ManualClock().MonotonicNs());
      return ManualPlatform::With([](auto& state) { state.interruptions.clear(); });
    default: return CheckAndEncode(*worker.session);
  }
}

void Run(FuzzInput input) {
  static auto* const pristine = new Pristine;
  ManualPlatform::Reset();
  ManualClock::Reset();
  ManualSharing& sharing = pristine->Restore();
  Worker worker;
  for (std::uint32_t i = 0; i < kThreads; ++i) sharing.Take(i);
  worker.keeper.Update(*worker.session);
  for (std::size_t step = 0; step < kMaxSteps && !input.empty(); ++step)
    Step(sharing, worker, input);
  worker.keeper.Update(*worker.session);
  worker.session->End();
  worker.session->FinishAll();
  CheckAndEncode(*worker.session);
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
