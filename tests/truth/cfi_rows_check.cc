// cfi_rows_check [--break] [FILE...]: compiles the frame information of each file and compares it,
// row by row, with what binutils makes of it: of an ELF file's .eh_frame; and of a Windows image's
// .debug_frame, which the compiler writes independently of the .pdata that is compiled here. Exit
// status 1 on any mismatch. Without files: this program, the libraries that it has loaded, and
// aarch64's where they are installed. --break falsifies one row of each file first: a check of the
// check.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "elf_file.h"
#include "pe_file.h"
#include "rule_text.h"

namespace strobe::testing {
namespace {

struct ReadelfRow {
  Address address = 0;
  RowText text;
};

struct ReadelfFde {
  Address begin = 0;
  Address end = 0;
  std::vector<ReadelfRow> rows;
};

// Reads what binutils prints of one section.
class ReadelfText {
 public:
  explicit ReadelfText(Architecture architecture) : texts_(architecture) {}

  // False if the tool cannot be run.
  bool Read(const std::string& path, const std::string& tool, const std::string& section) {
    section_ = "Contents of the " + section + " section";
    std::string command = "LC_ALL=C " + tool + " '";
    for (const char c : path) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        popen((command + "' 2>/dev/null").c_str(), "r"), &pclose);
    if (pipe == nullptr) return false;
    char line[4096];
    while (std::fgets(line, sizeof(line), pipe.get()) != nullptr) AddLine(line);
    FinishFde();
    return has_output_;
  }

  [[nodiscard]] const std::vector<ReadelfFde>& fdes() const { return fdes_; }

 private:
  void AddLine(const std::string& line) {
    if (line.starts_with("Contents of the ")) {
      FinishFde();
      is_asked_for_ = line.starts_with(section_);
      has_output_ = true;
      return;
    }
    if (!is_asked_for_) return;
    std::istringstream words(line);
    std::vector<std::string> tokens;
    for (std::string word; words >> word;) {
      if (word.starts_with("(") && !tokens.empty()) continue;  // "r3 (rbx)"
      tokens.push_back(word);
    }
    if (tokens.size() > 3 && (tokens[3] == "CIE" || tokens[3] == "FDE")) {
      FinishFde();
      BeginEntry(tokens);
    } else if (tokens.size() > 1 && tokens[0] == "LOC") {
      columns_ = tokens;
    } else if (tokens.size() > 1 && tokens[0].size() == 16) {
      AddRow(tokens);
    }
  }

  void BeginEntry(const std::vector<std::string>& tokens) {
    columns_.clear();
    is_cie_ = tokens[3] == "CIE";
    cie_offset_ = std::stoull(is_cie_ ? tokens[0] : tokens[4].substr(4), nullptr, 16);
    if (is_cie_) {
      cies_[cie_offset_] = {};
      return;
    }
    const std::string& range = tokens[5];  // pc=BEGIN..END
    const std::size_t dots = range.find("..");
    fde_ = {.begin = std::stoull(range.substr(3, dots - 3), nullptr, 16),
            .end = std::stoull(range.substr(dots + 2), nullptr, 16),
            .rows = {}};
    has_fde_ = true;
  }

  void AddRow(const std::vector<std::string>& tokens) {
    RowText text{.cfa = "", .fp = "u", .ra = "u", .rbx = texts_.Fp() == "rbp" ? "u" : ""};
    for (std::size_t i = 1; i < std::min(tokens.size(), columns_.size()); ++i) {
      const std::string value = tokens[i] == "s" ? "u" : tokens[i];
      if (columns_[i] == "CFA") text.cfa = value;
      if (columns_[i] == texts_.Fp()) text.fp = Named(value);
      if (columns_[i] == "ra") text.ra = Named(value);
      if (columns_[i] == "rbx") text.rbx = Named(value);
    }
    if (is_cie_) {
      cies_[cie_offset_] = text;
    } else {
      fde_.rows.push_back({std::stoull(tokens[0], nullptr, 16), text});
    }
  }

