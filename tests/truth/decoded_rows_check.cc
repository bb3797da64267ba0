// decoded_rows_check [FILE...]: decodes the code of each ELF file for x86-64 as if the file had no
// frame information, and compares what that says of each byte of code with what the frame
// information says. Without files: the C library and that of mathematics. Exit status 1 if more
// than kMostWrong of a file's code is unwound another way, or less than kLeastFound at all. Not all
// of it can be right: nothing in the code leads to where makecontext's functions return, nor to an
// exception's handler, which stands behind a call that never returns.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../../src/unwind/decoded/decoded_code.h"
#include "elf_file.h"

namespace strobe::testing {
namespace {

constexpr double kMostWrong = 0.002;
constexpr double kLeastFound = 0.4;

struct Counts {
  std::size_t same = 0;
  std::size_t lost = 0;
  std::size_t wrong = 0;

  [[nodiscard]] double Part(std::size_t count) const {
    return static_cast<double>(count) / static_cast<double>(same + lost + wrong);
  }
};

// Both say where the caller's frame is, from sp or from fp, and where its fp lies. That lies below
// the stack pointer after it has been popped, and is in the register then.
bool IsSame(UnwindRule decoded, UnwindRule described) {
  const auto fp_words = [](UnwindRule rule) {
    return rule.is_from_fp() || rule.fp_words() <= rule.cfa_words() ? rule.fp_words() : 0;
  };
  return fp_words(decoded) == fp_words(described) &&
         (decoded.is_from_fp() != described.is_from_fp() ||
          decoded.cfa_words() == described.cfa_words());
}

SpecialRule SpecialOf(UnwindRule rule, const CompiledCfi& compiled) {
  return rule.kind() == UnwindRule::Kind::kSpecial ? compiled.specials[rule.special_number()]
                                                   : SpecialRule();
}
// Whether both mean the same word of an aligned frame, which has its caller's stack pointer.
// Nothing if they count from different registers.
std::optional<bool> IsSameWord(const SpecialRule& decoded, const SpecialRule& described) {
  const bool is_word = decoded.cfa == SpecialRule::Cfa::kMemory ||
                       (decoded.cfa == SpecialRule::Cfa::kExpression &&
                        decoded.expression.bytes[0] == described.expression.bytes[0]);
  if (!is_word || decoded.cfa != described.cfa || decoded.cfa_base != described.cfa_base)
    return std::nullopt;
  return decoded.cfa_offset == described.cfa_offset && decoded.expression == described.expression;
}

// The rule of each byte.
std::vector<UnwindRule> RulesOf(const CompiledCfi& compiled, std::size_t bytes) {
  std::vector<UnwindRule> rules(bytes);
  for (std::size_t i = 0; i < compiled.rows.size(); ++i) {
    const std::size_t end = i + 1 < compiled.rows.size() ? compiled.rows[i + 1].offset : bytes;
    for (std::size_t at = compiled.rows[i].offset; at < std::min(end, bytes); ++at)
      rules[at] = compiled.rows[i].rule;
  }
  return rules;
}

// A segment's code, a chunk at a time as a profiler compiles it.
void CountSegment(const ElfSegment& segment, CfiSource source, Counts& counts) {
  constexpr std::size_t kChunk = UnwindModules::kChunkBytes;
  for (std::size_t begin = 0; begin < segment.bytes.size(); begin += kChunk) {
    const auto code = segment.bytes.subspan(begin, std::min(kChunk, segment.bytes.size() - begin));
    source.text_start = segment.start + begin;
    source.text_limit = source.text_start + code.size();
    CompiledCfi decoded;
    decoded.specials.emplace_back();
    internal::AddDecodedCode({.begin = 0,
                              .end = static_cast<std::uint32_t>(code.size()),
                              .text = code,
                              .begins_function = begin == 0},
                             decoded);
    const CompiledCfi compiled = CompileCfi(source);
    const std::vector<UnwindRule> found = RulesOf(decoded, code.size());
    const std::vector<UnwindRule> described = RulesOf(compiled, code.size());
    for (std::size_t at = 0; at < code.size(); ++at) {
      if (!described[at].is_frame()) {
        const std::optional<bool> is_same =
            IsSameWord(SpecialOf(found[at], decoded), SpecialOf(described[at], compiled));
        if (is_same) ++(*is_same ? counts.same : counts.wrong);
      } else if (!found[at].is_frame()) {
        ++counts.lost;
      } else {
        ++(IsSame(found[at], described[at]) ? counts.same : counts.wrong);
      }
    }
  }
}

bool Check(const std::string& path) {
  const std::optional<ElfFile> file = ElfFile::Read(path);
  if (!file || file->architecture() != Architecture::kX86_64) return true;
  Counts counts;
  for (const ElfSegment& segment : file->segments()) {
    const std::optional<CfiSource> source = file->FramesOf(segment);
    if (segment.is_code && source) CountSegment(segment, *source, counts);
  }
  if (counts.same + counts.lost + counts.wrong == 0) return true;
  std::printf("%-60s same %6.3f %%, lost %6.3f %%, wrong %7.4f %%\n", path.c_str(),
              100 * counts.Part(counts.same), 100 * counts.Part(counts.lost),
              100 * counts.Part(counts.wrong));
  return counts.Part(counts.wrong) <= kMostWrong && counts.Part(counts.same) >= kLeastFound;
}

// Those of C among the libraries that this program has loaded.
std::set<std::string> LibrariesOfC() {
  std::set<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const bool is_of_c =
        line.find("/libc.so") != std::string::npos || line.find("/libm.so") != std::string::npos;
    if (is_of_c) paths.insert(line.substr(line.find('/')));
  }
  return paths;
}

int Main(int argc, char** argv) {
  std::set<std::string> paths(argv + 1, argv + argc);
  if (paths.empty()) paths = LibrariesOfC();
  bool is_good = true;
  for (const std::string& path : paths) is_good &= Check(path);
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Main(argc, argv); }
