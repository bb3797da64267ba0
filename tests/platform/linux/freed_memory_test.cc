#include "../../../src/platform/linux/memory/freed_memory.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/platform/machine.h"

namespace strobe::internal {
namespace {

std::size_t ResidentBytes() {
  return static_cast<std::size_t>(ReadResidentBytes(static_cast<std::uint64_t>(getpid())));
}

TEST(FreedMemory, GoesBackToTheSystem) {
  constexpr std::size_t kBlockBytes = 2000;
  constexpr std::size_t kBlocks = 20000;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlockBytes));
    blocks.back()[0] = 1;
  }
  // The last block stays, so the C library cannot shrink its heap by itself.
  blocks.erase(blocks.begin(), blocks.end() - 1);
  const std::size_t before_bytes = ResidentBytes();
  GiveFreedMemoryBack();
#ifdef __GLIBC__
  EXPECT_LT(ResidentBytes() + kBlocks * kBlockBytes / 2, before_bytes);
#else
  EXPECT_LE(ResidentBytes(), before_bytes + kBlocks * kBlockBytes);
#endif
}

}  // namespace
}  // namespace strobe::internal
