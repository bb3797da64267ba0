#include "strobe/worker/shared_symbolizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace strobe::internal {
namespace {

// Says how many of its kind there are, and how often each was called.
class CountingSymbolizer {
 public:
  static inline int made = 0;

  explicit CountingSymbolizer(const SymbolOptions& /*options*/) { ++made; }
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) {
    return absl::InternalError(std::to_string(++calls_));
  }

 private:
  int calls_ = 0;
};
using Shared = SharedSymbolizer<CountingSymbolizer>;

std::string CallOf(Shared& symbolizer) {
  return std::string(symbolizer.Symbolize(Profile()).status().message());
}

TEST(SharedSymbolizer, ProgramsWithTheSameOptionsShareOne) {
  SymbolOptions options;
  Shared first(options);
  Shared second(options);
  options.memory_bytes = 1 << 20;
  Shared other(options);
  EXPECT_EQ(CountingSymbolizer::made, 2);
  EXPECT_EQ(CallOf(first), "1");
  EXPECT_EQ(CallOf(second), "2");
  EXPECT_EQ(CallOf(other), "1");
}

// A program's symbolizer is there for the next one, but not those of any number of options.
TEST(SharedSymbolizer, TheLastOnesAreKept) {
  SymbolOptions options;
  const auto use = [&](std::int64_t memory_bytes) {
    options.memory_bytes = memory_bytes;
    Shared symbolizer(options);
    return CallOf(symbolizer);
  };
  EXPECT_EQ(use(1), "1");
  EXPECT_EQ(use(1), "2");
  for (std::int64_t other = 2; other <= static_cast<std::int64_t>(Shared::kMaxKept); ++other)
    EXPECT_EQ(use(other), "1");
  EXPECT_EQ(use(1), "3") << "used again, it is the last one";
  EXPECT_EQ(use(100), "1");
  EXPECT_EQ(use(1), "4");
  EXPECT_EQ(use(2), "1") << "another one has taken its place";
}

}  // namespace
}  // namespace strobe::internal
