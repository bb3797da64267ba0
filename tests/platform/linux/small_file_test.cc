#include "../../../src/platform/linux/files/small_file.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

TEST(ReadStartTest, ReadsTheFirstBytes) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "file").string();
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return ReadStart(path);
  };
  EXPECT_EQ(read(""), "");
  const std::string with_zero("a\0b\n", 4);
  EXPECT_EQ(read(with_zero), with_zero);
  const std::string most(4096, 'x');
  EXPECT_EQ(read(most), most);
  EXPECT_EQ(read(most + "and more"), most);
}

TEST(ReadStartTest, ReadsFilesOfTheKernel) {
  EXPECT_NE(ReadStart("/proc/self/status").find("\nPid:\t"), std::string::npos);
}

TEST(ReadStartTest, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(ReadStart("/no/such/file"), "");
  EXPECT_EQ(ReadStart(""), "");
  EXPECT_EQ(ReadStart("/proc/self"), "") << "a directory";
}

}  // namespace
}  // namespace strobe::internal
