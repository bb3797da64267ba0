// Question: what does one delivered sample cost, 36 frames with frame pointers, against an empty signal handler? Both signals are sent by
// the thread to itself, with a payload, in turns of 64. gperftools runs its handler in a process of its own for each way it has to unwind,
// beside the same empty handler.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "deliver.h"
#include "strobe/runtime/session.h"
#include "strobe/runtime/thread_registry.h"
#include "strobe/strobe.h"
#include "strobe/unwind/frame_pointer_unwinder.h"
#if __has_include(<gperftools/profiler.h>) && defined(STROBE_BENCH_GPERFTOOLS)
#include <gperftools/profiler.h>
#endif

namespace strobe::testing {
namespace {

constexpr int kEmptySignal = SIGUSR2;

void ReportPair(const std::string& contender, const std::vector<double>& empty, const std::vector<double>& full, bool with_empty) {
  if (with_empty) Report("one signal", "empty_handler", "time", Median(empty), "ns");
  Report("one signal", contender, "time", Median(full), "ns");
  Report("against an empty handler beside it", contender, "ratio", Median(full) / Median(empty), "");
}

struct FramePointerTraits : DefaultTraits {
  using Unwinder = FramePointerUnwinder;
};

// A session whose rings are drained here, between batches, so that no other thread takes part.
template <class Traits>
int MeasureStrobe(const char* contender) {
  ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 0.001;  // so that no timer of its own takes part either
  const int signal = NativePlatform::DefaultSignal();
  internal::ThreadRegistry<Traits> registry(64, static_cast<std::size_t>(*options.threads.ring_bytes));
  if (!registry.Open().ok() || !NativePlatform::InstallHandler(signal).ok()) return 1;
  internal::CollectorCounters counters;
  internal::Session<Traits> session(options, registry, counters, signal);
  auto registered = registry.Register(NativePlatform::CurrentThread(), "bench");
  if (!registered.ok()) return 1;
  internal::ThreadSlot<Traits>& slot = **registered;
  slot.next = internal::ThreadLinks();
  internal::ThreadLinks() = &slot;
  registry.BeginCollecting();
  session.Attach(slot);
  InstallEmptyHandler(kEmptySignal);

  std::size_t depth = kFrames;
  std::vector<double> empty;
  std::vector<double> full;
  // Once to see how many frames there are below main and in the benchmark, then as many as asked for.
  for (int attempt = 0; attempt < 2; ++attempt) {
    Below(depth, [&] {
      TimeBatch(signal, SI_TIMER, slot.token.Pack());
      RecordHeader header;
      std::memcpy(&header, slot.ring.Peek().data(), sizeof(header));
      session.Drain();
      if (header.frame_count != kFrames) {
        depth = depth + kFrames - header.frame_count;
        return;
      }
      for (int batch = 0; batch < kBatches; ++batch) {
        empty.push_back(TimeBatch(kEmptySignal, SI_QUEUE, slot.token.Pack()));
        full.push_back(TimeBatch(signal, SI_TIMER, slot.token.Pack()));
        session.Drain();
      }
    });
  }
  const std::uint64_t samples = counters.samples.load();
  session.Detach(slot);
  internal::ThreadLinks() = slot.next;
  registry.Unregister(&slot);
  session.End();
  session.FinishAll();
  if (full.empty() || samples < static_cast<std::uint64_t>(kBatch) * kBatches) {
    std::fprintf(stderr, "sample: %llu samples arrived, %zu frames were asked for\n", static_cast<unsigned long long>(samples), kFrames);
    return 1;
  }
  ReportPair(contender, empty, full, /*with_empty=*/std::strcmp(contender, "strobe") == 0);
  return 0;
}

#ifdef STROBE_BENCH_GPERFTOOLS
// In the child.
int MeasureGperftools(const char* contender, const char* file) {
  if (ProfilerStart(file) == 0) return 1;
  InstallEmptyHandler(kEmptySignal);
  std::vector<double> empty;
  std::vector<double> full;
  constexpr std::size_t kFramesAround = 8;  // main and the like: as for ours, about 36 in all
  Below(kFrames - kFramesAround, [&] {
    for (int batch = 0; batch < kBatches / 8; ++batch) {
      empty.push_back(TimeBatch(kEmptySignal, SI_QUEUE, 0));
      full.push_back(TimeBatch(SIGPROF, SI_QUEUE, 0));
    }
  });
  ProfilerState state{};
  ProfilerGetCurrentState(&state);
  ProfilerStop();
  if (state.samples_gathered < kBatch) return 1;
  ReportPair(contender, empty, full, /*with_empty=*/false);
  return 0;
}
#endif

void MeasurePeers(const std::string& program) {
#ifdef STROBE_BENCH_GPERFTOOLS
  for (const std::string method : {"generic_fp", "libunwind", "libgcc", "default"}) {
    const std::string contender = "gperftools_" + method;
    const std::string choice = method == "default" ? "" : "TCMALLOC_STACKTRACE_METHOD=" + method + " ";
    const std::string command = choice + "CPUPROFILE_FREQUENCY=1 '" + program + "' " + contender + " 2>/dev/null";
    if (std::system(command.c_str()) != 0) std::fprintf(stderr, "skipped: sample/%s (it took no samples)\n", contender.c_str());
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
  const int result = strobe::testing::MeasureStrobe<strobe::DefaultTraits>("strobe") |
                     strobe::testing::MeasureStrobe<strobe::testing::FramePointerTraits>("strobe_frame_pointers");
  strobe::testing::MeasurePeers(argv[0]);
  return result;
}
