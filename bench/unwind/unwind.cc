// What does walking one stack cost, per frame? The stack is a chain of distinct functions that keep frame pointers, so that every contender
// finds the same callers; each run checks that it did. The walk is repeated on the same stack: that is the kindest case for everybody.
//   deep36, deep200   the number of generated functions on the stack
#include <absl/debugging/stacktrace.h>
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strobe/unwind/frame_pointer_unwinder.h"

#ifdef STROBE_BENCH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

namespace {

using strobe::Address;

constexpr std::size_t kFunctions = 256;
constexpr std::size_t kMaxFrames = 512;

using Trace = std::array<Address, kMaxFrames>;

// A walk from the frame whose frame pointer is `fp`, on a stack that is valid below `top`: return addresses, leaf first. They may begin
// with frames of the walker's own and end with those of the thread's start.
using Walker = std::size_t (*)(Address fp, Address top, Trace& trace);

struct Job {
  benchmark::State* state = nullptr;
  Walker walker = nullptr;
  Address to_return_address = 0;  // what is missing from the walker's addresses to the return addresses
  Address top = 0;
  std::vector<std::size_t> functions;  // from the root on
  std::vector<Address> callers;        // the return addresses that each function sees, from the root on
  Trace trace;
};

using Step = int (*)(Job&, std::size_t);
extern const std::array<Step, kFunctions> kSteps;

[[gnu::noinline]] void Measure(Job& job) {
  const auto fp = reinterpret_cast<Address>(__builtin_frame_address(0));
  std::size_t count = 0;
  for (auto _ : *job.state) {
    count = job.walker(fp, job.top, job.trace);
    benchmark::ClobberMemory();
  }
  std::vector<Address> expected(job.callers.rbegin(), job.callers.rend());
  for (Address& address : expected) address -= job.to_return_address;
  const auto end = job.trace.begin() + static_cast<std::ptrdiff_t>(count);
  if (std::search(job.trace.begin(), end, expected.begin(), expected.end()) == end) job.state->SkipWithError("the trace is wrong");
  job.state->SetItemsProcessed(static_cast<std::int64_t>(job.state->iterations() * count));
}

// Each instance is a function of its own, with a frame of its own size.
template <std::size_t kIndex>
[[gnu::noinline]] int Function(Job& job, std::size_t depth) {
  volatile std::uint64_t locals[kIndex % 13 + 1];
  locals[0] = kIndex;
  job.callers.push_back(reinterpret_cast<Address>(__builtin_return_address(0)));
  if (depth < job.functions.size()) {
    locals[0] = locals[0] + static_cast<std::uint64_t>(kSteps[job.functions[depth]](job, depth + 1));
  } else {
    Measure(job);
  }
  return static_cast<int>(locals[0]);
}

template <std::size_t... kIndices>
constexpr std::array<Step, kFunctions> MakeSteps(std::index_sequence<kIndices...>) {
  return {&Function<kIndices>...};
}
const std::array<Step, kFunctions> kSteps = MakeSteps(std::make_index_sequence<kFunctions>());

[[gnu::noinline]] std::size_t Strobe(Address fp, Address top, Trace& trace) {
  strobe::NativeRegisters registers;
  registers.pc = 1;
  registers.sp = fp;
  registers.fp = fp;
  return strobe::FramePointerUnwinder().Unwind(registers, strobe::LiveStackMemory(fp, top), trace).count;
}

// The same loop without any care: what the hardware allows.
[[gnu::noinline]] std::size_t Chase(Address fp, Address top, Trace& trace) {
  std::size_t count = 0;
  while (fp < top && count < kMaxFrames) {
    const auto* const frame = reinterpret_cast<const Address*>(fp);
    trace[count++] = frame[1];
    fp = frame[0];
  }
  return count;
}

[[gnu::noinline]] std::size_t Absl(Address /*fp*/, Address /*top*/, Trace& trace) {
  return static_cast<std::size_t>(absl::GetStackTrace(reinterpret_cast<void**>(trace.data()), kMaxFrames, 0));
}

#ifdef STROBE_BENCH_LIBUNWIND
[[gnu::noinline]] std::size_t Libunwind(Address /*fp*/, Address /*top*/, Trace& trace) {
  return static_cast<std::size_t>(std::max(0, unw_backtrace(reinterpret_cast<void**>(trace.data()), kMaxFrames)));
}
#endif

// libunwind defines the same functions, so that they are taken from libgcc's own library by name.
struct LibgccFunctions {
  decltype(&_Unwind_Backtrace) backtrace = nullptr;
  decltype(&_Unwind_GetIP) get_ip = nullptr;

  LibgccFunctions() {
    void* const library = dlopen("libgcc_s.so.1", RTLD_NOW);
    if (library == nullptr) return;
    backtrace = reinterpret_cast<decltype(backtrace)>(dlsym(library, "_Unwind_Backtrace"));
    get_ip = reinterpret_cast<decltype(get_ip)>(dlsym(library, "_Unwind_GetIP"));
  }
  [[nodiscard]] bool found() const { return backtrace != nullptr && get_ip != nullptr; }
};
const LibgccFunctions kLibgcc;

struct LibgccState {
  Trace& trace;
  std::size_t count = 0;
};

[[gnu::noinline]] std::size_t Libgcc(Address /*fp*/, Address /*top*/, Trace& trace) {
  LibgccState state{trace};
  const auto take = [](_Unwind_Context* context, void* argument) {
    auto& at = *static_cast<LibgccState*>(argument);
    if (at.count == kMaxFrames) return _URC_END_OF_STACK;
    at.trace[at.count++] = static_cast<Address>(kLibgcc.get_ip(context));
    return _URC_NO_REASON;
  };
  kLibgcc.backtrace(take, &state);
  return state.count;
}

void Run(benchmark::State& state, Walker walker, std::size_t depth) {
  std::thread([&] {
    Job job;
    job.state = &state;
    job.walker = walker;
    job.to_return_address = walker == Strobe ? 1 : 0;  // ours lie within the call instruction
    job.top = reinterpret_cast<Address>(__builtin_frame_address(0)) + 16;
    for (std::size_t i = 1; i < depth; ++i) job.functions.push_back((i * 97 + depth) % kFunctions);
    benchmark::DoNotOptimize(kSteps[0](job, 0));
  }).join();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::pair<std::string, Walker>> walkers = {{"strobe_frame_pointers", Strobe}, {"hand_written_chase", Chase}, {"absl", Absl}};
#ifdef STROBE_BENCH_LIBUNWIND
  walkers.emplace_back("libunwind", Libunwind);
#else
  std::fputs("skipped: libunwind (libunwind-dev was not there at configuration)\n", stderr);
#endif
  if (kLibgcc.found()) {
    walkers.emplace_back("libgcc", Libgcc);
  } else {
    std::fputs("skipped: libgcc (libgcc_s.so.1 cannot be loaded)\n", stderr);
  }
  for (const std::size_t depth : {std::size_t{36}, std::size_t{200}}) {
    for (const auto& [name, walker] : walkers) {
      benchmark::RegisterBenchmark(("deep" + std::to_string(depth) + "/" + name).c_str(),
                                   [walker = walker, depth](benchmark::State& state) { Run(state, walker, depth); });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
