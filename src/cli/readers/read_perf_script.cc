#include "read_perf_script.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../core/deleted_mark.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "profile/columns.h"
#include "profile/profile_builder.h"
#include "text_frames.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxScriptEvents = 64;
constexpr std::string_view kRecord = "PERF_RECORD_";

// What the first line of a sample says.
struct PerfHead {
  std::string_view program;
  std::int64_t thread = 0;
  bool has_thread = false;
  std::int64_t time_ns = 0;  // 0: it has none
  std::int64_t period = 0;   // 0: it has none
  std::string_view event;
  std::string_view frame;  // behind it in the line
};

// A frame as perf prints it: "7f12ab34 malloc+0x12 (/usr/lib/libc.so.6)".
struct PerfFrame {
  std::uint64_t address = 0;
  std::string_view name;
  std::string_view path;  // empty if it has none
};

// Where the path's bracket opens. Both names and paths may have brackets. An offset, or the name
// that perf gives to unknown code, ends a name; else the bracket is the one that the last one
// closes.
std::size_t PathBracket(std::string_view name) {
  constexpr std::string_view kUnknown = "[unknown] (";
  if (name.starts_with(kUnknown)) return kUnknown.size() - 1;
  for (std::size_t plus = name.find("+0x"); plus != std::string_view::npos;
       plus = name.find("+0x", plus + 1)) {
    const std::size_t end = name.find_first_not_of("0123456789abcdef", plus + 3);
    if (end != std::string_view::npos && name.substr(end).starts_with(" (")) return end + 1;
  }
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth == 0) return i;
  }
  return name.find('(');
}

// Nothing for other lines, such as those of source files.
std::optional<PerfFrame> ParseFrame(std::string_view line) {
  PerfFrame frame;
  const std::string_view address = FirstWord(line);
  if (line.empty() || !absl::SimpleHexAtoi(Absl(address), &frame.address)) return std::nullopt;
  frame.name = line;
  if (line.ends_with(')')) {
    const std::size_t bracket = PathBracket(line);
    if (bracket == 0 || (bracket != std::string_view::npos && line[bracket - 1] == ' ')) {
      frame.path = line.substr(bracket + 1, line.size() - bracket - 2);
      frame.name = WithoutSpaces(line.substr(0, bracket));
    }
  }
  if (frame.name.empty()) frame.name = "[unknown]";
  const std::size_t plus = frame.name.rfind("+0x");
  if (plus != std::string_view::npos && plus > 0) frame.name = frame.name.substr(0, plus);
  return frame;
}

// The thread at the end of `text`: "4242", or "4242/4243", and behind it maybe the CPU as "[003]",
// and how it ran, as "UK".
bool TakeThread(std::string_view& text, std::int64_t& thread) {
  std::string_view rest = text;
  std::string_view word = LastWord(rest);
  if (!word.empty() && word.find_first_not_of("UKHGgMmSDE") == std::string_view::npos)
    word = LastWord(rest);
  if (word.starts_with('[') && word.ends_with(']')) word = LastWord(rest);
  std::int64_t process = 0;
  const std::size_t slash = word.find('/');
  const bool is_thread = slash == std::string_view::npos
                             ? TakeNumber(word, thread)
                             : TakeNumber(word.substr(0, slash), process) &&
                                   TakeNumber(word.substr(slash + 1), thread);
  if (is_thread) text = rest;
  return is_thread;
}

// "12.345678" in nanoseconds.
bool TakeTime(std::string_view word, std::int64_t& time_ns) {
  constexpr std::int64_t kMaxSeconds = 9'000'000'000;
  const std::size_t point = word.find('.');
  std::int64_t seconds = 0;
  std::int64_t fraction = 0;
  if (point == std::string_view::npos || word.size() - point > 10) return false;
  std::string digits(word.substr(point + 1));
  digits.resize(9, '0');
  if (!TakeNumber(word.substr(0, point), seconds) || !TakeNumber(digits, fraction)) return false;
  time_ns = std::min(seconds, kMaxSeconds) * 1'000'000'000 + fraction;
  return seconds <= kMaxSeconds;
}