  // "r3" is a register by its number.
  [[nodiscard]] std::string Named(const std::string& value) const {
    if (value.size() < 2 || value[0] != 'r' ||
        value.find_first_not_of("0123456789", 1) != std::string::npos)
      return value;
    return DwarfRegisterName(texts_.Fp() == "rbp" ? Architecture::kX86_64 : Architecture::kAarch64,
                             static_cast<unsigned>(std::stoul(value.substr(1))));
  }

  void FinishFde() {
    if (!has_fde_) return;
    has_fde_ = false;
    if (fde_.rows.empty()) fde_.rows.push_back({fde_.begin, cies_[cie_offset_]});
    fdes_.push_back(std::move(fde_));
  }

  RuleTexts texts_;
  bool has_output_ = false;
  std::string section_;
  bool is_asked_for_ = false;
  bool is_cie_ = false;
  bool has_fde_ = false;
  std::uint64_t cie_offset_ = 0;
  std::vector<std::string> columns_;
  std::map<std::uint64_t, RowText> cies_;
  ReadelfFde fde_;
  std::vector<ReadelfFde> fdes_;
};

struct Totals {
  std::size_t files = 0;
  std::size_t skipped = 0;
  std::size_t fdes = 0;
  std::size_t rows = 0;
  std::size_t mismatches = 0;
  std::map<std::string, std::size_t> unknown;  // by reason
  std::map<std::string, std::size_t>
      specials;  // by how the CFA is found where it is not sp or fp and an offset
  std::set<std::string> shown;
};

class FileCheck {
 public:
  // `is_loose`: g++ writes .debug_frame for Windows as if an epilogue never changed what was
  // counted from rbp before, so a function's rows can be compared up to the first of these.
  FileCheck(std::string path, Architecture architecture, bool is_loose, Totals& totals)
      : path_(std::move(path)),
        architecture_(architecture),
        is_loose_(is_loose),
        texts_(architecture),
        totals_(totals) {}

  // `between` is what holds between functions; nothing is asked there if it is empty.
  void Check(Address start, Address limit, const CompiledCfi& compiled,
             const std::vector<ReadelfFde>& fdes, const RowText& between) {
    start_ = start;
    rows_ = &compiled.rows;
    const UnwindTable table(static_cast<std::uint32_t>(limit - start), compiled.rows,
                            compiled.specials);
    table_ = &table;
    for (std::size_t i = 0; i < fdes.size(); ++i) {
      const ReadelfFde& fde = fdes[i];
      if (fde.begin < start || fde.end > limit || fde.begin >= fde.end) continue;
      ++totals_.fdes;
      // Where two functions overlap, the later one's rows hold.
      const Address end = i + 1 < fdes.size()
                              ? std::min(fde.end, std::max(fdes[i + 1].begin, fde.begin + 1))
                              : fde.end;
      CheckFde(fde, end);
      if (between != RowText() && (i + 1 == fdes.size() || fdes[i + 1].begin > fde.end))
        Compare(fde.end, between);
    }
  }

 private:
  void CheckFde(const ReadelfFde& fde, Address end) {
    for (std::size_t i = 0; i < fde.rows.size(); ++i) {
      const Address begin = fde.rows[i].address;
      const Address limit = i + 1 < fde.rows.size() ? std::min(fde.rows[i + 1].address, end) : end;
      if (begin >= limit) continue;  // the next row is for the same place
      if (is_loose_ && !fde.rows[i].text.cfa.starts_with("rsp+")) {
        ++totals_.unknown["rows of a Windows function from where it counts from rbp"];
        return;
      }
      ++totals_.rows;
      Compare(begin, fde.rows[i].text);
      // A compiler's .debug_frame leaves the padding behind a return to the row before.
      if (is_loose_) continue;
      Compare(limit - 1, fde.rows[i].text);
      // No row of ours may begin in between and say anything else.
      const auto offset = static_cast<std::uint32_t>(begin - start_);
      auto row =
          std::upper_bound(rows_->begin(), rows_->end(), offset,
                           [](std::uint32_t at, const UnwindRow& r) { return at < r.offset; });
      for (; row != rows_->end() && row->offset < limit - start_; ++row)
        Compare(start_ + row->offset, fde.rows[i].text);
    }
  }

