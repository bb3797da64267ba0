#include "strobe/ring/sample_ring.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

// The smallest model there is: it has no space, ever.
struct NoRing {
  void Reset(std::span<std::byte> /*memory*/) noexcept {}
  std::byte* Reserve(std::size_t /*bytes*/) noexcept { return nullptr; }
  void Commit(std::size_t /*bytes*/) noexcept {}
  std::span<const std::byte> Peek() noexcept { return {}; }
  void Pop() noexcept {}
  [[nodiscard]] std::size_t used_bytes() const noexcept { return 0; }
  [[nodiscard]] std::uint64_t corruptions() const noexcept { return 0; }
  static std::size_t MaxRecordBytes(std::size_t /*capacity*/) { return 0; }
};
static_assert(SampleRing<NoRing>);

// Each lacks one promise.
struct RingWithoutPop : NoRing {
  void Pop() = delete;
};
struct RingThatMayThrow : NoRing {
  std::byte* Reserve(std::size_t /*bytes*/) { return nullptr; }
};
struct RingThatHandsOutWritableRecords : NoRing {
  std::span<std::byte> Peek() noexcept { return {}; }
};
static_assert(!SampleRing<RingWithoutPop>);
static_assert(!SampleRing<RingThatMayThrow>);
static_assert(!SampleRing<RingThatHandsOutWritableRecords>);
static_assert(!SampleRing<int>);

TEST(SampleRingTest, SmallestModelIsUsableThroughTheContractAlone) {
  NoRing ring;
  ring.Reset({});
  EXPECT_EQ(ring.Reserve(1), nullptr);
  EXPECT_TRUE(ring.Peek().empty());
}

}  // namespace
}  // namespace strobe
