#include "strobe/testing/ring_conformance.h"

#include "strobe/ring/spsc_ring.h"

namespace strobe::testing {
namespace {

// A plain ring under a lock's discipline would pass too: here the one that is shipped.
INSTANTIATE_TYPED_TEST_SUITE_P(SpscRing, RingConformance, SpscRing);

TEST(RingStorageTest, TellsHowFarItWasTouched) {
  RingStorage storage(1024);
  EXPECT_EQ(storage.touched_bytes(), 0u);
  storage.bytes()[99] = std::byte{1};
  EXPECT_EQ(storage.touched_bytes(), 100u);
}

TEST(RingStorageTest, RecordsAreToldApart) {
  std::byte record[16];
  FillRingRecord(record, 5);
  EXPECT_TRUE(IsRingRecord(record, 5));
  EXPECT_FALSE(IsRingRecord(record, 6));
  record[9] ^= std::byte{1};
  EXPECT_FALSE(IsRingRecord(record, 5));
}

}  // namespace
}  // namespace strobe::testing
