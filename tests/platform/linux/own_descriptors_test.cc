#include "strobe/platform/linux/own_descriptors.h"

#include <unistd.h>

#include <vector>

#include "gtest/gtest.h"
#include "support/in_child.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

using testing::IsOpen;
using testing::OpenSocket;

// Whether a fork's child has the descriptor.
bool IsInChild(int descriptor) {
  return testing::HoldsInChild([&] { return IsOpen(descriptor); });
}

TEST(OwnDescriptors, AForksChildClosesThemAndTheParentKeepsThem) {
  const int own = OwnDescriptor(OpenSocket());
  const int other = OpenSocket();
  EXPECT_FALSE(IsInChild(own));
  EXPECT_TRUE(IsInChild(other)) << "it is the program's";
  EXPECT_TRUE(IsOpen(own));
  CloseOwnDescriptor(own);
  EXPECT_FALSE(IsOpen(own));
  close(other);
}

TEST(OwnDescriptors, WhatTheProgramHasPutThereIsLeftAlone) {
  const int own = OwnDescriptor(OpenSocket());
  const int programs = OpenSocket();
  ASSERT_EQ(dup2(programs, own), own);
  EXPECT_TRUE(IsInChild(own));
  CloseOwnDescriptor(own);
  EXPECT_TRUE(IsOpen(own));
  close(own);
  close(programs);
}

TEST(OwnDescriptors, TooManyAreNoError) {
  std::vector<int> own;
  for (std::size_t i = 0; i < kMaxOwnDescriptors + 1; ++i)
    own.push_back(OwnDescriptor(OpenSocket()));
  EXPECT_FALSE(IsInChild(own.front()));
  EXPECT_TRUE(IsInChild(own.back()));
  for (const int number : own) CloseOwnDescriptor(number);
  for (const int number : own) EXPECT_FALSE(IsOpen(number));
}

}  // namespace
}  // namespace strobe::internal