// Period, event and frame, each of which may be missing. False if there is something else.
bool TakeRest(std::string_view rest, PerfHead& head) {
  std::string_view after = rest;
  if (TakeNumber(FirstWord(after), head.period)) rest = after;
  after = rest;
  const std::string_view event = FirstWord(after);
  if (event.size() > 1 && event.ends_with(':')) {
    head.event = event.substr(0, event.find_last_not_of(':') + 1);
    // Of a tracepoint, what it has recorded stands there.
    if (const std::optional<PerfFrame> frame = ParseFrame(after); frame && !frame->path.empty())
      head.frame = after;
    return true;
  }
  head.frame = rest;
  return rest.empty() || ParseFrame(rest).has_value();
}

// "program 4242 [003] 12.345678: 250000 cpu-clock: ...". `colon` is that behind the time.
std::optional<PerfHead> ParseTimedHead(std::string_view line, std::size_t colon) {
  PerfHead head;
  std::string_view before = line.substr(0, colon);
  if (!TakeTime(LastWord(before), head.time_ns)) return std::nullopt;
  if (!TakeRest(WithoutSpaces(line.substr(colon + 1)), head)) return std::nullopt;
  head.has_thread = TakeThread(before, head.thread);
  head.program = WithoutSpaces(before);
  return head;
}

// "program 4242 250000 cpu-clock: ...". `colon` is that behind the event.
std::optional<PerfHead> ParseUntimedHead(std::string_view line, std::size_t colon) {
  PerfHead head;
  head.frame = WithoutSpaces(line.substr(colon + 1));
  const std::optional<PerfFrame> frame = ParseFrame(head.frame);
  if (!head.frame.empty() && (!frame || frame->path.empty())) return std::nullopt;
  std::string_view before = line.substr(0, colon);
  head.event = LastWord(before);
  std::string_view thread = before;
  const bool has_period = TakeNumber(LastWord(thread), head.period) &&
                          TakeThread(thread, head.thread) && !WithoutSpaces(thread).empty();
  if (has_period) {
    before = thread;
  } else {
    head.period = 0;
    if (!TakeThread(before, head.thread)) return std::nullopt;
  }
  head.has_thread = true;
  head.program = WithoutSpaces(before);
  const bool is_whole = !head.program.empty() && !head.program.ends_with(':');
  return is_whole && !head.event.empty() ? std::optional(head) : std::nullopt;
}

std::optional<PerfHead> ParseHead(std::string_view line) {
  if (line.empty() || line[0] == '\t' || line[0] == '#') return std::nullopt;
  for (const auto parse : {ParseTimedHead, ParseUntimedHead}) {
    for (std::size_t colon = line.find(':'); colon != std::string_view::npos;
         colon = line.find(':', colon + 1)) {
      if (colon + 1 < line.size() && line[colon + 1] != ' ') continue;
      if (std::optional<PerfHead> head = parse(line, colon)) return head;
    }
  }
  return std::nullopt;
}

bool IsRecord(std::string_view line) {
  const std::size_t mark = line.find(kRecord);
  if (mark == std::string_view::npos || mark < 2 || line.substr(mark - 2, 2) != ": ") return false;
  std::string_view before = line.substr(0, mark - 2);
  std::int64_t time_ns = 0;
  return line[0] != '#' && TakeTime(LastWord(before), time_ns);
}

bool IsTracepoint(std::string_view event) { return event.find(':') != std::string_view::npos; }

// "cycles:u" and "cycles" are one event, "cpu-clock/freq=99/" is cpu-clock; but
// "sched:sched_switch" is a tracepoint.
std::string_view EventName(std::string_view event) {
  const std::size_t colon = event.rfind(':');
  if (colon != std::string_view::npos && colon > 0 &&
      event.find_first_not_of("ukhIGHpPSDWebR", colon + 1) == std::string_view::npos)
    event = event.substr(0, colon);
  const std::size_t begin = event.find('/'), end = event.rfind('/');
  const bool has_terms = begin != std::string_view::npos && begin > 0 &&
                         event.substr(begin, end - begin).find('=') != std::string_view::npos;
  return has_terms ? event.substr(0, begin) : event;
}

class PerfTextReading {
 public:
  absl::StatusOr<LoadedProfile> Read(Input& input) {
    builder_.profile().value_types = {{"samples", "count"}};
    std::string_view line;
    while (true) {
      const absl::StatusOr<bool> has_line = input.Line(line, kMaxLineBytes);
      if (!has_line.ok()) return has_line.status();
      if (!*has_line) break;
      if (absl::Status status = Take(line); !status.ok()) return status;
    }
    EndSample();
    LoadedProfile& loaded = builder_.loaded();
    loaded.format = "perf script";
    loaded.profile.default_value_type = loaded.profile.value_types.size() > 1 ? 1 : 0;
    return builder_.Finish();
  }

