#include "../../../../src/cli/record/linux/mapped_files.h"

#include <unistd.h>

#include <vector>

#include "../../../../src/symbolize/images/kept_files.h"
#include "gtest/gtest.h"
#include "strobe/platform/native.h"
#include "strobe/process/mapping.h"

namespace strobe::internal {
namespace {

TEST(MappedFiles, KeepsTheFilesThatAProcessHasMapped) {
  if (!ReadMaps("self").ok()) GTEST_SKIP() << "no /proc";
  const std::vector<Module> modules = NativePlatform::Modules();
  ASSERT_FALSE(modules.empty());
  const Module& program = modules.front();
  if (program.build_id.empty()) GTEST_SKIP() << "nothing tells files apart";
  {
    MappedFiles files(getpid());
    files.Update();
    EXPECT_NE(KeptFileOf(program), nullptr);
  }
  EXPECT_EQ(KeptFileOf(program), nullptr) << "closed with it";
}

TEST(MappedFiles, OfAProcessThatHasEndedThereAreNone) {
  MappedFiles files(0x7FFF'FFFF);
  files.Update();
}

}  // namespace
}  // namespace strobe::internal
