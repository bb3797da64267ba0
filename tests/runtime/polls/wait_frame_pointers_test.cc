#include "strobe/runtime/polls/wait_frame_pointers.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr WaitPlace kPlace{.pc = 0x4000, .sp = 0x7000, .frame = 0x4100};

TEST(WaitFramePointers, ARequestIsAnsweredByTheFirstCaptureAfterIt) {
  WaitFramePointers known;
  known.Answer(1000, 0x7000, 0x7040);
  EXPECT_EQ(known.Find(kPlace), nullptr) << "there was no request";
  known.Request(kPlace, 2000);
  known.Answer(1999, 0x7000, 0x7040);
  EXPECT_EQ(known.Find(kPlace), nullptr) << "an earlier capture";
  known.Answer(2001, 0x7000, 0x7050);
  ASSERT_NE(known.Find(kPlace), nullptr);
  EXPECT_EQ(known.Find(kPlace)->fp, 0x7050U);
  EXPECT_EQ(known.Find(kPlace)->caller, 0U);
  known.Answer(2002, 0x7000, 0x7060);
  EXPECT_EQ(known.Find(kPlace)->fp, 0x7050U) << "a later capture";
}

TEST(WaitFramePointers, ACaptureElsewhereIsNoAnswer) {
  WaitFramePointers known;
  known.Request(kPlace, 2000);
  known.Answer(2001, 0x6000, 0x6050);
  EXPECT_EQ(known.Find(kPlace), nullptr);
  known.Answer(2002, 0x7000, 0x7050);
  EXPECT_EQ(known.Find(kPlace), nullptr) << "the request is over";
}

TEST(WaitFramePointers, ANewAnswerReplacesThePlacesOldOne) {
  WaitFramePointers known;
  known.Request(kPlace, 1);
  known.Answer(2, 0x7000, 0x7050);
  known.Confirm(kPlace, 0x4200);
  EXPECT_EQ(known.Find(kPlace)->caller, 0x4200U);
  known.Request(kPlace, 3);
  known.Answer(4, 0x7000, 0x7060);
  EXPECT_EQ(known.Find(kPlace)->fp, 0x7060U);
  EXPECT_EQ(known.Find(kPlace)->caller, 0U);
}

TEST(WaitFramePointers, BeyondTheLimitTheFirstIsForgotten) {
  WaitFramePointers known;
  const auto place = [](std::size_t number) {
    return WaitPlace{.pc = 0x4000 + number, .sp = 0x7000, .frame = 0x4100};
  };
  for (std::size_t i = 0; i <= WaitFramePointers::kMaxPlaces; ++i) {
    known.Request(place(i), 1);
    known.Answer(2, 0x7000, 0x7050);
  }
  EXPECT_EQ(known.Find(place(0)), nullptr);
  EXPECT_NE(known.Find(place(1)), nullptr);
  EXPECT_NE(known.Find(place(WaitFramePointers::kMaxPlaces)), nullptr);
}

}  // namespace
}  // namespace strobe::internal
