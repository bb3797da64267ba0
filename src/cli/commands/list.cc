// list: source lines with their cost.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../../encode/json_writer.h"
#include "absl/strings/str_cat.h"
#include "command.h"
#include "strobe/base/amounts.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// A longer source file, or line of it, is cut.
constexpr std::size_t kMaxSourceLines = 1'000'000;
constexpr std::size_t kMaxSourceLineBytes = 400;
// Lines shown before and behind those that cost something.
constexpr std::uint32_t kContextLines = 3;

// Without -g there are no lines to find; a profile may also lack those that there are.
constexpr const char* kNoLines =
    "(no source lines: build with -g; strobe symbolize finds those of a program that was)";

// Costs of a function's lines, by their numbers; 0 is an unknown line.
using LineCosts = std::map<std::uint32_t, FunctionCost>;

LineCosts CostsOfLines(const FilteredProfile& subject, std::uint32_t function) {
  const Profile& profile = subject.profile();
  LineCosts costs;
  std::set<std::uint32_t> counted;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[subject.column];
    if (value == 0) continue;
    counted.clear();
    bool is_leaf = true;
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent) {
      for (const FunctionLines::Line& line : subject.lines.Of(profile.stacks[node].frame)) {
        const bool is_self = std::exchange(is_leaf, false);
        if (line.function != function) continue;
        FunctionCost& cost = costs[line.line];
        if (is_self) cost.self = SaturatedSum(cost.self, value);
        if (counted.insert(line.line).second) cost.total = SaturatedSum(cost.total, value);
      }
    }
  }
  return costs;
}

// The lines of a source file; none if it is not there. A path that is not here is looked for below
// the directories: whole, and then without its first parts.
std::vector<std::string> SourceOf(const std::string& file, const Request& request) {
  namespace fs = std::filesystem;
  const fs::path path(std::u8string(file.begin(), file.end()));
  std::vector<fs::path> candidates = {path};
  for (const std::string& directory : request.source_directories) {
    fs::path rest = path.relative_path();
    while (!rest.empty()) {
      candidates.push_back(fs::path(std::u8string(directory.begin(), directory.end())) / rest);
      fs::path shorter;
      for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
      rest = shorter;
    }
  }
  std::vector<std::string> lines;
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (!fs::is_regular_file(candidate, ignored)) continue;
    std::ifstream stream(candidate);
    std::string line;
    while (lines.size() < kMaxSourceLines && std::getline(stream, line)) {
      for (std::size_t tab; (tab = line.find('\t')) != std::string::npos;) {
        line.replace(tab, 1, std::string(8 - tab % 8, ' '));
        if (line.size() > kMaxSourceLineBytes) break;
      }
      lines.push_back(SanitizedText(line, kMaxSourceLineBytes));
    }
    break;
  }
  return lines;
}

std::string Cell(std::int64_t amount, const FilteredProfile& subject) {
  return Right(amount == 0 ? "." : AmountText(amount, subject.type().unit), 12);
}

void PrintLines(std::string& text, const LineCosts& costs, const std::vector<std::string>& source,
                const FilteredProfile& subject, const Printer& printer) {
  std::uint32_t next = 1;  // the first line that may still be printed
  const auto print = [&](std::uint32_t number, const FunctionCost& cost) {
    const std::string code = number > 0 && number <= source.size() ? source[number - 1] : "";
    const std::string line = absl::StrCat(Cell(cost.self, subject), Cell(cost.total, subject),
                                          Right(number == 0 ? "?" : absl::StrCat(number), 8), "  ",
                                          printer.Cut(code, 34));
    absl::StrAppend(&text, cost.total == 0 ? printer.Dim(line) : line, "\n");
    next = number + 1;
  };
  for (auto place = costs.begin(); place != costs.end(); ++place) {
    const std::uint32_t number = place->first;
    const std::uint32_t first = number > kContextLines ? number - kContextLines : 1;
    if (!source.empty() && number != 0) {
      if (first > next && next > 1) absl::StrAppend(&text, printer.Dim("  ..."), "\n");
      for (std::uint32_t line = std::max(first, next); line < number; ++line) print(line, {});
    }
    print(number, place->second);
    if (source.empty() || number == 0) continue;
    const auto following = std::next(place);
    std::uint32_t end = static_cast<std::uint32_t>(
        std::min<std::size_t>(source.size(), std::size_t{number} + kContextLines));
    if (following != costs.end()) end = std::min(end, following->first - 1);
    for (std::uint32_t line = next; line <= end; ++line) print(line, {});
  }
}

void JsonLines(JsonWriter& json, const LineCosts& costs) {
  json.Key("lines");
  json.BeginArray();
  for (const auto& [number, cost] : costs) {
    json.BeginObject();
    json.Member("line", std::int64_t{number});
    json.Member("self", cost.self);
    json.Member("total", cost.total);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

Text ListCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  const absl::StatusOr<MatchingFunctions> found = FindMatching(subject, request);
  if (!found.ok()) return found.status();
  JsonWriter json;
  json.BeginArray();
  std::string text = Heading(subject, printer);
  for (const std::uint32_t function : found->numbers) {
    const NamedFunction& named = subject.lines.functions()[function];
    const LineCosts lines = CostsOfLines(subject, function);
    json.BeginObject();
    json.Member("function", named.name);
    json.Member("file", named.file);
    JsonLines(json, lines);
    json.EndObject();
    const std::vector<std::string> source = request.json || named.file.empty()
                                                ? std::vector<std::string>()
                                                : SourceOf(named.file, request);
    absl::StrAppend(&text, "\n", printer.Bold(named.name), "  ",
                    named.file.empty() ? kNoLines : named.file,
                    !named.file.empty() && source.empty() ? "  (not here: see --source)" : "", "\n",
                    printer.Bold("        self       total    line"), "\n");
    PrintLines(text, lines, source, subject, printer);
  }
  text += found->more_text;
  json.EndArray();
  return request.json ? json.Take() + "\n" : text;
}

}  // namespace strobe::internal
