#include "strobe/runtime/threads/calling_thread.h"

#include <thread>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;

class CallingThreadTest : public ::testing::Test {
 protected:
  using Registry = ThreadRegistry<ManualTraits>;
  using Thread = Registry::Thread;

  void SetUp() override { ManualPlatform::Reset(); }
  absl::StatusOr<Thread*> Register(Registry& registry) {
    return RegisterCallingThread(registry, "thread", signal_, ThreadNeeds());
  }

  SignalInUse signal_{.requested = 23};
  Registry registry_{4, 4096};
};

TEST_F(CallingThreadTest, SignalsFindItsThreadUntilItEnds) {
  Thread* const thread = *Register(registry_);
  EXPECT_EQ(RegistrationLinks(), thread);
  EXPECT_EQ(thread->channel->thread_id, ManualPlatform::CurrentThreadId());
  EXPECT_FALSE(UnregisterCallingThread(registry_, thread));
  EXPECT_EQ(RegistrationLinks(), nullptr);
  EXPECT_EQ(registry_.live_count(), 0u);
}

TEST_F(CallingThreadTest, OneRegistrationAThreadAndProfiler) {
  Thread* const thread = *Register(registry_);
  EXPECT_TRUE(absl::IsAlreadyExists(Register(registry_).status()));
  EXPECT_EQ(RegistrationLinks(), thread);
  std::thread([&] {
    Thread* const other = *Register(registry_);
    EXPECT_NE(other, thread);
    UnregisterCallingThread(registry_, other);
  }).join();
  UnregisterCallingThread(registry_, thread);
  Thread* const again = *Register(registry_);
  UnregisterCallingThread(registry_, again);
}

TEST_F(CallingThreadTest, RegistrationsWithSeveralProfilersEndInAnyOrder) {
  Registry second(4, 4096);
  Registry third(4, 4096);
  Thread* const a = *Register(registry_);
  Thread* const b = *Register(second);
  Thread* const c = *Register(third);
  UnregisterCallingThread(second, b);
  EXPECT_EQ(RegistrationLinks(), c);
  EXPECT_EQ(c->next, a);
  EXPECT_EQ(FindCallingThread(second), nullptr);
  EXPECT_EQ(FindCallingThread(third), c);
  UnregisterCallingThread(third, c);
  UnregisterCallingThread(registry_, a);
  EXPECT_EQ(RegistrationLinks(), nullptr);
}

TEST_F(CallingThreadTest, ACaptureThatNeverEndedDoesNotBlockTheNextThread) {
  Thread* const thread = *Register(registry_);
  thread->channel->is_capturing = true;
  UnregisterCallingThread(registry_, thread);
  EXPECT_FALSE(thread->channel->is_capturing);
}

TEST_F(CallingThreadTest, TheLastOneOfAnOwnerThatIsGoneIsTold) {
  Thread* const thread = *Register(registry_);
  EXPECT_EQ(registry_.Orphan(), 1u);
  EXPECT_TRUE(UnregisterCallingThread(registry_, thread));
}

}  // namespace
}  // namespace strobe::internal
