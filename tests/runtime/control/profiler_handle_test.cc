#include "strobe/runtime/control/profiler_handle.h"

#include <array>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

struct Calls {
  int made = 0;
  int retired = 0;
  int toggles = 0;
  int events = 0;
  bool is_of_this_process = true;
  bool has_memory = true;
  std::vector<std::string> lines;
};

class FakeCore final : public AbstractCore {
 public:
  explicit FakeCore(Calls& calls) : calls_(calls) {}
  void EndRegistration(void*, std::uint64_t) override {}
  [[nodiscard]] bool IsOfThisProcess() const override { return calls_.is_of_this_process; }
  Registration RegisterThread(std::string_view) override { return {}; }
  CodeRegistration RegisterCode(const GeneratedCode&) override { return {}; }
  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status Stop() override { return absl::AbortedError("stopped"); }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::StatusOr<Profile> Record(const RecordingOptions&) override { return Profile(); }
  bool CaptureHere(const EventSample& event,
                   const NativeRegisters* /*registers*/) noexcept override {
    calls_.events += static_cast<int>(event.amounts[0]);
    return true;
  }
  absl::Status DumpLast() override { return absl::OkStatus(); }
  absl::Status ToggleStatus() override {
    ++calls_.toggles;
    return absl::AbortedError("refused");
  }
  Stats GetStats() override { return {}; }
  std::string Diagnose() override { return "well"; }
  void Retire() override {
    ++calls_.retired;
    delete this;
  }
  [[nodiscard]] bool IsRunning() const override { return false; }
  [[nodiscard]] OwnRegistration FindOwnRegistration() const override { return {}; }

 private:
  Calls& calls_;
};

class FakeFactory final : public CoreFactory {
 public:
  explicit FakeFactory(Calls& calls) : calls_(calls) {}
  [[nodiscard]] std::unique_ptr<AbstractCore> Make(const ProfilerOptions&) const override {
    if (!calls_.has_memory) throw std::bad_alloc();
    ++calls_.made;
    return std::make_unique<FakeCore>(calls_);
  }
  [[nodiscard]] ProfilerOptions WithEnvironment(ProfilerOptions options) const override {
    if (*options.sampling.toggle_signal == 0) options.enabled = false;
    return options;
  }
  void WriteLine(const std::string& line) const override { calls_.lines.push_back(line); }

 private:
  Calls& calls_;
};

TEST(ProfilerHandle, ItsCoreGoesWithIt) {
  Calls calls;
  {
    ProfilerHandle handle({}, std::make_unique<FakeFactory>(calls));
    EXPECT_FALSE(*handle.options().enabled) << "the environment's word counts";
    EXPECT_EQ(handle.Stop(), absl::AbortedError("stopped"));
    EXPECT_TRUE(handle.Record({}).ok());
    EXPECT_EQ(handle.Diagnose(), "well");
    EXPECT_TRUE(handle.CaptureHere({.amounts = std::array<std::int64_t, 1>{3}}, nullptr));
    handle.Warn("it", absl::AbortedError("is so"));
  }
  EXPECT_EQ(calls.made, 1);
  EXPECT_EQ(calls.retired, 1);
  EXPECT_THAT(calls.lines, ElementsAre("strobe: it: is so"));
}

TEST(ProfilerHandle, AForksChildMakesACoreOfItsOwnAtItsFirstUse) {
  Calls calls;
  {
    ProfilerHandle handle({}, std::make_unique<FakeFactory>(calls));
    calls.is_of_this_process = false;
    EXPECT_TRUE(handle.CaptureHere({.amounts = std::array<std::int64_t, 1>{3}}, nullptr));
    EXPECT_EQ(calls.made, 1) << "an event must not allocate";
    EXPECT_TRUE(handle.Start().ok());
    EXPECT_EQ(calls.made, 2);
  }
  EXPECT_EQ(calls.retired, 0) << "a core of another process is left as it is";
}

TEST(ProfilerHandle, AToggleBeginsWithEachCoreThatIsUsed) {
  Calls calls;
  {
    ProfilerHandle handle({.sampling = {.toggle_signal = 12}},
                          std::make_unique<FakeFactory>(calls));
    EXPECT_EQ(calls.toggles, 1);
    EXPECT_THAT(calls.lines, ElementsAre("strobe: a signal does nothing: refused"));
    calls.is_of_this_process = false;
    EXPECT_TRUE(handle.Start().ok());
    EXPECT_EQ(calls.toggles, 2);
    EXPECT_EQ(calls.lines.size(), 1U);
  }
  ProfilerHandle handle({}, std::make_unique<FakeFactory>(calls));
  EXPECT_EQ(calls.toggles, 2);
}

TEST(ProfilerHandle, WithoutMemoryAllCallsSaySo) {
  Calls calls;
  calls.has_memory = false;
  for (const bool has_factory : {true, false}) {
    ProfilerHandle handle({}, has_factory ? std::make_unique<FakeFactory>(calls) : nullptr);
    EXPECT_EQ(handle.Start().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(handle.RegisterThread("a").status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(handle.RegisterCode({}).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(handle.Record({}).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(handle.GetStats().out_of_memory, 1u);
    EXPECT_EQ(handle.Diagnose(), "Out of memory.");
    EXPECT_FALSE(handle.CaptureHere({}, nullptr));
  }
  EXPECT_EQ(calls.made, 0);
}

}  // namespace
}  // namespace strobe::internal
