#include "strobe/platform/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::uint64_t kProcess = 42;

// A folder with the files that a test writes.
class MachineTest : public ::testing::Test {
 protected:
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  [[nodiscard]] LabelSet Read() const { return ReadMachine(kProcess, root_); }
  // With this control group, and what it has in a file.
  [[nodiscard]] std::string QuotaWith(const std::string& groups, const std::string& path,
                                      const std::string& text) const {
    Write("/proc/42/cgroup", groups);
    Write("/sys/fs/cgroup" + path, text);
    return Read().Text("cpu_quota");
  }

 private:
  static std::string MakeFolder() {
    std::string path = std::filesystem::temp_directory_path() / "strobe_machine_XXXXXX";
    return mkdtemp(path.data());
  }
  const std::string root_ = MakeFolder();
};

TEST_F(MachineTest, HasWhatTheFilesSay) {
  const std::string id(64, 'a');
  Write("/proc/42/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,5,8-9\n");
  Write("/proc/42/cgroup", "0::/docker/" + id + "\n");
  Write("/proc/42/comm", "server\n");
  Write("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");
  Write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  Write("/etc/os-release",
        "PRETTY_NAME=\"Own 12 (x)\"\nNAME=\"Own GNU/Linux\"\nVERSION_ID=\"12\"\n");
  const LabelSet machine = Read();
  EXPECT_EQ(machine.Number("cpus"), 6);
  EXPECT_EQ(machine.Number("memory_bytes"), 8'192'000'000);
  EXPECT_EQ(machine.Text("os"), "Own GNU/Linux");
  EXPECT_EQ(machine.Text("os_version"), "12");
  EXPECT_EQ(machine.Text("kernel"), "6.1.0-18-amd64");
  EXPECT_EQ(machine.Text("container_id"), id);
  EXPECT_EQ(machine.Text("process_name"), "server");
  EXPECT_EQ(machine.Text("cpu_quota"), "") << "none";
  EXPECT_FALSE(machine.Text("architecture").empty());
}

TEST_F(MachineTest, WhatIsMissingOrWrongIsLeftOut) {
  const auto is_of_files = [](const Label& label) {
    return label.key != "architecture" && label.key != "cpu_model";
  };
  EXPECT_TRUE(std::ranges::none_of(Read().labels(), is_of_files));
  Write("/proc/42/status", "Cpus_allowed_list:\t3-1\n");
  Write("/proc/42/cgroup", "0:/\n::\nnothing\n0::/../../..\n");
  Write("/proc/meminfo", "MemTotal: much\n");
  Write("/sys/fs/cgroup/cpu.max", "much 100000\n");
  EXPECT_TRUE(std::ranges::none_of(Read().labels(), is_of_files));
  for (const char* list : {"0-99999999999", "a", "-1", "0-", "1--2"}) {
    Write("/proc/42/status", std::string("Cpus_allowed_list:\t") + list + "\n");
    EXPECT_EQ(Read().Number("cpus"), 0) << list;
  }
}

TEST_F(MachineTest, TheProcessorIsTheSystems) {
  std::ifstream file("/proc/cpuinfo");
  std::string model;
  for (std::string line; model.empty() && std::getline(file, line);) {
    if (line.starts_with("model name")) model = line.substr(line.find(':') + 1);
  }
  EXPECT_EQ(Read().Text("cpu_model"), model.erase(0, model.find_first_not_of(' ')));
}

TEST_F(MachineTest, TheQuotaIsTheLeastOfTheGroupsAround) {
  EXPECT_EQ(QuotaWith("0::/\n", "/cpu.max", "max 100000\n"), "");
  EXPECT_EQ(QuotaWith("0::/\n", "/cpu.max", "400000 100000\n"), "4") << "in a container";
  EXPECT_EQ(QuotaWith("0::/a/b\n", "/a/cpu.max", "150000 100000\n"), "1.5");
  EXPECT_EQ(QuotaWith("0::/a/b\n", "/a/b/cpu.max", "300000 100000\n"), "1.5");
}

TEST_F(MachineTest, TheQuotaOfTheFirstVersionHasTwoFiles) {
  Write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  const std::string groups = "5:memory:/m\n4:cpu,cpuacct:/a\n0::/b\n";
  EXPECT_EQ(QuotaWith(groups, "/cpu/a/cpu.cfs_quota_us", "-1\n"), "") << "no limit";
  EXPECT_EQ(QuotaWith(groups, "/cpu/a/cpu.cfs_quota_us", "50000\n"), "0.5");
}

TEST(ReadMachineTest, OfThisProcessThereIsSomething) {
  const LabelSet machine = ReadMachine(static_cast<std::uint64_t>(getpid()));
  EXPECT_GE(machine.Number("cpus"), 1);
  EXPECT_GT(machine.Number("memory_bytes"), 0);
  EXPECT_FALSE(machine.Text("kernel").empty());
  EXPECT_FALSE(machine.Text("process_name").empty());
}

TEST(ReadResidentBytesTest, GrowsWithTheMemoryThatIsUsed) {
  const auto own = static_cast<std::uint64_t>(getpid());
  const std::int64_t before = ReadResidentBytes(own);
  EXPECT_GT(before, 0);
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::unique_ptr<char[]> used(new char[kBytes]);
  std::memset(used.get(), 1, kBytes);
  asm volatile("" ::"r"(used.get()) : "memory");
  EXPECT_GT(ReadResidentBytes(own), before + std::int64_t{kBytes / 2});
  EXPECT_EQ(ReadResidentBytes(0), -1);
}

}  // namespace
}  // namespace strobe::internal
