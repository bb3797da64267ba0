#include "strobe/gperftools/profiler.h"

#include <pthread.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "../../src/gperftools/cpu_profile.h"
#include "../../src/gperftools/filtered_unwinder.h"
#include "../../src/gperftools/variables.h"
#include "gmock/gmock.h"
#include "platform/test_system.h"
#include "read_profile.h"

namespace strobe::testing {
namespace {

using ::testing::HasSubstr;

// Enough that no function of a test is missed.
constexpr int kSamples = 20;

ProfilerState StateNow() {
  ProfilerState state;
  ProfilerGetCurrentState(&state);
  return state;
}

// Computes until the process has so many samples more.
template <int kNumber>
[[gnu::noinline]] void Compute(int samples) {
  const int end = internal::SampleFilter::taken.load() + samples;
  volatile unsigned sum = kNumber;
  while (internal::SampleFilter::taken.load() < end) {
    for (unsigned i = 0; i < 10'000; ++i) sum = sum + i;
  }
}
[[gnu::noinline]] void WorkOfMain() { Compute<1>(kSamples); }
[[gnu::noinline]] void WorkOfThread() { Compute<2>(kSamples); }
[[gnu::noinline]] void WorkOfCThread() { Compute<4>(kSamples); }
[[gnu::noinline]] void WorkAfterFlush() { Compute<3>(kSamples); }

class ProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    std::filesystem::remove(path_);
  }
  void TearDown() override {
    ProfilerStop();
    std::filesystem::remove_all(directory_);
  }

  const std::filesystem::path directory_ = std::filesystem::path(::testing::TempDir()) /
                                           ("strobe_gperftools_" + std::to_string(getpid()));
  const std::filesystem::path path_ = directory_ / "profile";
};

TEST_F(ProfilerTest, TheFileHasAllThreads) {
  std::thread earlier;
  std::atomic<bool> may_work{false};
  earlier = std::thread([&] {
    may_work.wait(false);
    WorkOfThread();
  });
  ASSERT_EQ(ProfilerStart(path_.c_str()), 1);
  WorkOfMain();
  may_work.store(true);
  may_work.notify_all();
  earlier.join();
  thrd_t c_thread{};
  const auto run = [](void* /*argument*/) -> int {
    WorkOfCThread();
    return 0;
  };
  ASSERT_EQ(thrd_create(&c_thread, run, nullptr), thrd_success);
  thrd_join(c_thread, nullptr);
  ProfilerStop();
  const PprofProfile profile = ProfileAt(path_);
  EXPECT_GT(AmountOf(profile, "WorkOfMain", "cpu"), 0);
  EXPECT_GT(AmountOf(profile, "WorkOfThread", "cpu"), 0);
  EXPECT_GT(AmountOf(profile, "WorkOfCThread", "cpu"), 0);
  EXPECT_EQ(AmountOf(profile, "RunProfiled", "cpu"), 0) << "no frame of ours is in a stack";
  std::set<std::string> threads;
  for (const auto& sample : profile.samples) {
    for (const auto& label : sample.labels)
      if (label.key == "thread_id") threads.insert(label.text);
  }
  EXPECT_EQ(threads.size(), 3U) << "the profiler's own threads are not there";
}

TEST_F(ProfilerTest, AFlushWritesWhatThereIsAndTheEndAllOfIt) {
  ASSERT_EQ(ProfilerStart(path_.c_str()), 1);
  EXPECT_EQ(std::filesystem::file_size(path_), 0U) << "what was there is gone";
  WorkOfMain();
  ProfilerFlush();
  const std::int64_t flushed_ns = AmountOf(ProfileAt(path_), "WorkOfMain", "cpu");
  EXPECT_GT(flushed_ns, 0);
  WorkAfterFlush();
  ProfilerStop();
  const PprofProfile profile = ProfileAt(path_);
  EXPECT_GE(AmountOf(profile, "WorkOfMain", "cpu"), flushed_ns);
  EXPECT_GT(AmountOf(profile, "WorkAfterFlush", "cpu"), 0);
}

TEST_F(ProfilerTest, TheStateSaysWhatIsUnderWay) {
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
  EXPECT_EQ(StateNow().enabled, 0);
  EXPECT_EQ(StateNow().samples_gathered, 0);
  EXPECT_STREQ(StateNow().profile_name, "");
  const std::time_t before = std::time(nullptr);
  ASSERT_EQ(ProfilerStart(path_.c_str()), 1);
  EXPECT_EQ(ProfilerStart((path_.string() + "2").c_str()), 0) << "one is under way";
  EXPECT_FALSE(std::filesystem::exists(path_.string() + "2"));
  ProfilerDisable();
  ProfilerEnable();
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 1);
  WorkOfMain();
  const ProfilerState state = StateNow();
  EXPECT_EQ(state.enabled, 1);
  EXPECT_GE(state.start_time, before);
  EXPECT_EQ(state.profile_name, path_.string());
  EXPECT_GE(state.samples_gathered, kSamples);
  const volatile int* taken = nullptr;
  std::memcpy(&taken, state.profile_name + path_.string().size() + 1, sizeof(taken));
  EXPECT_GE(*taken, state.samples_gathered);
  ProfilerStop();
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
  EXPECT_EQ(StateNow().start_time, 0);
  ProfilerStop();
  ProfilerFlush();
}

