// This process in the table, as if it were another: its mappings from /proc, and copies of its
// own stacks.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/arch/current_registers.h"
#include "strobe/platform/native.h"
#include "strobe/process/process_names.h"
#include "strobe/process/process_table.h"

namespace strobe::testing {
namespace {

// A sample of the calling thread, as a perf event would have it.
struct CopiedSample {
  NativeRegisters registers;
  std::vector<std::byte> stack;
};

// What lies above a frame is the thread's, but not this function's.
__attribute__((noinline, no_sanitize("address", "thread"))) void CopyStack(Address from,
                                                                           std::size_t bytes,
                                                                           std::byte* to) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const volatile auto* words = reinterpret_cast<const volatile Address*>(from);
  for (std::size_t i = 0; i < bytes / sizeof(Address); ++i) {
    const Address word = words[i];
    std::memcpy(to + i * sizeof(word), &word, sizeof(word));
  }
}

// Each frame notes the address that it returns to. With AddressSanitizer it takes half a kilobyte.
__attribute__((noinline)) int Descend(int depth, std::vector<Address>& returns,
                                      CopiedSample& sample, std::size_t bytes) {
  returns.push_back(reinterpret_cast<Address>(__builtin_return_address(0)));
  if (depth > 0) return Descend(depth - 1, returns, sample, bytes) + 1;
  const CurrentRegisters current;
  sample.registers = *current.get();
  sample.registers.set_general_registers(nullptr);  // those of this function alone
  sample.stack.resize(bytes);
  CopyStack(sample.registers.sp, bytes, sample.stack.data());
  return 1;
}

// The addresses of the calls, leaf first.
std::vector<Address> CallsOf(const std::vector<Address>& returns) {
  std::vector<Address> calls;
  for (auto it = returns.rbegin(); it != returns.rend(); ++it) calls.push_back(*it - 1);
  return calls;
}

// A walk of this thread's stack from `depth` calls deep, by the table and by the calls themselves.
struct OwnWalk {
  explicit OwnWalk(int depth) {
    EXPECT_TRUE(table.Attach(process).ok());
    std::vector<Address> returns;
    CopiedSample sample;
    EXPECT_EQ(Descend(depth, returns, sample, 4096), depth + 1);
    calls = CallsOf(returns);
    walk = table.Unwind(process, {.registers = sample.registers, .stack = sample.stack}, frames);
  }
  // `count` frames of the walk, from the one that called the leaf's code.
  [[nodiscard]] std::vector<Address> Callers(std::size_t count) const {
    return {frames.begin() + 1, frames.begin() + 1 + static_cast<std::ptrdiff_t>(count)};
  }

  ProcessTable table{NativePlatform::Files()};
  const std::uint64_t process = static_cast<std::uint64_t>(getpid());
  std::vector<Address> calls;
  std::array<Address, 512> frames{};
  WalkResult walk;
};

TEST(OwnProcess, IsUnwoundAsItsFunctionsReturn) {
  const OwnWalk own(4);
  ASSERT_GT(own.walk.count, own.calls.size());
  EXPECT_EQ(own.Callers(own.calls.size()), own.calls);
  EXPECT_EQ(own.table.stats().missing_images, 0u);
}

TEST(OwnProcess, HasItsName) {
  ProcessTable table(NativePlatform::Files());
  const auto process = static_cast<std::uint64_t>(getpid());
  ASSERT_TRUE(table.Attach(process).ok());
  EXPECT_THAT(table.Name(process), ::testing::StartsWith("linux_own_proc"));
}

TEST(OwnProcess, HasTheNamesOfItsFunctionsAndTheirLines) {
  OwnWalk own(2);
  ProcessNames names(NativePlatform::Files());
  const auto code = own.table.Find(own.process);
  own.table.Exit(own.process);  // what was mapped then still has names
  const std::vector<AddressName> found = names.Name(*code, own.Callers(4));
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_FALSE(found[i].functions.empty());
    const NamedFunction& function = found[i].functions.back();
    EXPECT_TRUE(function.resolved);
    EXPECT_THAT(function.function, ::testing::HasSubstr("Descend"));
    EXPECT_THAT(function.file, ::testing::EndsWith("own_process_test.cc"));
    EXPECT_GT(function.line, 0u);
    EXPECT_THAT(found[i].module, ::testing::HasSubstr("own_process"));
  }
  // The call that Descend was begun by is in the constructor, wherever that was inlined.
  EXPECT_THAT(found[2].functions.front().function, ::testing::HasSubstr("OwnWalk"));
}

