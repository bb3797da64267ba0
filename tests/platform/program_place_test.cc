#include "strobe/platform/program_place.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(ProgramPlace, AContainersIdIsTheLastPartOfItsGroupsPath) {
  const std::string id(64, 'a');
  const std::string uuid = "0123abcd-0123-0123-0123-0123456789ab";
  for (const std::string& line :
       {"0::/docker/" + id, "0::/system.slice/docker-" + id + ".scope",
        "11:cpu:/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope",
        "0::/kubepods/besteffort/pod1/" + id, "0::/system.slice/containerd.service/cri:" + id})
    EXPECT_EQ(ContainerIdIn("12:memory:/\n" + line + "\n"), id) << line;
  EXPECT_EQ(ContainerIdIn("1:name=systemd:/ecs/task/" + uuid), uuid);
}

TEST(ProgramPlace, WhatIsNoIdIsNone) {
  for (const char* const text :
       {"", "\n", "0::/", "0::/init.scope\n", "0::/user.slice/user-1000.slice/session-2.scope",
        "0::/docker/0123", "no path"})
    EXPECT_EQ(ContainerIdIn(text), "") << text;
  EXPECT_EQ(ContainerIdIn("0::/docker/" + std::string(64, 'g')), "") << "no hexadecimal digits";
}

}  // namespace
}  // namespace strobe::internal
