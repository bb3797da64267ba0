// Question: what does one delivered sample cost, of a stack of 36 frames, against an empty signal
// handler? Both signals are sent by the thread to itself, with a payload, in turns. The stacks are
// of generated functions without frame pointers, except for peers that need them. gperftools runs
// its handler in a process of its own for each way it has to unwind, beside the same empty handler.
// The cases:
//   repeated stack      the same again and again, 64 signals a turn
//   shared roots        all but the last four frames are those of the sample before
//   20k random stacks   one of so many each time
// strobe_timestamps has labels, a trace and the time in each record.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench_session.h"
#include "deliver.h"
#include "strobe/own_parts.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/unwind/frame_pointer_unwinder.h"
#if __has_include(<gperftools/profiler.h>) && defined(STROBE_BENCH_GPERFTOOLS)
#include <gperftools/profiler.h>
#endif

namespace strobe::testing {
namespace {

constexpr int kBatch = 64;  // of one stack; fits the default ring
constexpr std::size_t kTurns = 4000;
constexpr std::size_t kWarmingTurns = 1000;
constexpr std::size_t kDrainBytes = 8192;  // of the ring that may fill up meanwhile

void ReportPair(StackCase stacks, const std::string& contender, Delivery& delivery,
                bool with_empty) {
  const std::string name = kStackCaseNames[static_cast<std::size_t>(stacks)];
  for (auto& times : delivery.times_ns) times.erase(times.begin(), times.begin() + kWarmingTurns);
  const double empty_ns = Median(delivery.times_ns[0]);
  const double full_ns = Median(delivery.times_ns[1]);
  if (with_empty) Report(name, "empty_handler", "time", empty_ns, "ns");
  Report(name, contender, "time", full_ns, "ns");
  Report(name, contender, "ratio to an empty handler", full_ns / empty_ns, "");
}

struct FramePointerTraits : DefaultTraits {
  using Unwinder = FramePointerUnwinder;
};

// One case. The session takes part until its tables are there.
template <class Traits>
bool MeasureCase(StackCase stacks, FunctionKind kind, const char* contender,
                 BenchSession<Traits>& session) {
  Delivery delivery(MakeSignal(kEmptySignal, SI_QUEUE, 0), session.Signal());
  delivery.repeats = stacks == StackCase::kRepeated ? kBatch : 1;
  const std::size_t discarded = session.discarded();
  bool is_right = true;
  session.DeliverWhole(stacks, kind, kWarmingTurns + kTurns, delivery, [&] {
    if (delivery.turn <= kWarmingTurns) {
      session.Drain();
    } else if (session.thread().channel->ring.used_bytes() > kDrainBytes) {
      is_right &= session.Discard();
    }
  });
  is_right &= session.Discard();
  if (!is_right ||
      session.discarded() - discarded != kTurns * static_cast<std::size_t>(delivery.repeats)) {
    std::fprintf(stderr, "sample: %s: records are missing, or not of a whole stack of %zu frames\n",
                 contender, kFrames);
    return false;
  }
  ReportPair(stacks, contender, delivery, /*with_empty=*/std::strcmp(contender, "strobe") == 0);
  return true;
}

template <class Traits>
int MeasureStrobe(const char* contender, FunctionKind kind, bool timestamps = false) {
  InstallEmptyHandler(kEmptySignal);
  BenchSession<Traits> session(timestamps);
  bool is_right = session.ok();
  for (std::size_t i = 0; i < kStackCases && is_right; ++i)
    is_right = MeasureCase(static_cast<StackCase>(i), kind, contender, session);
  return is_right ? 0 : 1;
}

// The handler with everything that a record may have: compare it with `strobe`.
int MeasureTimestamps() {
  const ScopedLabels labels({{"endpoint", "/pay"}, {"shard", std::int64_t{7}}});
  const ScopedTrace trace(1, 2, 3);
  return MeasureStrobe<DefaultTraits>("strobe_timestamps", FunctionKind::kPlain, true);
}

#ifdef STROBE_BENCH_GPERFTOOLS
// In the child.
int MeasureGperftools(const std::string& contender, const char* file) {
  if (ProfilerStart(file) == 0) return 1;
  InstallEmptyHandler(kEmptySignal);
  constexpr std::size_t kFramesAround = 8;  // main and the like: as for ours, about 36 in all
  const FunctionKind kind =
      contender == "gperftools_generic_fp" ? FunctionKind::kFramePointers : FunctionKind::kPlain;
  for (std::size_t i = 0; i < kStackCases; ++i) {
    const auto stacks = static_cast<StackCase>(i);
    Delivery delivery(MakeSignal(kEmptySignal, SI_QUEUE, 0), MakeSignal(SIGPROF, SI_QUEUE, 0));
    delivery.repeats = stacks == StackCase::kRepeated ? 4 : 1;
    DeliverOn(stacks, kind, kFrames - kFramesAround, kWarmingTurns + kTurns / 4, delivery, [] {});
    ReportPair(stacks, contender, delivery, /*with_empty=*/false);
  }
  ProfilerState state{};
  ProfilerGetCurrentState(&state);
  ProfilerStop();
  return state.samples_gathered < static_cast<int>(kTurns) ? 1 : 0;
}
#endif

void MeasurePeers(const std::string& program) {
#ifdef STROBE_BENCH_GPERFTOOLS
  for (const std::string method : {"generic_fp", "libunwind", "libgcc", "default"}) {
    const std::string contender = "gperftools_" + method;
    const std::string choice =
        method == "default" ? "" : "TCMALLOC_STACKTRACE_METHOD=" + method + " ";
    const std::string command =
        choice + "CPUPROFILE_FREQUENCY=1 '" + program + "' " + contender + " 2>/dev/null";
    if (std::system(command.c_str()) != 0)
      std::fprintf(stderr, "skipped: sample/%s (it took no samples)\n", contender.c_str());
  }
#else
  static_cast<void>(program);
  std::fprintf(stderr, "skipped: sample/gperftools (libgoogle-perftools-dev not found)\n");
#endif
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
#ifdef STROBE_BENCH_GPERFTOOLS
  if (argc == 2 && std::strncmp(argv[1], "gperftools_", 11) == 0) {
    char file[] = "/tmp/strobe_bench_XXXXXX";
    const int descriptor = mkstemp(file);
    if (descriptor < 0) return 1;
    close(descriptor);
    const int result = strobe::testing::MeasureGperftools(argv[1], file);
    unlink(file);
    return result;
  }
#endif
  static_cast<void>(argc);
  const int result = strobe::testing::MeasureStrobe<strobe::DefaultTraits>(
                         "strobe", strobe::testing::FunctionKind::kPlain) |
                     strobe::testing::MeasureStrobe<strobe::testing::FramePointerTraits>(
                         "strobe_frame_pointers", strobe::testing::FunctionKind::kFramePointers);
  const int with_times = strobe::testing::MeasureTimestamps();
  strobe::testing::MeasurePeers(argv[0]);
  return result | with_times;
}
