#include "live_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "commands/json_numbers.h"
#include "strobe/base/amounts.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kPercentColumns = 9;
constexpr std::size_t kProcessColumns = 16;
constexpr std::size_t kHeadLines = 3;  // of a screen, above the functions

constexpr std::array<const char*, 8> kKeys{
    "q, Ctrl-C    end",
    "p, space     pause, and go on",
    "s            sort by self, or by the total with what was called",
    "t            the last period, or all since the begin",
    "/            show functions that match a regular expression; Enter ends it",
    "Esc          show all functions again",
    "Ctrl-Z       stop",
    "h            these keys, and back"};

// "0:01:05".
std::string ClockText(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string Percent(double share) { return absl::StrFormat("%.1f", 100 * share); }

Pattern Everything() { return *Pattern::Parse(""); }

// The column of CPU time, whichever is shown.
std::int64_t CpuOf(const Profile& profile) {
  const auto cpu = std::ranges::find(profile.value_types, ValueType{"cpu", "nanoseconds"});
  return cpu == profile.value_types.end()
             ? 0
             : ColumnSum(profile, static_cast<std::size_t>(cpu - profile.value_types.begin()));
}

// The text without the last character.
std::string Shorter(std::string text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

void LiveView::Part::Add(const FilteredProfile& period, double taken_s) {
  sums.Add(period);
  seconds += taken_s;
  cpu_ns = SaturatedSum(cpu_ns, CpuOf(period.profile()));
  type = period.type().type;
  unit = period.type().unit;
}

LiveView::LiveView(const Options& options)
    : options_(options),
      parts_{Part(options), Part(options)},
      by_total_(options.by_total),
      filter_(Everything()) {}

void LiveView::Add(const FilteredProfile& period, double seconds) {
  parts_.last = Part(options_);
  parts_.last.Add(period, seconds);
  parts_.all.Add(period, seconds);
}

bool LiveView::Press(const Key& key) {
  if (typed_) {
    switch (key.kind) {
      case Key::Kind::kCharacter:
        if (typed_->size() < kMaxPatternBytes) *typed_ += key.text;
        break;
      case Key::Kind::kBackspace: *typed_ = Shorter(*std::move(typed_)); break;
      case Key::Kind::kEscape: typed_.reset(); break;
      case Key::Kind::kEnter: EndTyping(); break;
    }
    return true;
  }
  complaint_.clear();
  if (key.kind == Key::Kind::kEscape) {
    filter_text_.clear();
    filter_ = Everything();
    shows_keys_ = false;
  }
  if (key.text == "q") return false;
  Choose(key.text);
  return true;
}

void LiveView::Choose(const std::string& key) {
  if (key == "s") by_total_ = !by_total_;
  if (key == "t") is_all_ = !is_all_;
  if (key == "h" || key == "?") shows_keys_ = !shows_keys_;
  if (key == "/") typed_.emplace();
  if (key != "p" && key != " ") return;
  if (frozen_) {
    frozen_.reset();
  } else {
    frozen_ = parts_;
  }
}

void LiveView::EndTyping() {
  const std::string text = *std::exchange(typed_, std::nullopt);
  absl::StatusOr<Pattern> pattern = Pattern::Parse(text);
  if (!pattern.ok()) {
    complaint_ = std::string(pattern.status().message());
    return;
  }
  filter_text_ = text;
  filter_ = *std::move(pattern);
}

// CPU time is of one CPU: two busy ones are 200 %.
std::string LiveView::Head() const {
  const Part& part = this->part();
  std::string text = absl::StrCat(options_.what, "  ", ClockText(shown().all.seconds), "  ",
                                  part.sums.samples(), " samples");
  if (part.seconds > 0) {
    absl::StrAppend(&text, "  CPU ", Percent(static_cast<double>(part.cpu_ns) / 1e9 / part.seconds),
                    " %");
  }
  if (part.sums.lost() > 0) absl::StrAppend(&text, "  lost ", part.sums.lost());
  return text;
}

std::string LiveView::Choices() const {
  if (typed_) return absl::StrCat("/", SanitizedText(*typed_, kMaxPatternBytes), "_");
  if (!complaint_.empty()) return SanitizedText(complaint_, 2 * kMaxPatternBytes);
  std::string text = absl::StrCat(is_all_ ? "since the begin" : "last period", ", by ",
                                  by_total_ ? "total" : "self");
  if (!filter_text_.empty())
    absl::StrAppend(&text, ", /", SanitizedText(filter_text_, kMaxPatternBytes), "/");
  return absl::StrCat(text, frozen_ ? ", paused" : "", "   h: keys  q: end");
}

std::string LiveView::ColumnHeads() const {
  return absl::StrCat(Right("self %", kPercentColumns), Right("total %", kPercentColumns), "  ",
                      options_.by_process ? Left("process", kProcessColumns) + "  " : "",
                      "function");
}

void LiveView::AppendRows(std::vector<std::string>& lines, std::size_t rows,
                          std::size_t columns) const {
  const FunctionSums& sums = part().sums;
  const std::vector<std::uint32_t> order = sums.Largest(by_total_, filter_);
  for (std::size_t i = 0; i < order.size() && (rows == 0 || i < rows); ++i) {
    const FunctionSums::Row& row = sums.rows()[order[i]];
    std::string line =
        absl::StrCat(Right(Percent(ShareOf(row.cost.self, sums.whole())), kPercentColumns),
                     Right(Percent(ShareOf(row.cost.total, sums.whole())), kPercentColumns), "  ");
    if (options_.by_process) {
      const std::string process = SanitizedText(row.process, row.process.size());
      absl::StrAppend(&line, Left(CutTo(process, kProcessColumns), kProcessColumns), "  ");
    }
    lines.push_back(CutTo(line + row.function, columns));
  }
}

std::vector<std::string> LiveView::Screen(Size size, const Printer& printer) const {
  std::vector<std::string> lines{printer.Bold(CutTo(Head(), size.columns)),
                                 printer.Dim(CutTo(Choices(), size.columns)),
                                 printer.Bold(CutTo(ColumnHeads(), size.columns))};
  if (shows_keys_) {
    lines.pop_back();
    for (const char* const key : kKeys) lines.push_back(CutTo(key, size.columns));
  } else if (size.rows == 0 || size.rows > kHeadLines) {
    AppendRows(lines, size.rows == 0 ? 0 : size.rows - kHeadLines, size.columns);
  }
  if (size.rows > 0 && lines.size() > size.rows) lines.resize(size.rows);
  return lines;
}

std::string LiveView::Table(std::size_t rows, std::size_t columns, const Printer& printer) const {
  std::vector<std::string> lines{printer.Bold(CutTo(Head(), columns)),
                                 printer.Bold(CutTo(ColumnHeads(), columns))};
  AppendRows(lines, rows, columns);
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

std::string LiveView::Json(std::size_t rows) const {
  const Part& last = parts_.last;
  JsonWriter json;
  json.BeginObject();
  JsonShare(json, "seconds", parts_.all.seconds);
  JsonShare(json, "period_s", last.seconds);
  json.Member("type", last.type);
  json.Member("unit", last.unit);
  json.Member("whole", last.sums.whole());
  json.Member("samples", static_cast<std::int64_t>(last.sums.samples()));
  json.Member("lost", static_cast<std::int64_t>(last.sums.lost()));
  json.Member("cpu_ns", last.cpu_ns);
  json.Key("functions");
  json.BeginArray();
  const std::vector<std::uint32_t> order = last.sums.Largest(by_total_, filter_);
  for (std::size_t i = 0; i < order.size() && (rows == 0 || i < rows); ++i) {
    const FunctionSums::Row& row = last.sums.rows()[order[i]];
    json.BeginObject();
    json.Member("function", row.function);
    if (options_.by_process) json.Member("process", row.process);
    json.Member("self", row.cost.self);
    json.Member("total", row.cost.total);
    JsonShare(json, "self_share", ShareOf(row.cost.self, last.sums.whole()));
    JsonShare(json, "total_share", ShareOf(row.cost.total, last.sums.whole()));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace strobe::internal
