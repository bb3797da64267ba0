#include "../../../../src/cli/perf/jit_names.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "../../jit/jit_dump_bytes.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

// This process's own list.
class JitListTest : public ::testing::Test {
 protected:
  JitListTest() { Begin(); }
  ~JitListTest() override { std::filesystem::remove(path_); }
  JitListTest(const JitListTest&) = delete;
  JitListTest& operator=(const JitListTest&) = delete;

  void Begin() { file_ = std::ofstream(path_); }
  void Write(const std::string& lines) { file_ << lines << std::flush; }
  std::string Find(Address address) { return std::string(names_.Find(process_, address)); }

  const std::uint32_t process_ = static_cast<std::uint32_t>(getpid());
  const std::string path_ = "/tmp/perf-" + std::to_string(process_) + ".map";
  std::ofstream file_;
  JitNames names_;
};

TEST_F(JitListTest, IsReadToItsEndOnceItIsRemoved) {
  Write("1000 100 first\n");
  EXPECT_EQ(Find(0x1010), "first");
  Write("2000 100 second\n");
  std::filesystem::remove(path_);
  EXPECT_EQ(Find(0x2010), "second");
  EXPECT_EQ(Find(0x1010), "first");
}

TEST_F(JitListTest, MayBeBegunAnew) {
  Write("1000 100 first\n2000 100 second\n");
  EXPECT_EQ(Find(0x1010), "first");
  Begin();
  Write("3000 100 third\n");
  EXPECT_EQ(Find(0x3010), "third");
  EXPECT_EQ(Find(0x1010), "");
}

TEST_F(JitListTest, IsOfAnotherProcessIfItIsOlderThanTheRecording) {
  Write("1000 100 first\n");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const int hours : {-1, 1}) {
    LoadedProfile loaded;
    loaded.profile.frames = {{0x1010, Frame::kNoModule}};
    names_.Name(loaded, process_,
                std::chrono::nanoseconds(now + std::chrono::hours(hours)).count());
    EXPECT_EQ(loaded.symbols.functions.size(), hours < 0 ? 1u : 0u);
  }
}

class JitDumpOfProfileTest : public ::testing::Test {
 protected:
  // The dump lies in the current directory.
  JitDumpOfProfileTest() {
    std::filesystem::current_path(directory_.path());
    const Bytes bytes =
        Join({DumpHeader(), DumpLoad(10, 0x1000, 0x100, "first"),
              DumpLoad(20, 0x1000, 0x10, "second"), DumpLoad(30, 0x2000, 0x10, "py::f:/a.py")});
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~JitDumpOfProfileTest() override { std::filesystem::current_path(before_); }
  JitDumpOfProfileTest(const JitDumpOfProfileTest&) = delete;
  JitDumpOfProfileTest& operator=(const JitDumpOfProfileTest&) = delete;

  static std::string NameOf(const LoadedProfile& loaded, std::size_t frame) {
    const std::uint32_t function = loaded.symbols.frames[frame].function;
    return function == FrameSymbols::kNone ? "" : loaded.symbols.functions[function].name;
  }

  static constexpr std::uint32_t kProcess = 0x7FFFFFF0;  // none has it
  const std::filesystem::path before_ = std::filesystem::current_path();
  const testing::TemporaryDirectory directory_;
  const std::string path_ = "jit-" + std::to_string(kProcess) + ".dump";
};

TEST_F(JitDumpOfProfileTest, NamesCodeThatWasNeverReplaced) {
  LoadedProfile loaded;
  loaded.profile.frames = {{0x1080, Frame::kNoModule},
                           {0x1008, Frame::kNoModule},
                           {0x2008, Frame::kNoModule},
                           {0x2008, 0}};
  JitNames().Name(loaded, kProcess, 0);
  EXPECT_EQ(NameOf(loaded, 0), "first");
  EXPECT_EQ(NameOf(loaded, 1), "") << "one of two";
  EXPECT_EQ(NameOf(loaded, 2), "f");
  EXPECT_EQ(NameOf(loaded, 3), "") << "code of a file";
}

TEST_F(JitDumpOfProfileTest, IsOfAnotherProcessIfItIsOlder) {
  LoadedProfile loaded;
  loaded.profile.frames = {{0x1080, Frame::kNoModule}};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  JitNames().Name(loaded, kProcess, std::chrono::nanoseconds(now + std::chrono::hours(1)).count());
  EXPECT_EQ(NameOf(loaded, 0), "");
}

}  // namespace
}  // namespace strobe::internal