thread_local bool is_left_out = false;

[[gnu::noinline]] void WorkLeftOut(const std::atomic<int>& calls) {
  const int end = calls + kSamples;
  volatile unsigned sum = 0;
  while (calls < end) sum = sum + 1;
}

TEST_F(ProfilerTest, AFilterLeavesSamplesOut) {
  std::atomic<int> argument{0};
  ::ProfilerOptions options{};
  options.filter_in_thread = [](void* given) {
    static_cast<std::atomic<int>*>(given)->fetch_add(1);
    return is_left_out ? 0 : 1;
  };
  options.filter_in_thread_arg = &argument;
  ASSERT_EQ(ProfilerStartWithOptions(path_.c_str(), &options), 1);
  std::thread([&] {
    is_left_out = true;
    WorkLeftOut(argument);
  }).join();
  WorkOfMain();
  ProfilerStop();
  const PprofProfile profile = ProfileAt(path_);
  EXPECT_GT(AmountOf(profile, "WorkOfMain", "cpu"), 0);
  EXPECT_EQ(AmountOf(profile, "WorkLeftOut", "cpu"), 0);
  for (const auto& sample : profile.samples) EXPECT_FALSE(sample.locations.empty());
  // The next profile has no filter.
  ASSERT_EQ(ProfilerStart(path_.c_str()), 1);
  is_left_out = true;
  WorkOfMain();
  is_left_out = false;
  ProfilerStop();
  EXPECT_GT(AmountOf(ProfileAt(path_), "WorkOfMain", "cpu"), 0);
}

TEST_F(ProfilerTest, AFileThatCannotBeWrittenIsALineAndAResult) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ProfilerStart((directory_ / "none/profile").c_str()), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "strobe: can't turn on cpu profiling for '" +
                                                          (directory_ / "none/profile").string() +
                                                          "': No such file or directory\n");
  EXPECT_EQ(ProfilerStart(nullptr), 0);
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
}

TEST_F(ProfilerTest, AForksChildHasNoProfileAndMayBeginOne) {
  ASSERT_EQ(ProfilerStart(path_.c_str()), 1);
  WorkOfMain();
  const std::string of_child = path_.string() + "_child";
  const pid_t child = fork();
  if (child == 0) {
    bool is_right = ProfilingIsEnabledForAllThreads() == 0;
    ProfilerStop();
    is_right = is_right && ProfilerStart(of_child.c_str()) == 1;
    WorkAfterFlush();
    ProfilerStop();
    _exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ProfilerStop();
  EXPECT_GT(AmountOf(ProfileAt(path_), "WorkOfMain", "cpu"), 0);
  EXPECT_EQ(AmountOf(ProfileAt(path_), "WorkAfterFlush", "cpu"), 0);
  EXPECT_GT(AmountOf(ProfileAt(of_child), "WorkAfterFlush", "cpu"), 0);
}

TEST_F(ProfilerTest, ThreadsThatHaveNoOtherWayMayRegister) {
  ProfilerRegisterThread();  // registered already
  std::thread([] { ProfilerRegisterThread(); }).join();
}

// What the programs below run: the variables are all that asks for a profile.
TEST(VariablesProgram, DISABLED_Works) {
  ASSERT_EQ(ProfilingIsEnabledForAllThreads(), 1);
  WorkOfMain();
}
TEST(VariablesProgram, DISABLED_IsNotProfiled) { EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0); }
TEST(VariablesProgram, DISABLED_Switches) {
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
  for (int i = 0; i < 2; ++i) {
    for (const int wanted : {1, 0}) {
      kill(getpid(), SIGUSR2);
      while (ProfilingIsEnabledForAllThreads() != wanted) std::this_thread::yield();
      if (wanted == 1) WorkOfMain();
    }
  }
}

