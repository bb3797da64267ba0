// rows_without_rule [FILE...]: lists each row of the files' frame information that no rule of an
// UnwindTable says: a walk marks its stack as cut there. Then how many they are of how many rows,
// with broken entries. Without files: this program and the libraries that it has loaded. Exit
// status 1 if more than one row of 100,000 has no rule, or if there is no row.
//
//   find /usr/lib -type f -print0 | xargs -0 rows_without_rule
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "elf_file.h"
#include "strobe/platform/native.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kRowsForOneWithout = 100'000;

bool HasNoRule(const UnwindRow& row, const std::vector<SpecialRule>& specials) {
  return row.rule.kind() == UnwindRule::Kind::kSpecial && row.rule.special_number() != 0 &&
         specials[row.rule.special_number()].cfa == SpecialRule::Cfa::kLost;
}

// Adds what the file has to `sum`; true if it has frame information.
bool AddFile(const std::string& path, CfiStatistics& sum) {
  const std::optional<ElfFile> file = ElfFile::Read(path);
  if (!file) return false;
  bool has_frames = false;
  for (const ElfSegment& segment : file->segments()) {
    const std::optional<CfiSource> source =
        segment.is_code ? file->FramesOf(segment) : std::nullopt;
    if (!source) continue;
    has_frames = true;
    const CompiledCfi compiled = CompileCfi(*source);
    sum += compiled.statistics;
    if (compiled.statistics.broken_entries != 0) {
      std::printf("%s: %zu entries are broken\n", path.c_str(), compiled.statistics.broken_entries);
    }
    for (const UnwindRow& row : compiled.rows) {
      if (!HasNoRule(row, compiled.specials)) continue;
      const unsigned long long address = segment.start + row.offset;
      std::printf("%s: no rule at %#llx\n", path.c_str(), address);
    }
  }
  return has_frames;
}

std::vector<std::string> LoadedFiles() {
  std::vector<std::string> files;
  for (const Module& module : NativePlatform::Modules()) files.push_back(module.path);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

int Run(const std::vector<std::string>& files) {
  CfiStatistics sum;
  std::size_t with_frames = 0;
  for (const std::string& file : files) with_frames += AddFile(file, sum) ? 1 : 0;
  std::printf(
      "%zu files with frame information: %zu functions, %zu rows, %zu without a rule, %zu "
      "broken entries\n",
      with_frames, sum.fdes, sum.rows, sum.unknown_rows, sum.broken_entries);
  const bool has_few = sum.unknown_rows <= sum.rows / kRowsForOneWithout;
  return sum.rows != 0 && has_few ? 0 : 1;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  using strobe::testing::LoadedFiles;
  const std::vector<std::string> files(argv + 1, argv + argc);
  return strobe::testing::Run(files.empty() ? LoadedFiles() : files);
}