  void Compare(Address address, const RowText& expected) {
    const RowText found = texts_.Of(*table_, static_cast<std::uint32_t>(address - start_));
    const bool is_special =
        !found.cfa.starts_with(texts_.Sp() + "+") && !found.cfa.starts_with(texts_.Fp() + "+");
    if (is_special && found.ra != "end" && found.cfa != "unknown") ++totals_.specials[found.cfa];
    if (found == expected || Agrees(found, expected)) return;
    ++totals_.mismatches;
    std::ostringstream text;
    text << "  readelf " << expected.cfa << " " << expected.fp << " " << expected.ra << " "
         << expected.rbx << " | table " << found.cfa << " " << found.fp << " " << found.ra << " "
         << found.rbx;
    constexpr std::size_t kMaxShown = 20;
    if (totals_.shown.size() < kMaxShown && totals_.shown.insert(text.str()).second) {
      std::cout << "MISMATCH " << path_ << " " << std::hex << address << std::dec << text.str()
                << "\n";
    }
  }

  bool Agrees(const RowText& found, const RowText& expected) {
    const bool is_x86_64 = architecture_ == Architecture::kX86_64;
    if (found.ra == "end")
      return expected.ra ==
             "u";  // readelf writes the same for a link register that nothing was said of
    if (found.cfa == "unknown") {
      const std::string reason = UnknownReason(expected, is_x86_64);
      if (!reason.empty()) ++totals_.unknown[reason];
      return !reason.empty();
    }
    const auto agrees = [](const std::string& ours, const std::string& theirs) {
      return ours == theirs || (theirs == "exp" && ours.starts_with("exp"));
    };
    // Of rbx anything may be unknown that is not plain; it is asked for rarely.
    const bool is_rbx_unknown =
        found.rbx == "unknown" && expected.rbx != "u" && !expected.rbx.starts_with("c");
    if (is_rbx_unknown) ++totals_.unknown["rbx " + expected.rbx];
    return agrees(found.cfa, expected.cfa) && agrees(found.fp, expected.fp) &&
           agrees(found.ra, expected.ra) && (is_rbx_unknown || agrees(found.rbx, expected.rbx));
  }

  // Why no rule can say what the row says; empty where one could.
  static std::string UnknownReason(const RowText& row, bool is_x86_64) {
    if (row.cfa == "exp") return "CFA by an expression";
    if (row.fp == "exp" || row.ra == "exp") return "register by an expression";
    if (row.fp.starts_with("v") || row.ra.starts_with("v")) return "register by its value";
    if (is_x86_64 && row.ra == "u") return "return address unchanged";
    return "";
  }