TEST(OwnProcess, HasTheNamesOfItsLibraries) {
  ProcessTable table(NativePlatform::Files());
  const auto process = static_cast<std::uint64_t>(getpid());
  ASSERT_TRUE(table.Attach(process).ok());
  ProcessNames names(NativePlatform::Files(), {.mode = SymbolMode::kNames});
  const auto function = reinterpret_cast<Address>(dlsym(RTLD_DEFAULT, "getenv"));
  const auto found = names.Name(*table.Find(process), std::array<Address, 2>{function, 0x10});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].functions.front().function, "getenv");
  EXPECT_THAT(found[0].module, ::testing::StartsWith("/"));
  EXPECT_EQ(found[1].functions.front().function, "0x10");
  EXPECT_EQ(found[1].module, "");
}

TEST(OwnProcess, IsUnwoundAsFarAsTheCopyGoes) {
  OwnWalk own(200);
  EXPECT_EQ(own.walk.end, StackEnd::kTruncated);
  ASSERT_GT(own.walk.count, 4u);
  ASSERT_LT(own.walk.count, own.calls.size());
  own.calls.resize(own.walk.count - 1);
  EXPECT_EQ(own.Callers(own.walk.count - 1), own.calls);
}

TEST(OwnProcess, WhatItLoadsLaterComesByAnEvent) {
  ProcessTable table(NativePlatform::Files());
  const auto process = static_cast<std::uint64_t>(getpid());
  ASSERT_TRUE(table.Attach(process).ok());
  void* const library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto function = reinterpret_cast<Address>(dlsym(library, "ns_initparse"));
  const absl::StatusOr<std::vector<Mapping>> maps = ReadMaps("self");
  ASSERT_TRUE(maps.ok());
  for (const Mapping& mapping : *maps) {
    if (function >= mapping.start && function < mapping.limit) table.Map(process, mapping);
  }
  const ProcessModule* const module = table.Find(process)->Find(function);
  ASSERT_NE(module, nullptr);
  EXPECT_NE(module->image_number, 0u);
  EXPECT_THAT(module->module.path, ::testing::HasSubstr("libresolv"));
  dlclose(library);
}

// Moves code to memory without a file, at the same addresses, as programs do for huge pages.
bool MoveCode(const Mapping& code) {
  const std::size_t bytes = code.limit - code.start;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const place = reinterpret_cast<void*>(code.start);
  void* const copy =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  std::memcpy(copy, place, bytes);
  return mprotect(copy, bytes, PROT_READ | PROT_EXEC) == 0 &&
         mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}

std::vector<Mapping> CodeOf(const std::string& name) {
  std::vector<Mapping> code;
  const auto maps = ReadMaps("self", &NativePlatform::Files());
  for (const Mapping& mapping : maps.value_or(std::vector<Mapping>())) {
    if (mapping.path.find(name) != std::string::npos) code.push_back(mapping);
  }
  return code;
}

TEST(OwnProcess, CodeThatHasMovedToOtherMemoryIsStillItsFiles) {
  const std::string name = "libsqlite3.so.0";
  void* const library = dlopen(name.c_str(), RTLD_NOW);
  if (library == nullptr) GTEST_SKIP() << dlerror();
  const std::vector<Mapping> before = CodeOf(name);
  ASSERT_EQ(before.size(), 1U);
  // The first pages alone, and then all.
  Mapping part = before[0];
  part.limit = part.start + std::min<Address>(0x4000, (part.limit - part.start) / 2);
  ASSERT_TRUE(MoveCode(part));
  const std::vector<Mapping> moved = CodeOf(name);
  ASSERT_EQ(moved.size(), 2U);
  EXPECT_EQ(moved[0], part);
  ASSERT_TRUE(MoveCode(moved[1]));
  const std::vector<Mapping> all = CodeOf(name);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].file_offset, before[0].file_offset);
  EXPECT_EQ(all.back().limit, before[0].limit);
  // What is not the file's code any more is not taken for it.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const place = reinterpret_cast<std::uint8_t*>(part.start);
  ASSERT_EQ(mprotect(place, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  std::memset(place, 0xCC, 0x1000);
  for (const Mapping& mapping : CodeOf(name)) EXPECT_GT(mapping.start, part.start);
}

}  // namespace
}  // namespace strobe::testing
