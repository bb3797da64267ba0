#include "strobe/unwind/pdata_compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "eh_frame_builder.h"
#include "unwind_info_bytes.h"

namespace strobe::testing {
namespace {

constexpr std::uint32_t kTextRva = 0x1000;
constexpr std::uint32_t kTextBytes = 0x1000;
constexpr std::uint32_t kXdataRva = 0x4000;
constexpr std::uint32_t kPdataRva = 0x6000;

class ImageBuilder {
 public:
  ImageBuilder() : image_(0x8000, 0x90) {}

  // Returns where the codes are.
  std::uint32_t Info(std::uint8_t prologue_bytes, const Bytes& codes,
                     const InfoOptions& options = {}) {
    const auto at = static_cast<std::uint32_t>(kXdataRva + xdata_.size());
    xdata_ = Join({xdata_, UnwindInfo(prologue_bytes, codes, options)});
    return at;
  }
  static Bytes Entry(std::uint32_t begin, std::uint32_t end, std::uint32_t info) {
    return Join({Fixed(kTextRva + begin), Fixed(kTextRva + end), Fixed(info)});
  }
  void Function(std::uint32_t begin, std::uint32_t end, std::uint32_t info) {
    pdata_ = Join({pdata_, Entry(begin, end, info)});
  }
  void CodeAt(std::uint32_t begin, const Bytes& code) {
    std::copy(code.begin(), code.end(), image_.begin() + kTextRva + begin);
  }

  [[nodiscard]] CompiledCfi Compile(std::uint32_t text = kTextRva,
                                    std::uint32_t text_limit = kTextRva + kTextBytes) {
    std::copy(xdata_.begin(), xdata_.end(), image_.begin() + kXdataRva);
    std::copy(pdata_.begin(), pdata_.end(), image_.begin() + kPdataRva);
    return CompilePdata({.read =
                             [this](Address position, std::span<std::uint8_t> bytes) {
                               if (position >= image_.size()) return std::size_t{0};
                               const std::size_t count =
                                   std::min<std::size_t>(bytes.size(), image_.size() - position);
                               std::copy_n(image_.begin() + static_cast<std::ptrdiff_t>(position),
                                           count, bytes.begin());
                               return count;
                             },
                         .pdata = kPdataRva,
                         .pdata_bytes = static_cast<std::uint32_t>(pdata_.size()),
                         .text = text,
                         .text_limit = text_limit});
  }

  Bytes xdata_;
  Bytes pdata_;

