// Memory that runs out anywhere in an export leaves no temporary file behind. This program's
// allocator fails when it is told to.
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/file_exporter_fixture.h"

namespace {

// Allocations of this thread until the first that fails, and how many fail.
thread_local int until_failure = INT_MAX;
thread_local int failures_left = 0;

bool Fails() {
  if (until_failure == INT_MAX || until_failure-- > 0) return false;
  until_failure = 0;
  return failures_left-- > 0;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = Fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

namespace strobe::testing {
namespace {

using ::testing::Each;
using ::testing::StartsWith;

class FileExporterMemoryTest : public FileExporterTest {
 protected:
  // Exports while `failures` allocations fail after the first `successes`. True if there were so
  // many.
  bool ExportWithout(int successes, int failures) {
    FileExporter exporter(Options());
    absl::StatusOr<std::string> path = absl::ResourceExhaustedError("thrown");
    Profile profile;
    profile.program = "server";
    profile.process_id = 77;
    const std::string bytes(1000, 'x');
    try {
      failures_left = failures;
      until_failure = successes;
      path = exporter.Export({bytes, ".pb.gz", "application/octet-stream", profile, {}});
    } catch (const std::bad_alloc&) {
    }
    until_failure = INT_MAX;
    const bool has_failed = failures_left != failures;
    const std::vector<std::string> names = List(directory_);
    EXPECT_THAT(names, Each(StartsWith("server.77."))) << "a temporary file is left";
    EXPECT_EQ(names.size(), kept_ + (path.ok() ? 1 : 0)) << path.status();
    for (const std::string& name : names) {
      if (ReadFile(directory_ / name) == "taken") continue;
      EXPECT_EQ(ReadFile(directory_ / name), bytes);
      fs::remove(directory_ / name);
    }
    return has_failed;
  }
  // Every allocation is the first that fails, and fails alone or with all that follow.
  void ExportWithoutEach() {
    for (const int failures : {1, INT_MAX}) {
      int successes = 0;
      while (ExportWithout(successes, failures)) ++successes;
      EXPECT_GT(successes, 5) << "an export makes more allocations";
    }
  }

  std::size_t kept_ = 0;
};

TEST_F(FileExporterMemoryTest, NoTemporaryFileStays) { ExportWithoutEach(); }

TEST_F(FileExporterMemoryTest, NoTemporaryFileStaysWhereTheNameIsTaken) {
  WriteFile(directory_ / "server.77.0.pb.gz", "taken");
  kept_ = 1;
  ExportWithoutEach();
}

}  // namespace
}  // namespace strobe::testing
