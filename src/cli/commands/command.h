// The subcommands: each makes a text of profiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profile/comparison.h"
#include "profile/costs.h"
#include "profile/filter.h"
#include "profile/function_lines.h"
#include "profile/loaded_profile.h"
#include "strobe/symbolize/symbol_search.h"
#include "ui/text.h"

namespace strobe::internal {

// What the arguments say.
struct Request {
  std::vector<std::string> files;
  std::size_t max_memory_mib = 0;  // of a file; 0: the default
  Filter filter;
  std::string unit;  // of the numbers of folded stacks: see FindFoldedUnit
  std::string type;  // the value type's name; the profile's default if empty
  std::string pattern;
  std::string output;               // a file's path; standard output if empty
  std::string format;               // of the output; by the end of `output` if empty
  std::string base;                 // a profile to compare with
  std::vector<std::string> bases;   // of strobe ci: profiles, or folders of some
  std::string per;                  // what a comparison's amounts are divided by: see Side::Of
  std::vector<ChangeLimit> limits;  // beyond one of which a comparison fails
  double level = 1e-3;              // of strobe ci: how often chance may be taken for a change
  std::string shell;
  std::vector<std::string> source_directories;
  std::vector<std::string> debug_directories;
  std::size_t rows = 20;  // 0 prints all
  double min_percent = 1;
  bool by_total = false;
  bool full_names = false;
  bool is_long = false;
  bool json = false;
};

// A profile after its filter, and what commands print of it.
struct FilteredProfile {
  LoadedProfile loaded;
  FunctionLines lines;
  std::size_t column = 0;
  std::int64_t sum = 0;    // of the column
  std::int64_t whole = 0;  // what shares are of: see ColumnMagnitude
  EffectiveSamples samples{};

  [[nodiscard]] const Profile& profile() const { return loaded.profile; }
  [[nodiscard]] ValueType type() const { return loaded.profile.value_types[column]; }
};
// InvalidArgument if the profile has no such value type, or a pattern does not read as one.
absl::StatusOr<FilteredProfile> MakeFilteredProfile(LoadedProfile loaded, const Request& request);

// The functions that a pattern matches, those of the largest totals first.
struct MatchingFunctions {
  // A command makes a pass over the profile for each.
  static constexpr std::size_t kMost = 20;

  std::vector<FunctionCost> costs;  // of all functions of the profile
  std::vector<std::uint32_t> numbers{};
  std::string more_text{};  // how many beyond kMost there are; empty if none
};
// By request.pattern. NotFound if no function matches.
absl::StatusOr<MatchingFunctions> FindMatching(const FilteredProfile& subject,
                                               const Request& request);

// "strobe.pb.gz: pprof, cpu, 12.3 s in 1230 samples".
std::string Heading(const FilteredProfile& subject, const Printer& printer);

using Text = absl::StatusOr<std::string>;
Text TopCommand(const FilteredProfile& subject, const Request& request, const Printer& printer);
Text TreeCommand(const FilteredProfile& subject, const Request& request, const Printer& printer);
Text PeekCommand(const FilteredProfile& subject, const Request& request, const Printer& printer);
Text ListCommand(const FilteredProfile& subject, const Request& request, const Printer& printer);
Text InfoCommand(const FilteredProfile& subject, const Request& request, const Printer& printer);

// A format that the command writes. Its row in the table of write.cc is all that the command knows
// of it: names, completion, help, errors and the choice by a file's name come from there.
struct Format {
  const char* name;
  // Of its files: first as Strobe names them, then as others do. nullptr for none.
  std::array<const char*, 3> suffixes;
  const char* also_for;  // another reader, for the help; nullptr for none
  bool is_read;          // by the command itself
  Text (*encode)(const LoadedProfile& loaded, const Request& request);
};
// The first is that of standard output.
std::span<const Format> Formats();
// "pprof, folded, ...", for the help.
std::string FormatNames();
// The bytes of a profile. `format` is the name of one of them.
Text EncodeAs(std::string_view format, const LoadedProfile& loaded, const Request& request);
// By request.format, or by the end of request.output.
absl::StatusOr<std::string> FormatOf(const Request& request);
// Without the stacks and frames that a filter has left no samples of.
Text EncodeWhatIsLeft(std::string_view format, const LoadedProfile& loaded, const Request& request);
Text ComparisonPage(const LoadedProfile& base, const LoadedProfile& loaded);

// Where the files of code are looked for: in `directories`, too.
SymbolSearch SearchIn(const std::vector<std::string>& directories);

// Names and lines for the profile's addresses, from the files on this machine.
absl::Status SymbolizeProfile(LoadedProfile& loaded, const SymbolSearch& search);
// The same without what takes seconds: lines only of files that have them themselves, and nothing
// from servers. `strobe symbolize` adds the rest.
absl::Status SymbolizeQuickly(LoadedProfile& loaded);

}  // namespace strobe::internal
