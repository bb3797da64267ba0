#include "../../../src/cli/pgo/gcc_profile.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../../../src/cli/pgo/count_scale.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

std::uint32_t WordAt(const std::string& bytes, std::size_t at) {
  std::uint32_t word = 0;
  if (at + sizeof(word) <= bytes.size()) std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

std::vector<std::uint32_t> WordsFrom(const std::string& bytes, std::size_t at) {
  std::vector<std::uint32_t> words;
  for (; at < bytes.size(); at += sizeof(std::uint32_t)) words.push_back(WordAt(bytes, at));
  return words;
}

TEST(GccProfileTest, HasNamesFunctionsLinesAndWhatIsInlined) {
  FunctionSamplesMap functions;
  FunctionSamples& f = functions["f"];
  f.entries = 7;
  f.lines[{.offset = 4, .discriminator = 2}] = {.count = 20, .calls = {{"callee", 12}}};
  f.inlined[{.offset = 6}]["in"].lines[{.offset = 1}].count = 5;
  f.inlined[{.offset = 6}]["empty"];
  functions["without samples"].entries = 3;
  const std::string bytes = GccProfile(functions, kCountOfSample);
  EXPECT_EQ(WordAt(bytes, 0), 0x67636461u);
  EXPECT_EQ(WordAt(bytes, 4), 2u);
  EXPECT_EQ(WordAt(bytes, 12), 0xAA000000u);
  EXPECT_EQ(WordAt(bytes, 20), 3u) << "names";
  std::size_t at = 24;
  for (const std::string name : {"f", "callee", "in"}) {
    EXPECT_EQ(WordAt(bytes, at), name.size() + 1);
    EXPECT_EQ(bytes.substr(at + 4, name.size() + 1), name + std::string(1, 0));
    at += 4 + name.size() + 1;
  }
  const std::vector<std::uint32_t> expected = {
      0xAC000000,  0, 1,          // the functions
      7,           0, 0,  1,  1,  // f: its entries, its name, a line, something inlined
      4 << 16 | 2, 1, 20, 0,      // the line, with a call
      0,           1, 0,  12, 0,  // of callee
      6 << 16,     2, 1,  0,      // what is inlined
      1 << 16,     0, 5,  0,      // its line
      0xAE000000,  0, 0};
  EXPECT_EQ(WordsFrom(bytes, at), expected);
}

TEST(GccProfileTest, OfNothingHasNoFunction) {
  const std::string bytes = GccProfile({}, 1);
  EXPECT_EQ(WordAt(bytes, 20), 0u);
  EXPECT_EQ(bytes.size(), 24u + 12 + 12);
}

}  // namespace
}  // namespace strobe::internal
