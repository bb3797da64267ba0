// Code that the program has generated, as just-in-time compilers do: real x86-64 instructions in
// memory of no file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/testing/pprof_reader.h"
#include "unwind/eh_frame_builder.h"

namespace strobe::testing {

// Not in the anonymous namespace: these names are what a reader of the profile looks for.
volatile std::uint64_t generated_sink;
volatile std::int64_t spin_cpu_ns;
__attribute__((noinline)) void Spin() {
  const std::int64_t cpu_ns = spin_cpu_ns;
  const EnoughWalks is_sampled(
      static_cast<int>(cpu_ns / 10'000'000));  // one in the longest step of a CPU clock
  do BurnCpu(cpu_ns);
  while (!is_sampled);
  generated_sink = 1;
}
using Generated = void (*)();
// The sanitizer reads what it puts before each function, and generated code has nothing there.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
__attribute__((noinline)) void
CallGenerated(const CodePage& page, std::int64_t cpu_ns) {
  spin_cpu_ns = cpu_ns;
  reinterpret_cast<Generated>(page.start())();
  generated_sink = 2;
}

namespace {

// All of it takes no arguments, so that every system's calling convention will do. It leaves the 32
// bytes to its callees that one of them asks for.
const Bytes kCallSpin = Join({{0x48, 0xB8},
                              Fixed(&Spin),            // mov rax, Spin
                              {0xFF, 0xD0}});          // call rax
const Bytes kFramed = Join({{0x55,                     // push rbp
                             0x48, 0x89, 0xE5,         // mov rbp, rsp
                             0x48, 0x83, 0xEC, 0x20},  // sub rsp, 32
                            kCallSpin,
                            {0xC9,     // leave
                             0xC3}});  // ret
// The same, with another use for rbp.
const Bytes kUnframed = Join({{0x55,                          // push rbp
                               0xBD, 0x39, 0x05, 0x00, 0x00,  // mov ebp, 1337
                               0x48, 0x83, 0xEC, 0x20},       // sub rsp, 32
                              kCallSpin,
                              {0x48, 0x83, 0xC4, 0x20,  // add rsp, 32
                               0x5D,                    // pop rbp
                               0xC3}});                 // ret
// Counts down, in a frame of its own.
const Bytes kLoop = {0x55,                          // push rbp
                     0x48, 0x89, 0xE5,              // mov rbp, rsp
                     0xB8, 0x00, 0xE1, 0xF5, 0x05,  // mov eax, 100000000
                     0xFF, 0xC8,                    // dec eax
                     0x75, 0xFC,                    // jnz to the line above
                     0x5D,                          // pop rbp
                     0xC3};                         // ret

Bytes EhFrameOfUnframed(const CodePage& page) {
  EhFrameBuilder builder;
  const Bytes program = Join({Advance(1), DefCfaOffset(16), Offset(kRbp, 2),  //
                              Advance(9), DefCfaOffset(48),                   //
                              Advance(16), DefCfaOffset(16),                  //
                              Advance(1), DefCfaOffset(8), Restore(kRbp)});
  builder.Fde(builder.Cie(), reinterpret_cast<Address>(page.start()), kUnframed.size(), program);
  return builder.bytes;
}

GeneratedCode Describe(const CodePage& page, const Bytes& code, std::string_view name,
                       const Bytes& eh_frame = {}) {
  return {.name = name,
          .start = page.start(),
          .bytes = code.size(),
          .eh_frame = std::as_bytes(std::span(eh_frame))};
}

// Runs body() on a new thread under `profiler`, which collects, and returns what was exported.
template <class Body>
PprofProfile Sample(BasicProfiler<CountedTraits<>>& profiler, Body&& body) {
  CollectingExporter::Take();
  EXPECT_TRUE(profiler.Start().ok());
  std::int64_t cpu_ns = 0;
  std::thread([&] {
    const Registration registration = profiler.RegisterThread("generated");
    const std::int64_t begin_ns = ThreadCpuNs();
    body();
    cpu_ns = ThreadCpuNs() - begin_ns;
  }).join();
  EXPECT_TRUE(profiler.Stop().ok());
  const auto exports = CollectingExporter::Take();
  EXPECT_EQ(exports.size(), 1U);
  EXPECT_GE(SumOfThread(exports, "cpu", "generated"), cpu_ns) << "weight was lost";
  const auto profile = ReadPprof(exports.at(0).bytes);
  EXPECT_TRUE(profile.has_value());
  if (!profile.has_value()) return {};
  EXPECT_EQ(CheckPprof(*profile), "");
  return *profile;
}

// CPU time of the stacks that have Spin, a frame whose name begins with `name`, and CallGenerated
// in a row, and then go on to the thread's start.
std::int64_t CpuOfWholeStacks(const PprofProfile& profile, const std::string& name) {
  std::int64_t sum = 0;
  for (const PprofProfile::Sample& sample : profile.samples) {
    const std::vector<std::string> stack = profile.Stack(sample);
    const auto code = std::find_if(stack.begin(), stack.end(), [&](const std::string& frame) {
      return frame.starts_with(name);
    });
    if (code == stack.begin() || stack.end() - code < 4) continue;
    EXPECT_EQ(*std::prev(code), "strobe::testing::Spin");
    EXPECT_EQ(*std::next(code), "strobe::testing::CallGenerated");
    EXPECT_THAT(stack.back(), ::testing::Not(::testing::StartsWith("[")))
        << ::testing::PrintToString(stack);
    sum += sample.values.at(1);
  }
  return sum;
}

class GeneratedCodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSignalsAreLate)
      GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  }
  BasicProfiler<CountedTraits<>> profiler_{ProfilerOptions{.sampling = {.cpu_frequency_hz = 500}}};
};