 private:
  Bytes image_;
};

const UnwindRule kLeafRule = FromSp(1);

SavedRegister RbxAt(const CompiledTable& table, std::uint32_t offset) {
  return table.table.FindSpecialRegister(offset);
}

TEST(CompilePdata, CodeWithoutAnEntryIsALeaf) {
  ImageBuilder image;
  const CompiledTable table(image.Compile());
  EXPECT_EQ(table.At(0), kLeafRule);
  EXPECT_EQ(table.At(kTextBytes - 1), kLeafRule);
  EXPECT_EQ(RbxAt(table, 5).where, SavedRegister::kUnchanged);
  EXPECT_EQ(table.statistics.fdes, 0u);
}

TEST(CompilePdata, FollowsThePrologue) {
  ImageBuilder image;
  // push rbp; push rbx; sub rsp, 0x28
  image.Function(
      0x10, 0x40,
      image.Info(6, Join({AllocateSmall(6, 0x28), Push(2, kNumberRbx), Push(1, kNumberRbp)})));
  const CompiledTable table(image.Compile());
  EXPECT_EQ(table.At(0xF), kLeafRule);
  EXPECT_EQ(table.At(0x10), kLeafRule);
  EXPECT_EQ(table.At(0x11), FromSp(2, 1, 2));
  EXPECT_EQ(table.At(0x12), FromSp(3, 1, 2));
  EXPECT_EQ(table.At(0x15), FromSp(3, 1, 2));
  EXPECT_EQ(table.At(0x16), FromSp(8, 1, 2));
  EXPECT_EQ(table.At(0x3F), FromSp(8, 1, 2));
  EXPECT_EQ(table.At(0x40), kLeafRule);
  EXPECT_EQ(RbxAt(table, 0x11).where, SavedRegister::kUnchanged);
  EXPECT_EQ(RbxAt(table, 0x20), (SavedRegister{.where = SavedRegister::kFromCfa, .distance = -24}));
  EXPECT_EQ(table.statistics.fdes, 1u);
  EXPECT_EQ(table.statistics.unknown_rows, 0u);
  EXPECT_EQ(table.statistics.broken_entries, 0u);
}

TEST(CompilePdata, KnowsEverySizeOfAllocation) {
  for (const auto& [codes, words] :
       std::vector<std::pair<Bytes, std::uint32_t>>{{AllocateSmall(4, 8), 2},
                                                    {AllocateSmall(4, 128), 17},
                                                    {AllocateLarge(4, 17), 18},
                                                    {AllocateLarge(4, 8000), 8001},
                                                    {AllocateHuge(4, 60000), 7501}}) {
    ImageBuilder image;
    image.Function(0, 0x40, image.Info(4, codes));
    const CompiledTable table(image.Compile());
    EXPECT_EQ(table.At(3), kLeafRule);
    EXPECT_EQ(table.At(4), FromSp(words));
  }
  ImageBuilder image;
  image.Function(0, 0x40, image.Info(4, AllocateHuge(4, 0x100000)));
  const SpecialRule rule = CompiledTable(image.Compile()).SpecialAt(4);
  EXPECT_EQ(rule.cfa_base, SpecialRule::Base::kSp);
  EXPECT_EQ(rule.cfa_offset, 0x100008);
}

TEST(CompilePdata, CountsFromTheFrameRegisterOnceItIsSet) {
  ImageBuilder image;
  // push rbp; sub rsp, 0x40; lea rbp, [rsp + 0x20]; then rsp may move
  const Bytes codes = Join({SetFrame(10), AllocateSmall(5, 0x40), Push(1, kNumberRbp)});
  image.Function(0, 0x40, image.Info(10, codes, {.frame_register = kNumberRbp, .frame_offset = 2}));
  const CompiledTable table(image.Compile());
  EXPECT_EQ(table.At(1), FromSp(2, 1, 2));
  EXPECT_EQ(table.At(9), FromSp(10, 1, 2));
  EXPECT_EQ(table.At(10), FromFp(6, 1, 2));
  EXPECT_EQ(table.At(0x3F), FromFp(6, 1, 2));
}

TEST(CompilePdata, AnyRegisterMayBeTheFrameRegister) {
  ImageBuilder image;
  image.Function(0, 0x40,
                 image.Info(8, Join({SetFrame(8), AllocateSmall(4, 0x20)}),
                            {.frame_register = kNumberR13, .frame_offset = 0}));
  const SpecialRule rule = CompiledTable(image.Compile()).SpecialAt(8);
  EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kOffset);
  EXPECT_EQ(rule.cfa_base, SpecialRule::Base::kOther);
  EXPECT_EQ(rule.cfa_other, 13);
  EXPECT_EQ(rule.cfa_offset, 0x28);
}

TEST(CompilePdata, RegistersAreSavedByMovesAsWell) {
  ImageBuilder image;
  // sub rsp, 0x48; mov [rsp + 0x40], rbp; mov [rsp + 0x30], rbx; and two moves of registers that
  // the table does not keep
  const Bytes codes =
      Join({SaveXmmFar(30), SaveXmm(25), SaveFar(20, kNumberR12, 0x28),
            SaveFar(15, kNumberRbx, 0x30), Save(9, kNumberRbp, 8), AllocateSmall(4, 0x48)});
  image.Function(0, 0x40, image.Info(30, codes));
  const CompiledTable table(image.Compile());
  EXPECT_EQ(table.At(8), FromSp(10));
  EXPECT_EQ(table.At(9), FromSp(10, 1, 2));
  EXPECT_EQ(RbxAt(table, 14).where, SavedRegister::kUnchanged);
  EXPECT_EQ(RbxAt(table, 15), (SavedRegister{.where = SavedRegister::kFromCfa, .distance = -32}));
}

TEST(CompilePdata, ContinuedFunctionsHaveTheirPrologueBehindThem) {
  ImageBuilder image;
  const std::uint32_t info = image.Info(5, Join({AllocateSmall(5, 0x20), Push(1, kNumberRbp)}));
  image.Function(0, 0x40, info);
  const Bytes first = ImageBuilder::Entry(0, 0x40, info);
  // A cold part of it that pushes one more register.
  image.Function(0x100, 0x120, image.Info(1, Push(1, kNumberRsi), {.continued = &first}));
  // And one that names the entry itself.
  image.Function(0x140, 0x160, kPdataRva | 1);
  const CompiledTable table(image.Compile());
  EXPECT_EQ(table.At(0x100), FromSp(6, 1, 2));
  EXPECT_EQ(table.At(0x101), FromSp(7, 1, 2));
  EXPECT_EQ(table.At(0x150), FromSp(6, 1, 2));
  EXPECT_EQ(table.statistics.broken_entries, 0u);
}

TEST(CompilePdata, MachineFramesHoldWhatWasInterrupted) {
  for (const bool has_error_code : {false, true}) {
    ImageBuilder image;
    image.Function(0, 0x40,
                   image.Info(6, Join({AllocateSmall(6, 0x10), Push(2, kNumberRbp),
                                       MachineFrame(has_error_code)})));
    const SpecialRule rule = CompiledTable(image.Compile()).SpecialAt(0x10);
    const std::int32_t rip = 0x18 + (has_error_code ? 8 : 0);
    EXPECT_TRUE(rule.is_signal_frame);
    EXPECT_EQ(rule.cfa, SpecialRule::Cfa::kMemory);
    EXPECT_EQ(rule.cfa_offset, rip + 24);
    EXPECT_EQ(rule.ra, (SpecialRule::Location{.where = SpecialRule::Where::kMemory,
                                              .base = SpecialRule::Base::kSp,
                                              .offset = rip}));
    EXPECT_EQ(rule.fp, (SpecialRule::Location{.where = SpecialRule::Where::kMemory,
                                              .base = SpecialRule::Base::kSp,
                                              .offset = 0x10}));
  }
}

struct EpilogueCase {
  const char* what;
  Bytes code;
  std::map<std::uint32_t, UnwindRule> rules;  // by offset in the code
};

void PrintTo(const EpilogueCase& one, std::ostream* os) { *os << one.what; }

class PdataEpilogue : public ::testing::TestWithParam<EpilogueCase> {};

// Each stands in the middle of a function that has pushed rbp and rbx and allocated 0x28 bytes.
TEST_P(PdataEpilogue, BecomesRows) {
  constexpr std::uint32_t kAt = 0x50;
  ImageBuilder image;
  image.Function(
      0x10, 0x100,
      image.Info(6, Join({AllocateSmall(6, 0x28), Push(2, kNumberRbx), Push(1, kNumberRbp)})));
  image.CodeAt(kAt, GetParam().code);
  const CompiledTable table(image.Compile());
  const UnwindRule body = FromSp(8, 1, 2);
  EXPECT_EQ(table.At(kAt - 1), body);
  for (const auto& [offset, rule] : GetParam().rules)
    EXPECT_EQ(table.At(kAt + offset), rule) << offset;
  EXPECT_EQ(table.At(kAt + static_cast<std::uint32_t>(GetParam().code.size())), body);
}

const UnwindRule kBody = FromSp(8, 1, 2);
const UnwindRule kReleased = FromSp(3, 1, 2);
const UnwindRule kOnePopped = FromSp(2, 1, 2);

INSTANTIATE_TEST_SUITE_P(
    All, PdataEpilogue,
    ::testing::Values(
        EpilogueCase{"add rsp of 8 bits",
                     {0x48, 0x83, 0xC4, 0x28, 0x5B, 0x5D, 0xC3},
                     {{0, kBody}, {4, kReleased}, {5, kOnePopped}, {6, kLeafRule}}},
        EpilogueCase{"add rsp of 32 bits, ret n",
                     {0x48, 0x81, 0xC4, 0x28, 0, 0, 0, 0x5B, 0x5D, 0xC2, 8, 0},
                     {{0, kBody}, {7, kReleased}, {8, kOnePopped}, {9, kLeafRule}}},
        EpilogueCase{"lea from rbp",
                     {0x48, 0x8D, 0x65, 0x10, 0x5B, 0x5D, 0xC3},
                     {{0, FromFp(5, 1, 2)}, {4, kReleased}, {6, kLeafRule}}},
        EpilogueCase{"lea of 32 bits",
                     {0x48, 0x8D, 0xA5, 0x10, 0, 0, 0, 0x5D, 0xC3},
                     {{0, FromFp(4, 1, 2)}, {7, kOnePopped}, {8, kLeafRule}}},
        EpilogueCase{"mov rsp, rbp",
                     {0x48, 0x89, 0xEC, 0x5D, 0xC3},
                     {{0, FromFp(2, 1, 2)}, {3, kOnePopped}, {4, kLeafRule}}},
        EpilogueCase{"the other mov rsp, rbp",
                     {0x48, 0x8B, 0xE5, 0x5D, 0xC3},
                     {{0, FromFp(2, 1, 2)}, {3, kOnePopped}, {4, kLeafRule}}},
        EpilogueCase{"leave", {0xC9, 0xC3}, {{0, FromFp(2, 1, 2)}, {1, kLeafRule}}},
        EpilogueCase{"high registers",
                     {0x41, 0x5C, 0x5D, 0xC3},
                     {{0, FromSp(3, 1, 2)}, {2, kOnePopped}, {3, kLeafRule}}},
        EpilogueCase{"vzeroupper",
                     {0x48, 0x83, 0xC4, 0x28, 0xC5, 0xF8, 0x77, 0x5B, 0x5D, 0xC3},
                     {{4, kReleased}, {7, kReleased}, {9, kLeafRule}}},
        EpilogueCase{"rep ret", {0x5B, 0x5D, 0xF3, 0xC3}, {{0, kReleased}, {2, kLeafRule}}},
        EpilogueCase{"a jump out",
                     {0x5B, 0x5D, 0xE9, 0, 1, 0, 0},
                     {{0, kReleased}, {1, kOnePopped}, {2, kLeafRule}}},
        EpilogueCase{"a jump by memory",
                     {0x5B, 0x5D, 0x48, 0xFF, 0x25, 0, 1, 0, 0},
                     {{0, kReleased}, {2, kLeafRule}}},
        EpilogueCase{"a jump by a register",
                     {0x5B, 0x5D, 0x48, 0xFF, 0xE0},
                     {{0, kReleased}, {2, kLeafRule}}},
        EpilogueCase{"a jump to the rest of it",
                     {0x5B, 0xEB, 2, 0x90, 0x90, 0x5D, 0xC3},
                     {{0, kReleased}, {1, kOnePopped}, {3, kBody}, {5, kOnePopped}}},
        EpilogueCase{"no epilogue: not at an end",
                     {0x5B, 0x5D, 0x90, 0xC3},
                     {{0, kBody}, {1, kBody}, {2, kBody}}},
        EpilogueCase{"no epilogue: stack is released twice",
                     {0x48, 0x83, 0xC4, 8, 0x48, 0x83, 0xC4, 8, 0x90, 0xC3},
                     {{0, kBody}, {4, kBody}}},
        EpilogueCase{"no epilogue: addsd xmm0, xmm2 ends like ret n",
                     {0xF2, 0x0F, 0x58, 0xC2, 0x66, 0x0F, 0x10, 0xD0},
                     {{4, kBody}, {8, kBody}}},
        EpilogueCase{"no epilogue: subsd xmm5, xmm1 ends like a jump",
                     {0xF2, 0x0F, 0x5C, 0xE9, 0xF2, 0x0F, 0x11, 0x13},
                     {{4, kBody}, {8, kBody}}},
        EpilogueCase{
            "no epilogue: jumps in a circle", {0x5B, 0xEB, 0xFE}, {{0, kBody}, {1, kBody}}}));

// Whatever stands before an epilogue: were its instruction taken for shorter, the bytes that it
// ends with would seem to pop registers, and for longer, the first pop would be missed.
TEST(CompilePdata, EpiloguesBeginWhereInstructionsDo) {
  struct Instruction {
    Bytes begin;
    std::size_t more_bytes;
  };
  const std::vector<Instruction> instructions = {
      {{0x90}, 0},                                // nop
      {{0x04}, 1},                                // add al, n
      {{0x66, 0x05}, 2},                          // add ax, n
      {{0x48, 0x05}, 4},                          // add rax, n
      {{0xB3}, 1},                                // mov bl, n
      {{0xB8}, 4},                                // mov eax, n
      {{0x49, 0xB8}, 8},                          // mov r8, n
      {{0x66, 0xB8}, 2},                          // mov ax, n
      {{0x48, 0xA1}, 8},                          // mov rax, [n]
      {{0x67, 0xA1}, 4},                          // mov eax, [n]
      {{0x8B, 0xC0}, 0},                          // mov eax, eax
      {{0x8B, 0x40}, 1},                          // mov eax, [rax + n]
      {{0x8B, 0x80}, 4},                          // mov eax, [rax + n]
      {{0x8B, 0x05}, 4},                          // mov eax, [rip + n]
      {{0x8B, 0x04, 0x08}, 0},                    // mov eax, [rax + rcx]
      {{0x8B, 0x04, 0x25}, 4},                    // mov eax, [n]
      {{0x8B, 0x44, 0x25}, 1},                    // mov eax, [rbp + n]
      {{0x65, 0x48, 0x8B, 0x04, 0x25}, 4},        // mov rax, gs:[n]
      {{0xC7, 0x44, 0x24}, 5},                    // mov dword [rsp + n], n
      {{0x66, 0x81, 0xF8}, 2},                    // cmp ax, n
      {{0x83, 0xF8}, 1},                          // cmp eax, n
      {{0x69, 0xC0}, 4},                          // imul eax, eax, n
      {{0xF6, 0xC1}, 1},                          // test cl, n
      {{0xF7, 0xC1}, 4},                          // test ecx, n
      {{0xF7, 0xD9}, 0},                          // neg ecx
      {{0xC1, 0xE0}, 1},                          // shl eax, n
      {{0x74}, 1},                                // je
      {{0x0F, 0x84}, 4},                          // je
      {{0xE8}, 4},                                // call
      {{0xFF, 0x50}, 1},                          // call [rax + n]
      {{0xF3, 0x48, 0xAB}, 0},                    // rep stosq
      {{0xF0, 0x0F, 0xB1, 0x11}, 0},              // lock cmpxchg [rcx], edx
      {{0x0F, 0xA2}, 0},                          // cpuid
      {{0x0F, 0xBA, 0xE0}, 1},                    // bt eax, n
      {{0x66, 0x0F, 0x70, 0xC0}, 1},              // pshufd xmm0, xmm0, n
      {{0x66, 0x0F, 0x38, 0x00, 0xC1}, 0},        // pshufb xmm0, xmm1
      {{0x66, 0x0F, 0x3A, 0x0F, 0xC1}, 1},        // palignr xmm0, xmm1, n
      {{0xC5, 0xF8, 0x28, 0x40}, 1},              // vmovaps xmm0, [rax + n]
      {{0xC5, 0xF9, 0x70, 0xC0}, 1},              // vpshufd xmm0, xmm0, n
      {{0xC4, 0xE2, 0x7D, 0x18, 0x40}, 1},        // vbroadcastss ymm0, [rax + n]
      {{0xC4, 0xE3, 0x7D, 0x19, 0xC1}, 1},        // vextractf128 xmm1, ymm0, n
      {{0x62, 0xF1, 0x7C, 0x48, 0x28, 0x80}, 4},  // vmovaps zmm0, [rax + n]
      {{0xC8}, 3},                                // enter n, n
  };
  for (const Instruction& instruction : instructions) {
    constexpr std::uint32_t kAt = 0x50;
    constexpr std::uint8_t kPopRbx = 0x5B;
    ImageBuilder image;
    image.Function(
        0x10, 0x100,
        image.Info(6, Join({AllocateSmall(6, 0x28), Push(2, kNumberRbx), Push(1, kNumberRbp)})));
    const Bytes code = Join({instruction.begin, Bytes(instruction.more_bytes, kPopRbx)});
    const auto bytes = static_cast<std::uint32_t>(code.size());
    image.CodeAt(kAt, Join({code, {kPopRbx, 0x5D, 0xC3}}));
    const CompiledTable table(image.Compile());
    for (std::uint32_t i = 0; i < bytes; ++i)
      EXPECT_EQ(table.At(kAt + i), kBody) << ::testing::PrintToString(code) << i;
    EXPECT_EQ(table.At(kAt + bytes), kReleased) << ::testing::PrintToString(code);
  }
}

TEST(CompilePdata, CodesThatCannotBeUnderstoodCostOneFunctionOnly) {
  ImageBuilder image;
  const Bytes push = Push(1, kNumberRbp);
  const std::vector<std::uint32_t> broken = {
      image.Info(1, push, {.version = 3}),
      image.Info(4, Code(4, 1, 0)),   // a large allocation without its size
      image.Info(4, Code(4, 11, 0)),  // no such operation
      0x7FFFFFF0,                     // outside of the image
      0x7FFFFFF1,
  };
  std::uint32_t begin = 0;
  const auto add = [&](std::uint32_t info) {
    image.Function(begin, begin + 0x20, info);
    begin += 0x20;
  };
  for (const std::uint32_t info : broken) add(info);
  // Two that continue themselves, for ever.
  const Bytes itself = ImageBuilder::Entry(
      begin, begin + 0x20, static_cast<std::uint32_t>(kXdataRva + image.xdata_.size()));
  add(image.Info(1, push, {.continued = &itself}));
  add((kPdataRva + static_cast<std::uint32_t>(image.pdata_.size())) | 1);
  image.Function(begin, begin + 0x20, image.Info(1, push));
  // Before the one before; and one that ends before it begins.
  image.Function(0x10, 0x40, image.Info(1, push));
  image.Function(begin + 0x40, begin + 0x30, image.Info(1, push));
  const CompiledTable table(image.Compile());
  EXPECT_EQ(table.statistics.broken_entries, broken.size() + 4);
  for (std::uint32_t at = 0; at < begin; at += 0x20)
    EXPECT_EQ(table.At(at + 2), UnwindRule::Unknown()) << at;
  EXPECT_EQ(table.At(begin + 2), FromSp(2, 1, 2));
  EXPECT_EQ(table.At(begin + 0x20), kLeafRule);
}

// No compiler writes a prologue that ends before its last instruction.
TEST(CompilePdata, RowsAreInOrderWhateverThePrologueSays) {
  ImageBuilder image;
  image.Function(0, 0x40, image.Info(2, Join({Push(0x20, kNumberRbx), Push(1, kNumberRbp)})));
  image.CodeAt(0x10, {0x5B, 0x5D, 0xC3});
  const CompiledTable table(image.Compile());
  EXPECT_TRUE(
      std::is_sorted(table.rows.begin(), table.rows.end(),
                     [](const UnwindRow& a, const UnwindRow& b) { return a.offset < b.offset; }));
  EXPECT_EQ(table.At(0x11), FromSp(2, 1, 2));
  EXPECT_EQ(table.At(0x20), FromSp(3, 1, 2));
}

TEST(CompilePdata, AnEntryThatCannotBeReadIsCounted) {
  ImageBuilder image;
  CompiledCfi compiled =
      CompilePdata({.read = [](Address, std::span<std::uint8_t>) { return std::size_t{0}; },
                    .pdata = kPdataRva,
                    .pdata_bytes = 24,
                    .text = kTextRva,
                    .text_limit = kTextRva + kTextBytes});
  EXPECT_EQ(compiled.statistics.broken_entries, 1u);
}

// Text is compiled in pieces: what reaches into one is in force where that begins.
TEST(CompilePdata, APieceOfTheTextSaysTheSame) {
  ImageBuilder image;
  const std::uint32_t info =
      image.Info(6, Join({AllocateSmall(6, 0x28), Push(2, kNumberRbx), Push(1, kNumberRbp)}));
  for (std::uint32_t begin = 0; begin < kTextBytes; begin += 0x100) {
    image.Function(begin, begin + 0xE0, info);
    image.CodeAt(begin + 0x7C, {0x48, 0x83, 0xC4, 0x28, 0x5B, 0x5D, 0xC3});
  }
  const CompiledTable whole(image.Compile());
  for (const std::uint32_t piece : {0x10u, 0x101u, 0x180u, 0x2F0u, 0x3FFu}) {
    const CompiledTable part(image.Compile(kTextRva + piece, kTextRva + piece + 0x200));
    for (std::uint32_t at = 0; at < 0x200; ++at)
      ASSERT_EQ(part.At(at), whole.At(piece + at)) << piece << " " << at;
  }
}

}  // namespace
}  // namespace strobe::testing