class VariablesTest : public ProfilerTest {
 protected:
  void Set(const char* name, const std::string& value) {
    SetVariable(name, value);
    set_.insert(name);
  }
  void TearDown() override {
    for (const std::string& name : set_) UnsetVariable(name.c_str());
    ProfilerTest::TearDown();
  }
  // Runs that test of this program. Returns what it has written to standard error.
  std::string Run(const std::string& name) {
    EXPECT_EQ(RunThisProgram({"--gtest_also_run_disabled_tests",
                              "--gtest_filter=VariablesProgram.DISABLED_" + name},
                             directory_),
              0)
        << BytesOf(directory_ / "output");
    return BytesOf(directory_ / "errors");
  }
  // How many files there are beside those that Run writes.
  [[nodiscard]] int Files() const {
    int files = -2;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory_))
      ++files;
    return files;
  }

 private:
  std::set<std::string> set_;
};

TEST_F(VariablesTest, CpuprofileIsTheFileOfTheWholeProgram) {
  Set("CPUPROFILE", path_);
  Set("CPUPROFILE_FREQUENCY", "200");
  Set("CPUPROFILE_PER_THREAD_TIMERS", "1");
  EXPECT_EQ(Run("Works"), "");
  const PprofProfile profile = ProfileAt(path_);
  EXPECT_GT(AmountOf(profile, "WorkOfMain", "cpu"), 0);
  EXPECT_EQ(profile.period, 5'000'000);
}

TEST_F(VariablesTest, AChildsFileHasItsProcessId) {
  Set("CPUPROFILE", path_);
  Set("CPUPROFILE_USE_PID", "1");
  EXPECT_EQ(Run("Works"), "");
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Files(), 1);
}

TEST_F(VariablesTest, RealtimeIsWallTime) {
  Set("CPUPROFILE", path_);
  Set("CPUPROFILE_REALTIME", "1");
  EXPECT_EQ(Run("Works"), "");
  const PprofProfile profile = ProfileAt(path_);
  EXPECT_GT(AmountOf(profile, "WorkOfMain", "wall"), 0);
  EXPECT_EQ(AmountOf(profile, "WorkOfMain", "cpu"), -1);
}

TEST_F(VariablesTest, ASignalBeginsAndEndsProfiles) {
  Set("CPUPROFILE", path_);
  Set("CPUPROFILESIGNAL", std::to_string(SIGUSR2));
  EXPECT_EQ(Run("Switches"), "");
  EXPECT_GT(AmountOf(ProfileAt(path_.string() + ".0"), "WorkOfMain", "cpu"), 0);
  EXPECT_GT(AmountOf(ProfileAt(path_.string() + ".1"), "WorkOfMain", "cpu"), 0);
  EXPECT_EQ(Files(), 2);
}

TEST_F(VariablesTest, WrongValuesAreOneLineEach) {
  EXPECT_EQ(Run("IsNotProfiled"), "");
  Set("CPUPROFILE", directory_ / "none/profile");
  EXPECT_THAT(Run("IsNotProfiled"), HasSubstr("can't turn on cpu profiling for '"));
  Set("CPUPROFILE", path_);
  Set("CPUPROFILESIGNAL", "77");
  EXPECT_EQ(Run("IsNotProfiled"),
            "strobe: CPUPROFILESIGNAL=77 is ignored: expected an integer from 1 to 64\n");
  UnsetVariable("CPUPROFILESIGNAL");
  Set("CPUPROFILE_FREQUENCY", "often");
  EXPECT_EQ(Run("Works"),
            "strobe: CPUPROFILE_FREQUENCY=often is ignored: expected an integer from 1 to 4000\n");
  EXPECT_EQ(ProfileAt(path_).period, 10'000'000);
}

TEST_F(VariablesTest, TheFirstProcessMarksItsChildren) {
  Set("STROBE_TEST_PATH", "/path");
  Set("STROBE_TEST_PATH_USE_PID", "0");
  EXPECT_EQ(internal::UniquePath("STROBE_TEST_PATH"), "/path");
  EXPECT_EQ(internal::UniquePath("STROBE_TEST_PATH"), "/path_" + std::to_string(getpid()));
  EXPECT_EQ(internal::UniquePath("STROBE_TEST_NONE"), std::nullopt);
}

}  // namespace
}  // namespace strobe::testing