 private:
  absl::Status Take(std::string_view line) {
    if (line.starts_with('#')) return absl::OkStatus();
    const bool is_frame = line.starts_with('\t');
    const std::optional<PerfHead> head =
        is_frame || IsRecord(line) ? std::nullopt : ParseHead(line);
    if (head.has_value()) {
      EndSample();
      if (absl::Status status = BeginSample(*head); !status.ok()) return status;
    } else if (line.starts_with(' ') || is_frame) {
      if (in_sample_) AddFrame(line);
    } else {
      EndSample();  // at an empty line, or a record of another kind
    }
    return builder_.status();
  }

  absl::Status BeginSample(const PerfHead& head) {
    in_sample_ = true;
    frames_.clear();
    time_ns_ = head.time_ns;
    std::vector<Label> labels;
    if (head.has_thread) labels.push_back({std::string(kThreadIdLabel), head.thread});
    if (!head.program.empty())
      labels.push_back({std::string(kThreadNameLabel), std::string(head.program)});
    labels_ = builder_.Labels(LabelSet(std::move(labels)));
    const std::size_t column = ColumnOf(head);
    if (builder_.profile().value_types.size() > kMaxScriptEvents)
      return absl::ResourceExhaustedError("the text has too many events");
    values_.assign(builder_.profile().value_types.size(), 0);
    if (column != 0) values_[column] = std::max<std::int64_t>(head.period, 1);
    values_[0] = column <= 1 ? 1 : 0;  // of the first event: see kSampleCountSuffix
    if (!head.frame.empty()) AddFrame(head.frame);
    return absl::OkStatus();
  }

  // 0, the column of samples, if the sample does not say its event.
  std::size_t ColumnOf(const PerfHead& head) {
    if (head.event.empty()) return 0;
    const std::string name = ValidUtf8(EventName(head.event));
    const bool is_clock = name.ends_with("-clock") && !IsTracepoint(name);
    const ValueType type =
        is_clock && head.period != 0 ? ValueType{"cpu", "nanoseconds"} : ValueType{name, "count"};
    const std::vector<ValueType>& types = builder_.profile().value_types;
    const auto found = std::ranges::find(types, type);
    const auto column = static_cast<std::size_t>(found - types.begin());
    if (found == types.end()) {
      const std::size_t rows =
          builder_.profile().samples.size() + builder_.profile().moments.size();
      builder_.Take(2 * rows * sizeof(std::int64_t));
      SetColumns(builder_.loaded(), AllTypes(types, std::span(&type, 1)));
    }
    return column;
  }

  void EndSample() {
    if (!std::exchange(in_sample_, false)) return;
    if (frames_.empty()) frames_.push_back(all_.Named("[no stack]"));
    const std::uint32_t row = builder_.AddRow(builder_.Stack(frames_), labels_, values_);
    if (time_ns_ != 0) builder_.AddMoment(row, time_ns_, values_);
  }

  void AddFrame(std::string_view line) {
    const std::optional<PerfFrame> frame = ParseFrame(line);
    if (!frame.has_value() || frames_.size() >= kMaxTextFrames) return;
    if (frame->path.empty() || frame->path == "inlined" || frame->address == ~std::uint64_t{0}) {
      frames_.push_back(all_.Named(frame->name));
    } else {
      frames_.push_back(
          all_.InModule(frame->address, frame->name, WithoutDeletedMark(std::string(frame->path))));
    }
  }

  ProfileBuilder builder_;
  TextFrames all_{builder_};
  // Of the sample being read.
  bool in_sample_ = false;
  std::vector<std::uint32_t> frames_;
  std::uint32_t labels_ = 0;
  std::int64_t time_ns_ = 0;
  std::vector<std::int64_t> values_;
};

}  // namespace

bool IsPerfScript(std::string_view line) { return IsRecord(line) || ParseHead(line).has_value(); }

absl::StatusOr<LoadedProfile> ReadPerfScript(Input& input) { return PerfTextReading().Read(input); }

}  // namespace strobe::internal
