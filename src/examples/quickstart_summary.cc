#include "quickstart_summary.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_format.h"
#include "strobe/testing/pprof_reader.h"

namespace {

using strobe::testing::PprofProfile;

constexpr std::size_t kRows = 12;
constexpr std::size_t kMaxNameBytes = 90;

double Percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double Seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// How much of `text` its first bracket and what it closes takes.
std::size_t BracketBytes(std::string_view text, char open, char close) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == open ? 1 : 0;
    depth -= text[i] == close && (i == 0 || text[i - 1] != '-') ? 1 : 0;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

// "raw_hash_set<...>::find" for "bool raw_hash_set<A, B>::find<C>(D const&)": in a table that
// people read, arguments and return types are noise. Overloads and instances share a line.
std::string WithoutArguments(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string result;
  while (!name.empty()) {
    std::size_t read = 1;
    if (name.starts_with(kAnonymous)) {
      result += name.substr(0, read = kAnonymous.size());
    } else if (result.ends_with("operator")) {
      result += name.substr(0, read = std::min(name.find('(', 1), name.size()));
    } else if (name[0] == '<') {
      result += "<...>";
      read = BracketBytes(name, '<', '>');
    } else if (name[0] == '{') {
      result += "{lambda}";
      read = BracketBytes(name, '{', '}');
    } else if (name[0] == '(') {
      read = BracketBytes(name, '(', ')');
      if (name.substr(read).starts_with(" const")) read += 6;
      if (!name.substr(read).starts_with("::")) break;
    } else if (name[0] == ' ') {
      result.clear();  // what stood before was the return type
    } else {
      result += name[0];
    }
    name.remove_prefix(read);
  }
  return result;
}

// What a table shows of a location: the functions there, innermost first. The names of libraries
// without symbols, and of pseudo-frames, stand in brackets.
struct Place {
  std::vector<std::string> names;
  bool is_pseudo = false;
};

// The number of the value type `type`; nothing if the profile has none.
std::optional<std::size_t> ColumnOf(const PprofProfile& profile, std::string_view type) {
  for (std::size_t i = 0; i < profile.sample_types.size(); ++i) {
    if (profile.sample_types[i].type == type) return i;
  }
  return std::nullopt;
}

const PprofProfile::Label* LabelOf(const PprofProfile::Sample& sample, std::string_view key) {
  for (const PprofProfile::Label& label : sample.labels) {
    if (label.key == key) return &label;
  }
  return nullptr;
}

// How many samples divide the amounts in `column`. The column "samples" counts those of CPU time.
strobe::EffectiveSamples SamplesBehind(const PprofProfile& profile, std::size_t column) {
  strobe::EffectiveSamples effective;
  const std::optional<std::size_t> counts = ColumnOf(profile, "samples");
  if (!counts || profile.sample_types[column].type != "cpu") return effective;
  std::map<std::int64_t, std::pair<double, double>> threads;  // amount and samples, by thread
  for (const PprofProfile::Sample& sample : profile.samples) {
    const PprofProfile::Label* const id = LabelOf(sample, "thread_id");
    auto& [amount, samples] = threads[id == nullptr ? 0 : id->number];
    amount += static_cast<double>(sample.values[column]);
    samples += static_cast<double>(sample.values[*counts]);
  }
  for (const auto& [id, thread] : threads) effective.AddThread(thread.first, thread.second);
  return effective;
}

std::unordered_map<std::uint64_t, Place> PlacesOf(const PprofProfile& profile) {
  std::unordered_map<std::uint64_t, std::string> functions;
  for (const PprofProfile::Function& function : profile.functions)
    functions[function.id] =
        function.name.starts_with('[') ? function.name : WithoutArguments(function.name);
  std::unordered_map<std::uint64_t, Place> places;
  for (const PprofProfile::Location& location : profile.locations) {
    Place& place = places[location.id];
    place.is_pseudo = location.mapping == 0;
    for (const PprofProfile::Line& line : location.lines)
      place.names.push_back(functions[line.function]);
  }
  return places;
}

// True if the stack does not lead to its thread's first function: then its root is a pseudo-frame.
// [residual] stands for no stack at all.
bool IsCut(const Place& root) { return root.is_pseudo && root.names.front() != "[residual]"; }

// "31.2 % ± 1.1", or "31.2 %" if the samples are not counted.
std::string Share(std::int64_t part, const ValueSummary& summary) {
  const double percent = Percent(part, summary.total);
  if (summary.samples.taken() == 0) return absl::StrFormat("%5.1f %%", percent);
  const double error = 100 * summary.samples.StandardErrorOf(percent / 100);
  return absl::StrFormat("%5.1f %% \u00B1 %.1f", percent, error);
}

using Row = std::pair<std::string, std::int64_t>;

std::vector<Row> Largest(const std::map<std::string, std::int64_t>& values) {
  std::vector<Row> rows(values.begin(), values.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.second > b.second; });
  rows.resize(std::min(rows.size(), kRows));
  return rows;
}

}  // namespace

