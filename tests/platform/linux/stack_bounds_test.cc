#include "../../../src/platform/linux/stack_bounds.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

Address Here() { return reinterpret_cast<Address>(__builtin_frame_address(0)); }

// What the C library says of the calling thread.
StackBounds BoundsByLibrary() {
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return {.low = reinterpret_cast<Address>(low), .high = reinterpret_cast<Address>(low) + size};
}

TEST(StackBoundsTest, TheInitialThreadsStackGrows) {
  if (getpid() != syscall(SYS_gettid)) GTEST_SKIP() << "the tests run in another thread";
  const StackBounds bounds = CurrentStackBounds();
  EXPECT_TRUE(bounds.Holds(Here()));
  EXPECT_TRUE(bounds.grows);
  EXPECT_LE(bounds.high, BoundsByLibrary().high);
}

TEST(StackBoundsTest, AThreadsStackIsWhatTheLibraryMade) {
  // The second thread's are found in another way than the first's.
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      const StackBounds bounds = CurrentStackBounds();
      const StackBounds by_library = BoundsByLibrary();
      EXPECT_TRUE(bounds.Holds(Here()));
      EXPECT_FALSE(bounds.grows);
      EXPECT_EQ(bounds.low, by_library.low);
      EXPECT_EQ(bounds.high, by_library.high);
    }).join();
  }
}

TEST(StackBoundsTest, OfEverySizeOfStack) {
  for (const std::size_t bytes : {std::size_t{1} << 18, std::size_t{1} << 21}) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    pthread_t thread;
    bool is_right = false;
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void* out) -> void* {
                    const StackBounds bounds = CurrentStackBounds();
                    const StackBounds by_library = BoundsByLibrary();
                    *static_cast<bool*>(out) = bounds.Holds(Here()) &&
                                               bounds.low == by_library.low &&
                                               bounds.high == by_library.high;
                    return nullptr;
                  },
                  &is_right),
              0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_TRUE(is_right) << bytes;
  }
}

}  // namespace
}  // namespace strobe::internal
