#include "../../src/unwind/eh_frame_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_memory.h"

namespace strobe::testing {
namespace {

using internal::CfiEntry;
using internal::CieCache;
using internal::EhFrameEntry;
using internal::EhFrameReader;

constexpr Address kSection = EhFrameBuilder::kEhFrame;

// A CIE, an FDE, and a terminator.
EhFrameBuilder SmallSection(bool has_64bit_length = false) {
  EhFrameBuilder builder;
  builder.Fde(builder.Cie({.has_64bit_length = has_64bit_length}), kText, 0x40, DefCfaOffset(16),
              has_64bit_length);
  builder.Terminate();
  return builder;
}

void ExpectEntries(EhFrameReader& reader) {
  const std::optional<EhFrameEntry> cie = reader.At(kSection);
  ASSERT_TRUE(cie);
  EXPECT_FALSE(cie->is_terminator);
  EXPECT_EQ(cie->cie, 0u);
  std::optional<EhFrameEntry> fde = reader.At(cie->next);
  ASSERT_TRUE(fde);
  EXPECT_EQ(fde->cie, kSection);
  EXPECT_EQ(fde->body.Read<std::uint64_t>(), kText) << "the body begins behind the id";
  const std::optional<EhFrameEntry> end = reader.At(fde->next);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->is_terminator);
  EXPECT_EQ(end->next, fde->next + 4);
}

TEST(EhFrameReaderTest, ReadsEntriesOfBytes) {
  for (const bool has_64bit_length : {false, true}) {
    const EhFrameBuilder section = SmallSection(has_64bit_length);
    EhFrameReader reader(section.bytes, kSection);
    ExpectEntries(reader);
    EXPECT_FALSE(reader.At(kSection + section.bytes.size()));
    EXPECT_FALSE(reader.At(kSection - 1));
    EXPECT_FALSE(reader.At(0));
  }
}

TEST(EhFrameReaderTest, ReadsEntriesOfMemoryByWindows) {
  FakeMemory memory;
  memory.Map(kSection, SmallSection().bytes);
  const AnyMemoryReader read = std::ref(memory);
  for (const std::size_t window_bytes : {std::size_t{1}, std::size_t{16}, std::size_t{4096}}) {
    EhFrameReader reader(read, window_bytes);
    ExpectEntries(reader);
    EXPECT_FALSE(reader.has_failed()) << window_bytes;
  }
}

TEST(EhFrameReaderTest, OneWindowServesManyEntries) {
  FakeMemory memory;
  memory.Map(kSection, SmallSection().bytes);
  const AnyMemoryReader read = std::ref(memory);
  EhFrameReader reader(read, 4096);
  ExpectEntries(reader);
  EXPECT_EQ(memory.reads().size(), 1u);
}

TEST(EhFrameReaderTest, SaysThatMemoryCouldNotBeRead) {
  FakeMemory memory;
  Bytes bytes = SmallSection().bytes;
  bytes.resize(10);
  memory.Map(kSection, bytes);
  const AnyMemoryReader read = std::ref(memory);
  EhFrameReader reader(read, 4096);
  EXPECT_FALSE(reader.At(kSection));
  EXPECT_TRUE(reader.has_failed());
  EhFrameReader elsewhere(read, 4096);
  EXPECT_FALSE(elsewhere.At(0x1000));
  EXPECT_TRUE(elsewhere.has_failed());
}

TEST(EhFrameReaderTest, AWindowMayReachIntoAPageThatIsNotThere) {
  // A reader that gives all or nothing, up to the end of a page.
  const Bytes bytes = SmallSection().bytes;
  const Address end = kSection + 4096;
  const Address begin = end - bytes.size();
  const AnyMemoryReader read = [&](Address address, std::span<std::uint8_t> out) {
    if (address < begin || out.size() > end - address) return std::size_t{0};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(address - begin), out.size(),
                out.begin());
    return out.size();
  };
  EhFrameReader reader(read, 16384);
  const std::optional<EhFrameEntry> cie = reader.At(begin);
  ASSERT_TRUE(cie);
  EXPECT_TRUE(reader.At(cie->next));
  EXPECT_FALSE(reader.has_failed());
}

TEST(EhFrameReaderTest, EveryBeginningIsRefused) {
  const EhFrameBuilder section = SmallSection();
  const std::size_t fde_at = section.bytes.size() - 4;
  EhFrameReader whole(section.bytes, kSection);
  const Address cie_end = whole.At(kSection)->next;
  for (std::size_t size = 0; size < cie_end - kSection; ++size) {
    EhFrameReader reader(std::span(section.bytes).first(size), kSection);
    EXPECT_FALSE(reader.At(kSection)) << size;
  }
  for (std::size_t size = cie_end - kSection; size < fde_at; ++size) {
    EhFrameReader reader(std::span(section.bytes).first(size), kSection);
    EXPECT_FALSE(reader.At(cie_end)) << size;
  }
}