std::optional<PprofProfile> ReadProfile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return strobe::testing::ReadPprof(bytes);
}

ValueSummary Summarize(const PprofProfile& profile, std::string_view type) {
  ValueSummary summary;
  const std::optional<std::size_t> column = ColumnOf(profile, type);
  if (!column) return summary;
  summary.samples = SamplesBehind(profile, *column);
  const std::unordered_map<std::uint64_t, Place> places = PlacesOf(profile);
  for (const PprofProfile::Sample& sample : profile.samples) {
    const std::int64_t value = sample.values[*column];
    const PprofProfile::Label* const thread = LabelOf(sample, "thread_name");
    const std::string thread_name = thread == nullptr ? "" : thread->text;
    std::set<std::string_view> counted;  // a recursive function counts once a stack
    for (const std::uint64_t location : sample.locations) {
      for (const std::string& name : places.at(location).names) {
        if (counted.empty()) summary.flat_by_function[name] += value;
        if (counted.insert(name).second) summary.cumulative_by_function[name] += value;
      }
    }
    summary.total += value;
    summary.by_thread_name[thread_name] += value;
    summary.cut_by_thread_name[thread_name] +=
        IsCut(places.at(sample.locations.back())) ? value : 0;
  }
  return summary;
}

void PrintTop(const ValueSummary& summary, const char* title) {
  const auto print = [&](const char* kind, const std::map<std::string, std::int64_t>& values) {
    std::printf("\n%s, %s, of %.3f s", title, kind, Seconds(summary.total));
    if (summary.samples.taken() > 0) std::printf(" in %.0f samples", summary.samples.taken());
    std::printf("\n");
    for (const auto& [name, value] : Largest(values)) {
      const bool is_cut = name.size() > kMaxNameBytes;
      std::printf("  %8.3f s %s  %s%s\n", Seconds(value), Share(value, summary).c_str(),
                  name.substr(0, kMaxNameBytes).c_str(), is_cut ? "..." : "");
    }
  };
  print("flat: in the function itself", summary.flat_by_function);
  print("cumulative: in the function and what it called", summary.cumulative_by_function);
}

void PrintThreads(const std::vector<ThreadClock>& threads, const ValueSummary& cpu) {
  std::printf(
      "\nCPU time of each thread      sampled   system clock   difference   in whole stacks\n");
  for (const ThreadClock& thread : threads) {
    const auto value = [&](const std::map<std::string, std::int64_t>& values) {
      const auto found = values.find(thread.name);
      return found == values.end() ? 0 : found->second;
    };
    const std::int64_t sampled_ns = value(cpu.by_thread_name);
    std::printf("  %-22s %9.4f s   %10.4f s   %+8.3f %%   %13.2f %%\n", thread.name.c_str(),
                Seconds(sampled_ns), Seconds(thread.cpu_ns),
                Percent(sampled_ns - thread.cpu_ns, thread.cpu_ns),
                Percent(sampled_ns - value(cpu.cut_by_thread_name), sampled_ns));
  }
}

void PrintAccount(const strobe::Stats& stats, std::int64_t process_cpu_ns) {
  std::printf("\nThe profiler's own account\n");
  std::printf("  rate                 requested %.1f Hz, measured %.1f Hz of a thread's CPU time\n",
              stats.requested_rate_hz, stats.measured_rate_hz);
  std::printf("  samples              %" PRIu64 "\n", stats.samples);
  for (std::size_t i = 0; i < stats.drops.size(); ++i) {
    const std::string_view reason = strobe::DropReasonName(static_cast<strobe::DropReason>(i));
    std::printf("  dropped, %-11.*s %" PRIu64 "\n", static_cast<int>(reason.size()), reason.data(),
                stats.drops[i]);
  }
  for (std::size_t i = 0; i < stats.stack_ends.size(); ++i) {
    const std::string_view end = strobe::StackEndName(static_cast<strobe::StackEnd>(i));
    std::printf("  stacks, %-12.*s %" PRIu64 "\n", static_cast<int>(end.size()), end.data(),
                stats.stack_ends[i]);
  }
  if (stats.stack_ends[static_cast<std::size_t>(strobe::StackEnd::kBroken)] > 0) {
    std::printf(
        "                       (broken: the callers lie beyond code that says nothing of its "
        "frames)\n");
  }
  std::printf("  time in the handler  %.3f ms (%.4f %% of the process's CPU time)\n",
              Seconds(stats.handler_time_ns) * 1e3, Percent(stats.handler_time_ns, process_cpu_ns));
  std::printf("  collector's CPU time %.3f ms (%.4f %%)\n", Seconds(stats.collector_cpu_ns) * 1e3,
              Percent(stats.collector_cpu_ns, process_cpu_ns));
  std::printf("  memory               %.1f KiB\n", static_cast<double>(stats.memory_bytes) / 1024);
}