  const std::string path_;
  const Architecture architecture_;
  const bool is_loose_;
  const RuleTexts texts_;
  Totals& totals_;
  Address start_ = 0;
  const std::vector<UnwindRow>* rows_ = nullptr;
  const UnwindTable* table_ = nullptr;
};

void BreakARow(CompiledCfi& compiled) {
  if (compiled.rows.empty()) return;
  UnwindRow& row = compiled.rows[compiled.rows.size() / 2];
  row.rule = row.rule == UnwindRule::Stop() ? UnwindRule::Unknown() : UnwindRule::Stop();
}

std::vector<ReadelfFde> Sorted(std::vector<ReadelfFde> fdes) {
  std::stable_sort(fdes.begin(), fdes.end(),
                   [](const ReadelfFde& a, const ReadelfFde& b) { return a.begin < b.begin; });
  return fdes;
}

// False where binutils cannot be run.
bool CheckElf(const std::string& path, const ElfFile& file, bool is_broken_first, Totals& totals) {
  ReadelfText readelf(file.architecture());
  bool is_first = true;
  for (const ElfSegment& segment : file.segments()) {
    const std::optional<CfiSource> source = segment.is_code ? file.FramesOf(segment) : std::nullopt;
    if (!source) continue;
    if (is_first && !readelf.Read(path, "readelf -W --debug-dump=frames-interp", ".eh_frame"))
      return false;
    totals.files += is_first ? 1 : 0;
    is_first = false;
    CompiledCfi compiled = CompileCfi(*source);
    if (is_broken_first) BreakARow(compiled);
    FileCheck(path, file.architecture(), false, totals)
        .Check(segment.start, segment.limit, compiled, Sorted(readelf.fdes()),
               {.cfa = "unknown", .fp = "", .ra = "", .rbx = ""});
  }
  if (is_first) ++totals.skipped;
  return true;
}

bool CheckPe(const std::string& path, const PeFile& file, bool is_broken_first, Totals& totals) {
  ReadelfText objdump(Architecture::kX86_64);
  if (!objdump.Read(path, "x86_64-w64-mingw32-objdump --dwarf=frames-interp", ".debug_frame"))
    return false;
  ++totals.files;
  for (const PeFile::Section& section : file.code()) {
    CompiledCfi compiled = CompilePdata(file.FramesOf(section));
    if (is_broken_first) BreakARow(compiled);
    FileCheck(path, Architecture::kX86_64, true, totals)
        .Check(file.base() + section.start, file.base() + section.limit, compiled,
               Sorted(objdump.fdes()), RowText());
  }
  return true;
}

bool CheckFile(const std::string& path, bool is_broken_first, Totals& totals) {
  if (const std::optional<ElfFile> elf = ElfFile::Read(path))
    return CheckElf(path, *elf, is_broken_first, totals);
  if (const std::optional<PeFile> pe = PeFile::Read(path))
    return CheckPe(path, *pe, is_broken_first, totals);
  ++totals.skipped;
  return true;
}

std::vector<std::string> DefaultFiles() {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.find("r-xp") != std::string::npos)
      files.insert(line.substr(path));
  }
  for (const char* name : {"libc.so.6", "libstdc++.so.6", "ld-linux-aarch64.so.1", "libm.so.6"}) {
    const std::string path = std::string("/usr/aarch64-linux-gnu/lib/") + name;
    struct stat status {};
    if (stat(path.c_str(), &status) == 0) {
      files.insert(path);
    } else {
      std::cout << "left out: " << path
                << " is not there (apt-get install libc6-arm64-cross libstdc++6-arm64-cross)\n";
    }
  }
  return {files.begin(), files.end()};
}

int Run(std::vector<std::string> arguments) {
  const bool is_broken_first = !arguments.empty() && arguments[0] == "--break";
  if (is_broken_first) arguments.erase(arguments.begin());
  if (arguments.empty()) arguments = DefaultFiles();
  Totals totals;
  for (const std::string& path : arguments) {
    if (!CheckFile(path, is_broken_first, totals)) {
      std::cout << path << ": binutils cannot be run, or says nothing of it\n";
      return 77;
    }
  }
  std::cout << totals.files << " files (" << totals.skipped
            << " without frame information of x86-64 or aarch64), " << totals.fdes << " FDEs, "
            << totals.rows << " rows, " << totals.mismatches << " mismatches\n";
  for (const auto& [reason, count] : totals.unknown)
    std::cout << "  no rule for: " << reason << ", " << count << " look-ups\n";
  for (const auto& [cfa, count] : totals.specials)
    std::cout << "  special CFA: " << cfa << ", " << count << " look-ups\n";
  if (totals.rows == 0) std::cout << "nothing was compared\n";
  return totals.mismatches == 0 && totals.rows > 0 ? 0 : 1;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Run({argv + 1, argv + argc}); }