TEST(EhFrameReaderTest, RefusesLengthsOfNoRealFile) {
  const Bytes lengths[] = {Fixed(std::uint32_t{EhFrameReader::kMaxEntryBytes + 1}),
                           Fixed(std::uint32_t{0xFFFFFFFE}),
                           Join({Fixed(~std::uint32_t{0}), Fixed(~std::uint64_t{0})}),
                           Join({Fixed(~std::uint32_t{0}), Fixed(~std::uint64_t{0} - 11)}),
                           Fixed(std::uint32_t{3})};  // no room for the id
  for (const Bytes& length : lengths) {
    const Bytes bytes = Join({length, Bytes(64)});
    EhFrameReader reader(bytes, kSection);
    EXPECT_FALSE(reader.At(kSection));
  }
}

class CieCacheTest : public ::testing::Test {
 protected:
  const CfiEntry* Read(const CieOptions& options) {
    builder_ = {};
    builder_.Cie(options);
    reader_.emplace(builder_.bytes, kSection);
    cache_.emplace(Architecture::kX86_64);
    return cache_->At(*reader_, kSection);
  }

  EhFrameBuilder builder_;
  std::optional<EhFrameReader> reader_;
  std::optional<CieCache> cache_;
};

TEST_F(CieCacheTest, ReadsWhatAnFdeInherits) {
  const CfiEntry* entry = Read({.augmentation = "zPLRSB",
                                .code_alignment = 4,
                                .data_alignment = -16,
                                .return_register = 30,
                                .augmentation_data = Join({{0x9B}, Bytes(4, 1), {0x1B, 0x1B}}),
                                .program = DefCfa(kRsp, 24)});
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->code_alignment, 4u);
  EXPECT_EQ(entry->data_alignment, -16);
  EXPECT_EQ(entry->return_register, 30u);
  EXPECT_EQ(entry->pointer_encoding, 0x1B);
  EXPECT_TRUE(entry->has_augmentation_data);
  EXPECT_TRUE(entry->is_signal_frame);
  EXPECT_EQ(entry->initial.cfa_offset, 24);
}

TEST_F(CieCacheTest, KnowsEveryVersion) {
  for (const int version : {1, 3, 4}) {
    const CfiEntry* entry = Read({.version = static_cast<std::uint8_t>(version)});
    ASSERT_NE(entry, nullptr) << version;
    EXPECT_EQ(entry->initial.cfa_offset, 8) << version;
  }
  for (const int version : {0, 2, 5, 255})
    EXPECT_EQ(Read({.version = static_cast<std::uint8_t>(version)}), nullptr) << version;
}

TEST_F(CieCacheTest, ReadsEachOnce) {
  const CfiEntry* entry = Read({});
  EhFrameReader empty(std::span<const std::uint8_t>(), 0);
  EXPECT_EQ(cache_->At(empty, kSection), entry);
  EXPECT_EQ(cache_->broken(), 0u);
  EXPECT_EQ(cache_->At(empty, kSection + 8), nullptr);
  EXPECT_EQ(cache_->At(empty, kSection + 8), nullptr);
  EXPECT_EQ(cache_->broken(), 1u) << "counted once";
}

TEST_F(CieCacheTest, AnEntrysExpressionsStay) {
  const CfiEntry* entry = Read({.program = DefCfaExpression({0x77, 8})});
  ASSERT_NE(entry, nullptr);
  builder_.bytes.assign(builder_.bytes.size(), 0xFF);
  EXPECT_EQ(entry->initial.cfa_expression[0], 0x77);
}

TEST_F(CieCacheTest, RefusesWhatItCannotUnderstand) {
  EXPECT_EQ(Read({.augmentation = "eh"}), nullptr) << "its fields cannot be skipped";
  EXPECT_EQ(Read({.augmentation = std::string(20, 'R')}), nullptr);
  EXPECT_EQ(Read({.augmentation_data = {}}), nullptr) << "the encoding is missing";
  EXPECT_EQ(Read({.program = {0x3F}}), nullptr);
  EXPECT_EQ(cache_->broken(), 1u);
  EXPECT_NE(Read({.augmentation = "zRX", .augmentation_data = {0x1B, 1, 2, 3}}), nullptr)
      << "letters that it does not know have their data skipped";
}

TEST_F(CieCacheTest, AnFdeIsNoCie) {
  const EhFrameBuilder section = SmallSection();
  EhFrameReader reader(section.bytes, kSection);
  const Address fde = reader.At(kSection)->next;
  CieCache cache(Architecture::kX86_64);
  EXPECT_EQ(cache.At(reader, fde), nullptr);
  EXPECT_EQ(cache.At(reader, kSection + section.bytes.size() - 4), nullptr) << "the terminator";
}

}  // namespace
}  // namespace strobe::testing
