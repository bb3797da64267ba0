#include "strobe/base/memory_guard.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace strobe::internal {
namespace {

TEST(HasMemoryFor, RunsTheBody) {
  int runs = 0;
  EXPECT_TRUE(HasMemoryFor([&] { ++runs; }));
  const auto named = [&] { ++runs; };
  EXPECT_TRUE(HasMemoryFor(named));
  EXPECT_EQ(runs, 2);
}

TEST(HasMemoryFor, IsFalseWhereMemoryRanOut) {
  EXPECT_FALSE(HasMemoryFor([] { throw std::bad_alloc(); }));
  EXPECT_FALSE(HasMemoryFor([] { throw std::bad_array_new_length(); }));
}

TEST(HasMemoryFor, LetsOtherExceptionsPass) {
  EXPECT_THROW(static_cast<void>(HasMemoryFor([] { throw std::runtime_error("other"); })),
               std::runtime_error);
}

TEST(MakeStatus, HasCodeAndMessage) {
  const absl::Status status = MakeStatus(absl::StatusCode::kCancelled, "moved");
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(status.message(), "moved");
  EXPECT_TRUE(absl::IsResourceExhausted(OutOfMemory()));
}

}  // namespace
}  // namespace strobe::internal
