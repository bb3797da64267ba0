#include "../../src/allocations/allocate.h"

#include <cerrno>
#include <cstddef>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Large enough that the sampler always wants it, whatever the interval.
constexpr std::size_t kHuge = std::size_t{1} << 60;

TEST(AllocatedTest, GivesWhatWasMadeAndMakesItOnce) {
  int block = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kHuge}) {
    int made = 0;
    const auto make = [&]() -> void* {
      ++made;
      return &block;
    };
    EXPECT_EQ(Allocated(size, make), &block) << size;
    EXPECT_EQ(made, 1) << size;
  }
}

TEST(AllocatedTest, AFailureStaysAFailure) {
  for (const std::size_t size : {std::size_t{1}, kHuge}) {
    errno = 0;
    EXPECT_EQ(Allocated(size,
                        []() -> void* {
                          errno = ENOMEM;
                          return nullptr;
                        }),
              nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
}

}  // namespace
}  // namespace strobe::internal
