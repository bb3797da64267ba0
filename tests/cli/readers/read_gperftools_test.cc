#include "../../../src/cli/readers/read_gperftools.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Word>
std::string Words(std::initializer_list<std::uint64_t> words) {
  std::string bytes;
  for (const std::uint64_t one : words) {
    const auto word = static_cast<Word>(one);
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return bytes;
}

constexpr const char* kMaps =
    "00400000-00500000 r-xp 00001000 08:01 99  /opt/shop\n"
    "7f000000-7f100000 r-xp 00000000 08:01 98  /lib/libc.so.6\n";

absl::StatusOr<LoadedProfile> Cpu(std::string_view bytes) {
  Input input(ReadBytes(bytes));
  return ReadGperftoolsCpu(input);
}

// "address,caller,... value ...".
std::vector<std::string> AddressRows(const LoadedProfile& loaded) {
  std::vector<std::string> rows;
  const Profile& profile = loaded.profile;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::string row;
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent)
      row += (row.empty() ? "" : ",") +
             std::to_string(profile.frames[profile.stacks[node].frame].address);
    for (const std::int64_t value : profile.Values(i)) row += " " + std::to_string(value);
    rows.push_back(row);
  }
  return rows;
}

template <class Word>
std::string TwoSamples() {
  return Words<Word>({0, 3, 0, 10'000, 0}) + Words<Word>({3, 2, 0x400010, 0x400100}) +
         Words<Word>({1, 2, 0x400020, 0x400200}) + Words<Word>({0, 1, 0}) + kMaps;
}

TEST(ReadGperftoolsCpuTest, ReadsSamplesAndModules) {
  for (const std::string& bytes : {TwoSamples<std::uint64_t>(), TwoSamples<std::uint32_t>()}) {
    EXPECT_TRUE(IsGperftoolsCpu(bytes));
    const absl::StatusOr<LoadedProfile> loaded = Cpu(bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_THAT(loaded->profile.value_types,
                ElementsAre(ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"}));
    EXPECT_EQ(loaded->profile.period, 10'000'000);
    EXPECT_EQ(loaded->profile.program, "shop");
    // A caller's address is that of the call.
    EXPECT_THAT(AddressRows(*loaded),
                ElementsAre("4194320,4194559 3 30000000", "4194336,4194815 1 10000000"));
    for (const Frame& frame : loaded->profile.frames) EXPECT_EQ(frame.module, 0u);
  }
}

TEST(ReadGperftoolsCpuTest, RemovesTheFrameOfTheHandler) {
  std::string bytes = Words<std::uint64_t>({0, 3, 0, 1000, 0});
  for (std::uint64_t i = 0; i < 40; ++i)
    bytes += Words<std::uint64_t>({1, 3, 0x400000 + i, 0x7f000010, 0x400100});
  bytes += Words<std::uint64_t>({1, 2, 0x400999, 0x400101, 0, 1, 0});
  const absl::StatusOr<LoadedProfile> loaded = Cpu(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(AddressRows(*loaded)[0], "4194304,4194559 1 1000000");
  EXPECT_EQ(AddressRows(*loaded)[40], "4196761,4194560 1 1000000");
}

TEST(ReadGperftoolsCpuTest, RefusesWhatIsCutOffOrDamaged) {
  const std::string whole = TwoSamples<std::uint64_t>();
  for (const std::size_t size : {40u, 48u, 56u, 64u, 100u})
    EXPECT_FALSE(Cpu(whole.substr(0, size)).ok()) << size;
  EXPECT_FALSE(Cpu(Words<std::uint64_t>({0, 3, 0, 1000, 0, 1, ~0ull})).ok());
  EXPECT_FALSE(Cpu(Words<std::uint64_t>({0, 3, 0, 1000, 0, ~0ull, 1, 4, 0, 1, 0})).ok());
  EXPECT_FALSE(IsGperftoolsCpu(whole.substr(0, 8)));
  EXPECT_FALSE(IsGperftoolsCpu(Words<std::uint64_t>({0, 3, 0, 0, 0})));
}

LoadedProfile Heap(std::string_view text) {
  Input input(ReadBytes(text));
  absl::StatusOr<LoadedProfile> loaded = ReadHeapText(input);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LoadedProfile();
}

TEST(ReadHeapTextTest, ReadsAHeapProfile) {
  const LoadedProfile loaded =
      Heap(std::string("heap profile:    4:  40 [  9:  90] @ heapprofile\n"
                       "     3:       30 [     8:       80] @ 0x00400011 0x7f000011\n"
                       "     1:       10 [     1:       10] @ 0x00400021\n"
                       "\nMAPPED_LIBRARIES:\n") +
           kMaps);
  EXPECT_EQ(loaded.format, "heap profile of gperftools");
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"alloc_objects", "count"}, ValueType{"alloc_space", "bytes"},
                          ValueType{"inuse_objects", "count"}, ValueType{"inuse_space", "bytes"}));
  EXPECT_EQ(loaded.profile.default_value_type, 3u);
  EXPECT_THAT(AddressRows(loaded),
              ElementsAre("4194320,2130706448 8 80 3 30", "4194336 1 10 1 10"));
  EXPECT_EQ(loaded.profile.frames[1].module, 1u);
}

TEST(ReadHeapTextTest, ASampledHeapIsTheEstimateOfAll) {
  const LoadedProfile loaded =
      Heap("heap profile: 1: 524288 [0: 0] @ heap_v2/524288\n 1: 524288 [0: 0] @ 0x12\n");
  ASSERT_EQ(loaded.profile.value_types.size(), 2u) << "nothing is in the others";
  // Of objects as large as the rate, one in 1 - 1/e is met.
  EXPECT_NEAR(static_cast<double>(loaded.profile.values[1]), 524288 / (1 - std::exp(-1)), 1);
  EXPECT_EQ(loaded.profile.values[0], 2);
  EXPECT_EQ(Heap("heap profile: 1: 8 [0: 0] @ heap/2\n 1: 8 [0: 0] @ 0x12\n").profile.values[1], 8);
}

TEST(ReadHeapTextTest, ReadsThatOfJemalloc) {
  const LoadedProfile loaded = Heap(
      "heap_v2/1\n"
      "  t*: 3: 30 [0: 0]\n"
      "  t0: 3: 30 [0: 0]\n"
      "@ 0x400011 0x400021\n"
      "  t*: 2: 20 [0: 0]\n"
      "  t0: 2: 20 [0: 0]\n"
      "@ 0x400031\n"
      "  t*: 1: 10 [0: 0]\n"
      "\nMAPPED_LIBRARIES:\n");
  EXPECT_EQ(loaded.format, "heap profile of jemalloc");
  EXPECT_THAT(AddressRows(loaded), ElementsAre("4194320,4194336 2 20", "4194352 1 10"));
}

TEST(ReadHeapTextTest, SaysWhichLineIsNone) {
  for (const char* line :
       {" 1: 8 [1: 8]\n", " 1: 8 @ 0x12\n", " 1: 8 [1: 8] @ main\n", "main;f 3\n"}) {
    Input input(ReadBytes(line));
    const std::string text = std::string("heap profile: 1: 8 [1: 8] @ heapprofile\n") + line;
    Input whole{ReadBytes(text)};
    const absl::Status status = ReadHeapText(whole).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 2")) << line;
  }
}

TEST(IsHeapTextTest, KnowsTheFirstLine) {
  for (const char* line :
       {"heap profile: 1: 8 [1: 8] @ heapprofile", "heap_v2/524288",
        "heap profile:   1:  8 [ 1:  8] @ heapz_v2/1", "heap profile: 0: 0 [0: 0] @ growth"})
    EXPECT_TRUE(IsHeapText(line)) << line;
  for (const char* line :
       {"", "heap profile:", "heap profile: 1: 8 [1: 8] @ other", "heap_v2/x", "main;f 3"})
    EXPECT_FALSE(IsHeapText(line)) << line;
  EXPECT_EQ(NameOfLegacyText("heap profile: x"), "a heap profile of an unknown kind");
  EXPECT_EQ(NameOfLegacyText("--- contentionz 1 ---"), "a text of contended locks");
  EXPECT_EQ(NameOfLegacyText("main;f 3"), "");
}

}  // namespace
}  // namespace strobe::internal
