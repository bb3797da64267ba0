// info, and what commands print above their tables.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "../../encode/json_writer.h"
#include "../../encode/row_texts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "command.h"
#include "strobe/base/amounts.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxShownModules = 50;
// Of the samples, from which on the effective number is not worth a word.
constexpr double kNearlyAll = 0.95;

std::map<std::string, std::int64_t> SumsByThread(const FilteredProfile& subject) {
  std::map<std::string, std::int64_t> sums;
  for (std::size_t i = 0; i < subject.profile().samples.size(); ++i) {
    const LabelSet& set = subject.profile().Labels(i);
    const std::int64_t id = set.Number(kThreadIdLabel);
    const std::string& name = set.Text(kThreadNameLabel);
    std::string thread = id == 0 && name.empty() ? "no thread" : ThreadText(id, name);
    if (id != 0 && !name.empty()) absl::StrAppend(&thread, " (", id, ")");
    std::int64_t& sum = sums[thread];
    sum = SaturatedSum(sum, subject.profile().Values(i)[subject.column]);
  }
  return sums;
}

std::map<std::string, std::vector<std::string>> LabelValues(const Profile& profile) {
  constexpr std::size_t kMaxValues = 20;
  std::map<std::string, std::vector<std::string>> values;
  for (const LabelSet& set : profile.label_sets) {
    for (const Label& label : set.labels()) {
      if (IsThreadLabel(label)) continue;
      std::vector<std::string>& all = values[label.key];
      const std::string text = ValueText(label);
      if (all.size() < kMaxValues && std::ranges::find(all, text) == all.end()) all.push_back(text);
    }
  }
  return values;
}

std::string SpanText(const Profile& profile) {
  const auto& moments = profile.moments;
  if (moments.empty()) return "none kept";
  return absl::StrFormat(
      "%d moments over %.3f s", moments.size(),
      static_cast<double>(moments.back().time_ns - moments.front().time_ns) / 1e9);
}

std::string JsonInfo(const FilteredProfile& subject) {
  const Profile& profile = subject.profile();
  JsonWriter json;
  json.BeginObject();
  json.Member("format", subject.loaded.format);
  json.Member("program", profile.program);
  json.Member("time_ns", profile.time_ns);
  json.Member("duration_ns", profile.duration_ns);
  json.Member("period", profile.period);
  json.Member("default_type", profile.value_types[profile.default_value_type].type);
  json.Key("samples");
  json.Raw(absl::StrFormat("%.0f", subject.samples.taken()));
  json.Key("types");
  json.BeginArray();
  for (std::size_t i = 0; i < profile.value_types.size(); ++i) {
    json.BeginObject();
    json.Member("type", profile.value_types[i].type);
    json.Member("unit", profile.value_types[i].unit);
    json.Member("sum", ColumnSum(profile, i));
    json.EndObject();
  }
  json.EndArray();
  const std::pair<const char*, std::size_t> counts[] = {
      {"rows", profile.samples.size()},    {"moments", profile.moments.size()},
      {"frames", profile.frames.size()},   {"functions", subject.loaded.symbols.functions.size()},
      {"threads", profile.threads.size()}, {"label_sets", profile.label_sets.size()}};
  for (const auto& [key, count] : counts) json.Member(key, static_cast<std::int64_t>(count));
  json.Key("modules");
  json.BeginArray();
  for (const Module& module : profile.modules) {
    json.BeginObject();
    json.Member("path", module.path);
    json.Member("build_id", module.build_id);
    json.EndObject();
  }
  json.EndArray();
  json.Key("comments");
  json.BeginArray();
  for (const std::string& comment : subject.loaded.comments) json.String(comment);
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

std::string ModuleTexts(const Profile& profile) {
  std::string text;
  for (std::size_t i = 0; i < std::min(profile.modules.size(), kMaxShownModules); ++i) {
    const Module& module = profile.modules[i];
    absl::StrAppend(
        &text, "  ",
        Left(module.build_id.empty() ? "no build id" : module.build_id.substr(0, 16), 18),
        SanitizedText(module.path, 4096), "\n");
  }
  if (profile.modules.size() > kMaxShownModules)
    absl::StrAppend(&text, "  ", profile.modules.size() - kMaxShownModules, " more\n");
  return text;
}

}  // namespace

std::string Heading(const FilteredProfile& subject, const Printer& printer) {
  std::string text = absl::StrCat(std::string(subject.type().type), ": ",
                                  AmountText(subject.sum, subject.type().unit), " in ");
  const EffectiveSamples& samples = subject.samples;
  if (samples.taken() > 0) {
    absl::StrAppend(&text, absl::StrFormat("%.0f samples", samples.taken()));
    if (samples.count() < kNearlyAll * samples.taken())
      absl::StrAppend(&text, absl::StrFormat(" (effective: %.0f)", samples.count()));
  } else {
    absl::StrAppend(&text, subject.profile().samples.size(), " rows");
  }
  if (!subject.profile().program.empty()) absl::StrAppend(&text, " of ", subject.profile().program);
  return printer.Bold(text) + "\n";
}

Text InfoCommand(const FilteredProfile& subject, const Request& request, const Printer& printer) {
  if (request.json) return JsonInfo(subject);
  const Profile& profile = subject.profile();
  std::string text = Heading(subject, printer);
  absl::StrAppend(&text, "format      ", subject.loaded.format, "\n");
  if (profile.duration_ns != 0)
    absl::StrAppend(&text, "duration    ", AmountText(profile.duration_ns, "nanoseconds"), "\n");
  if (profile.period != 0)
    absl::StrAppend(&text, "period      ", AmountText(profile.period, profile.period_type.unit),
                    " of ", std::string(profile.period_type.type), "\n");
  for (std::size_t i = 0; i < profile.value_types.size(); ++i) {
    const ValueType& type = profile.value_types[i];
    absl::StrAppend(&text, "type        ", std::string(type.type), " in ", std::string(type.unit),
                    ": ", AmountText(ColumnSum(profile, i), type.unit),
                    i == profile.default_value_type ? " (the default)" : "", "\n");
  }
  absl::StrAppend(&text, "size        ", profile.samples.size(), " rows, ",
                  profile.stacks.size() - 1, " nodes of stacks, ", profile.frames.size(),
                  " addresses, ", subject.loaded.symbols.functions.size(), " functions\n");
  absl::StrAppend(&text, "times       ", SpanText(profile), "\n");
  for (const auto& [thread, sum] : SumsByThread(subject))
    absl::StrAppend(&text, "thread      ", Left(thread, 28), " ",
                    AmountText(sum, subject.type().unit), "\n");
  for (const auto& [key, values] : LabelValues(profile)) {
    absl::StrAppend(&text, "label       ", key, ":");
    for (const std::string& value : values) absl::StrAppend(&text, " ", value);
    absl::StrAppend(&text, "\n");
  }
  if (!profile.modules.empty()) absl::StrAppend(&text, "modules\n", ModuleTexts(profile));
  for (const std::string& comment : subject.loaded.comments)
    absl::StrAppend(&text, "comment     ", comment, "\n");
  return text;
}

}  // namespace strobe::internal
