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
  using Slot = Registry::Slot;

  void SetUp() override { ManualPlatform::Reset(); }
  absl::StatusOr<Slot*> Register(Registry& registry) {
    return RegisterCallingThread(registry, "thread", signal_, ThreadNeeds());
  }

  SignalInUse signal_{.requested = 23};
  Registry registry_{4, 4096};
};

TEST_F(CallingThreadTest, SignalsFindItsSlotUntilItEnds) {
  Slot* const slot = *Register(registry_);
  EXPECT_EQ(ThreadLinks(), slot);
  EXPECT_EQ(slot->channel->thread_id, ManualPlatform::CurrentThreadId());
  EXPECT_FALSE(UnregisterCallingThread(registry_, slot));
  EXPECT_EQ(ThreadLinks(), nullptr);
  EXPECT_EQ(registry_.live_count(), 0u);
}

TEST_F(CallingThreadTest, OneRegistrationAThreadAndProfiler) {
  Slot* const slot = *Register(registry_);
  EXPECT_TRUE(absl::IsAlreadyExists(Register(registry_).status()));
  EXPECT_EQ(ThreadLinks(), slot);
  std::thread([&] {
    Slot* const other = *Register(registry_);
    EXPECT_NE(other, slot);
    UnregisterCallingThread(registry_, other);
  }).join();
  UnregisterCallingThread(registry_, slot);
  Slot* const again = *Register(registry_);
  UnregisterCallingThread(registry_, again);
}

TEST_F(CallingThreadTest, RegistrationsWithSeveralProfilersEndInAnyOrder) {
  Registry second(4, 4096);
  Registry third(4, 4096);
  Slot* const a = *Register(registry_);
  Slot* const b = *Register(second);
  Slot* const c = *Register(third);
  UnregisterCallingThread(second, b);
  EXPECT_EQ(ThreadLinks(), c);
  EXPECT_EQ(c->next, a);
  EXPECT_FALSE(IsCallingThreadRegistered(second));
  EXPECT_TRUE(IsCallingThreadRegistered(third));
  UnregisterCallingThread(third, c);
  UnregisterCallingThread(registry_, a);
  EXPECT_EQ(ThreadLinks(), nullptr);
}

TEST_F(CallingThreadTest, ACaptureThatNeverEndedDoesNotBlockTheNextThread) {
  Slot* const slot = *Register(registry_);
  slot->channel->is_capturing = true;
  UnregisterCallingThread(registry_, slot);
  EXPECT_FALSE(slot->channel->is_capturing);
}

TEST_F(CallingThreadTest, TheLastOneOfAnOwnerThatIsGoneIsTold) {
  Slot* const slot = *Register(registry_);
  EXPECT_EQ(registry_.Orphan(), 1u);
  EXPECT_TRUE(UnregisterCallingThread(registry_, slot));
}

}  // namespace
}  // namespace strobe::internal