TEST_F(GeneratedCodeTest, IsLeftByItsFramePointers) {
  const CodePage page(kFramed);
  const CodeRegistration code = profiler_.RegisterCode(Describe(page, kFramed, "framed/code"));
  ASSERT_TRUE(code.status().ok()) << code.status();
  const PprofProfile profile = Sample(profiler_, [&] { CallGenerated(page, 200'000'000); });
  // The return address less one: the last byte of the call.
  EXPECT_GT(CpuOfWholeStacks(profile, "framed/code+0x13"), 150'000'000);
}

TEST_F(GeneratedCodeTest, IsLeftByItsCallFrameInformation) {
  const CodePage page(kUnframed);
  const Bytes eh_frame = EhFrameOfUnframed(page);
  const CodeRegistration code =
      profiler_.RegisterCode(Describe(page, kUnframed, "unframed", eh_frame));
  ASSERT_TRUE(code.status().ok()) << code.status();
  const PprofProfile profile = Sample(profiler_, [&] { CallGenerated(page, 200'000'000); });
  EXPECT_GT(CpuOfWholeStacks(profile, "unframed+0x15"), 150'000'000);
}

TEST_F(GeneratedCodeTest, IsAModuleOfItsOwn) {
  const CodePage page(kLoop);
  const CodeRegistration code = profiler_.RegisterCode(Describe(page, kLoop, "loop"));
  const PprofProfile profile = Sample(profiler_, [&] {
    const EnoughWalks is_sampled(20);
    const std::int64_t end_ns = ThreadCpuNs() + 200'000'000;
    while (ThreadCpuNs() < end_ns || !is_sampled) reinterpret_cast<Generated>(page.start())();
  });
  std::int64_t in_loop_ns = 0;
  for (const PprofProfile::Sample& sample : profile.samples) {
    if (profile.Stack(sample).front().starts_with("loop+0x")) in_loop_ns += sample.values.at(1);
  }
  EXPECT_GT(in_loop_ns, 150'000'000);
  EXPECT_THAT(profile.strings, ::testing::Contains("loop"));
}

// Registered, ended and unmapped all the while, beneath a thread that is sampled in it.
TEST(GeneratedCodeChurn, LosesNoWeightAndInventsNoName) {
  CollectingExporter::Take();
  BasicProfiler<CountedTraits<>> profiler(
      {.sampling = {.cpu_frequency_hz = 1000}, .collector = {.drain_period_ms = 1}});
  ASSERT_TRUE(profiler.Start().ok());
  std::atomic<bool> is_over{false};
  std::thread registers_elsewhere([&] {
    const CodePage page(kLoop);
    while (!is_over) {
      for (std::size_t i = 0; i < 100; ++i) {
        const GeneratedCode part{.name = "elsewhere",
                                 .start = static_cast<std::byte*>(page.start()) + i * 16,
                                 .bytes = 16};
        EXPECT_TRUE(profiler.RegisterCode(part).status().ok());
      }
    }
  });
  std::int64_t cpu_ns = 0;
  std::thread([&] {
    const Registration registration = profiler.RegisterThread("churned");
    const std::int64_t begin_ns = ThreadCpuNs();
    while (ThreadCpuNs() - begin_ns < 500'000'000) {
      const CodePage framed(kFramed);
      const CodePage unframed(kUnframed);
      const Bytes eh_frame = EhFrameOfUnframed(unframed);
      const CodeRegistration one = profiler.RegisterCode(Describe(framed, kFramed, "one"));
      const CodeRegistration two =
          profiler.RegisterCode(Describe(unframed, kUnframed, "two", eh_frame));
      EXPECT_TRUE(one.status().ok() && two.status().ok());
      CallGenerated(framed, 1'000'000);
      CallGenerated(unframed, 1'000'000);
    }
    cpu_ns = ThreadCpuNs() - begin_ns;
  }).join();
  is_over = true;
  registers_elsewhere.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto exports = CollectingExporter::Take();
  EXPECT_GE(SumOfThread(exports, "cpu", "churned"), cpu_ns);
  ASSERT_EQ(exports.size(), 1U);
  const auto profile = ReadPprof(exports[0].bytes);
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(CheckPprof(*profile), "");
  for (const PprofProfile::Sample& sample : profile->samples) {
    EXPECT_THAT(profile->Stack(sample),
                ::testing::Not(::testing::Contains(::testing::StartsWith("elsewhere"))));
  }
}

}  // namespace
}  // namespace strobe::testing
