#include "../../../src/platform/linux/files/image_files.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/unwind/cfi_compiler.h"

namespace strobe::internal {
namespace {

using testing::TemporaryDirectory;

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

// A file's first page in memory.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    memory_ = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { munmap(memory_, kBytes); }
  [[nodiscard]] Address address() const { return reinterpret_cast<Address>(memory_); }

 private:
  static constexpr std::size_t kBytes = 4096;
  void* memory_ = nullptr;
};

TEST(ProgramPathTest, IsThisProgram) {
  EXPECT_EQ(ProgramPath(), std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST(ImagePathsTest, AnAbsoluteNameStays) {
  EXPECT_EQ(ImagePaths().Of("/no/such/file", 0), "/no/such/file");
}

TEST(ImagePathsTest, ARelativeNameIsThatOfTheMappedFile) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "an image";
  Write(path, "text");
  const MappedFile file(path);
  EXPECT_EQ(ImagePaths().Of("an image", file.address()), path.string());
  EXPECT_EQ(ImagePaths().Of("", file.address() + 4095), path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(ImagePaths().Of("an image", file.address()), path.string())
      << "without what the kernel adds to it";
}

TEST(ImagePathsTest, WhatIsNotMappedIsLookedUpInTheDirectory) {
  const std::string stack = "[stack]";
  EXPECT_EQ(ImagePaths().Of("no such file", 1), "no such file");
  EXPECT_EQ(ImagePaths().Of("no such file", reinterpret_cast<Address>(&stack)), "no such file");
  const std::filesystem::path before = std::filesystem::current_path();
  const TemporaryDirectory directory;
  std::filesystem::current_path(directory.path());
  Write("image", "text");
  const std::string path = ImagePaths().Of("./image", 1);
  std::filesystem::current_path(before);
  EXPECT_EQ(path, (directory.path() / "image").string());
}

// A thousand relative names must not read the list of mappings a thousand times.
TEST(ImagePathsTest, TheListIsReadOnce) {
  const TemporaryDirectory directory;
  Write(directory.path() / "first", "text");
  Write(directory.path() / "second", "text");
  const MappedFile first(directory.path() / "first");
  ImagePaths paths;
  EXPECT_EQ(paths.Of("/absolute", 0), "/absolute");
  const MappedFile second(directory.path() / "second");
  EXPECT_EQ(paths.Of("second", second.address()), (directory.path() / "second").string());
  const MappedFile third(directory.path() / "first");
  EXPECT_EQ(paths.Of("third", third.address()), "third") << "it was not there";
  EXPECT_EQ(paths.Of("first", first.address()), (directory.path() / "first").string());
}

TEST(FileVersionTest, ChangesWithTheFile) {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "image").string();
  EXPECT_EQ(FileVersionOf(path), 0u) << "there is no such file";
  Write(path, "one");
  const std::uint64_t first = FileVersionOf(path);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(FileVersionOf(path), first);
  Write(path, "another");
  const std::uint64_t second = FileVersionOf(path);
  EXPECT_NE(second, first);
  // Of the same length, by another file in its place.
  Write(path + ".new", "another");
  std::filesystem::rename(path + ".new", path);
  EXPECT_NE(FileVersionOf(path), second);
  EXPECT_NE(FileVersionOf(path), 0u);
}

// The same by the segments of the running program, which has an index.
Address EhFrameBySegments() {
  Address found = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_GNU_EH_FRAME) continue;
          // NOLINTNEXTLINE(performance-no-int-to-ptr)
          const auto* const bytes =
              reinterpret_cast<const std::uint8_t*>(info->dlpi_addr + segment.p_vaddr);
          *static_cast<Address*>(out) =
              EhFrameAddress(std::span(bytes, segment.p_memsz), segment.p_vaddr);
        }
        return 1;  // the first is the program
      },
      &found);
  return found;
}

TEST(ReadEhFrameSectionTest, IsWhatTheIndexSays) {
  const EhFrameSection section = ReadEhFrameSection("/proc/self/exe");
  EXPECT_NE(section.address, 0u);
  EXPECT_EQ(section.address, EhFrameBySegments());
  EXPECT_NE(section.bytes, 0u);
  for (const char* const path : {"/dev/null", "/proc/self/maps", "/no/such/file"})
    EXPECT_EQ(ReadEhFrameSection(path).bytes, 0u) << path;
}

}  // namespace
}  // namespace strobe::internal
