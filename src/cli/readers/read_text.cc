#include "read_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "profile/profile_builder.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxTextFrames = std::size_t{1} << 16;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

bool TakeNumber(std::string_view text, std::int64_t& number) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && absl::SimpleAtoi(Absl(text), &number);
}

std::string_view WithoutSpaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes the last word off `text`.
std::string_view LastWord(std::string_view& text) {
  text = WithoutSpaces(text);
  const std::size_t space = text.find_last_of(" \t");
  const std::size_t begin = space == std::string_view::npos ? 0 : space + 1;
  return std::exchange(text, text.substr(0, begin)).substr(begin);
}

// Numbers frames by function, module and address.
class TextFrames {
 public:
  explicit TextFrames(ProfileBuilder& builder) : builder_(builder) {}

  // A frame that has only a name.
  std::uint32_t Named(std::string_view name) { return Find(0, Frame::kNoModule, name); }

  // A frame of perf's. The module's range becomes that of its addresses.
  std::uint32_t InModule(std::uint64_t address, std::string_view name, std::string_view path) {
    const auto next = static_cast<std::uint32_t>(builder_.profile().modules.size());
    const auto [place, is_new] = modules_.try_emplace(std::string(path), next);
    if (is_new) {
      Module module;
      module.start = address;
      module.limit = address + 1;
      module.path = path;
      module.kind = path.starts_with('[') ? ModuleKind::kGeneratedCode : ModuleKind::kSharedLibrary;
      builder_.profile().modules.push_back(std::move(module));
      builder_.Take(2 * (sizeof(Module) + path.size()));
    }
    Module& module = builder_.profile().modules[place->second];
    module.start = std::min(module.start, address);
    module.limit = std::max(module.limit, address + 1);
    return Find(address, place->second, name);
  }

 private:
  std::uint32_t Find(std::uint64_t address, std::uint32_t module, std::string_view name) {
    Profile& profile = builder_.profile();
    const auto next = static_cast<std::uint32_t>(profile.frames.size());
    const auto [place, is_new] = frames_.try_emplace({Function(name, module), address}, next);
    if (!is_new) return place->second;
    profile.frames.push_back({address, module});
    builder_.symbols().frames.push_back({.function = place->first.first});
    builder_.Take(2 * (sizeof(Frame) + sizeof(FrameSymbols) + 2 * sizeof(*place)));
    for (std::size_t i = 0; i < kPseudoFrameCount && module == Frame::kNoModule; ++i) {
      if (name != PseudoFrameName(static_cast<PseudoFrame>(i))) continue;
      profile.frames.back() = {.address = i, .module = Frame::kPseudo};
      builder_.symbols().frames.back() = {};
    }
    return next;
  }

  std::uint32_t Function(std::string_view name, std::uint32_t module) {
    const auto next = static_cast<std::uint32_t>(builder_.symbols().functions.size());
    const auto [place, is_new] = functions_.try_emplace({std::string(name), module}, next);
    if (!is_new) return place->second;
    std::string text = ValidUtf8(name);
    builder_.Take(2 * sizeof(FunctionSymbol) + 3 * name.size());
    builder_.symbols().functions.push_back({.name = text, .system_name = text});
    if (name == "[unknown]") builder_.symbols().functions.back().resolved = false;
    return next;
  }

  ProfileBuilder& builder_;
  absl::flat_hash_map<std::pair<std::string, std::uint32_t>, std::uint32_t> functions_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> frames_;
  absl::flat_hash_map<std::string, std::uint32_t> modules_;
};

// What the first line of a perf sample says.
struct PerfHead {
  std::string_view program;
  std::int64_t thread = 0;
  std::int64_t time_ns = 0;
  std::int64_t period = 1;
  std::string_view event;
};

bool TakeThread(std::string_view& text, std::int64_t& thread) {
  std::string_view word = LastWord(text);
  if (word.starts_with('[') && word.ends_with(']')) word = LastWord(text);
  std::int64_t process = 0;
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos) return TakeNumber(word, thread);
  return TakeNumber(word.substr(0, slash), process) && TakeNumber(word.substr(slash + 1), thread);
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

std::optional<PerfHead> ParseHead(std::string_view line) {
  if (line.empty() || line[0] == '\t' || line[0] == '#') return std::nullopt;
  for (std::size_t colon = line.find(": "); colon != std::string_view::npos;
       colon = line.find(": ", colon + 1)) {
    PerfHead head;
    std::string_view before = line.substr(0, colon);
    if (!TakeTime(LastWord(before), head.time_ns) || !TakeThread(before, head.thread)) continue;
    head.program = WithoutSpaces(before);
    std::string_view rest = WithoutSpaces(line.substr(colon + 2));
    const std::size_t space = rest.find_first_of(" \t");
    if (space != std::string_view::npos && TakeNumber(rest.substr(0, space), head.period))
      rest = WithoutSpaces(rest.substr(space));
    rest = rest.substr(0, rest.find_first_of(" \t"));
    if (!rest.ends_with(':')) return std::nullopt;
    while (rest.ends_with(':')) rest.remove_suffix(1);
    head.event = rest;
    return head.program.empty() || rest.empty() ? std::nullopt : std::optional(head);
  }
  return std::nullopt;
}

class PerfTextReading {
 public:
  absl::StatusOr<LoadedProfile> Read(Input& input) {
    std::string_view line;
    while (true) {
      const absl::StatusOr<bool> has_line = input.Line(line, kMaxLineBytes);
      if (!has_line.ok()) return has_line.status();
      if (!*has_line) break;
      if (const std::optional<PerfHead> head = ParseHead(line)) {
        EndSample();
        BeginSample(*head);
      } else if (in_sample_ && !line.empty() && line[0] != '#') {
        AddFrame(line);
      }
      if (absl::Status status = builder_.status(); !status.ok()) return status;
    }
    EndSample();
    LoadedProfile& loaded = builder_.loaded();
    loaded.format = "perf script";
    loaded.profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}};
    if (!event_.ends_with("clock"))
      loaded.profile.value_types[1] = {loaded.Keep(ValidUtf8(event_)), "count"};
    loaded.profile.default_value_type = 1;
    return builder_.Finish();
  }

 private:
  void BeginSample(const PerfHead& head) {
    in_sample_ = true;
    frames_.clear();
    time_ns_ = head.time_ns;
    labels_ = {{std::string(kThreadIdLabel), head.thread},
               {std::string(kThreadNameLabel), std::string(head.program)}};
    // "cycles:u" and "cycles" are one event.
    std::string_view event = head.event.substr(0, head.event.find(':', 1));
    if (event_.empty()) event_ = event;
    values_ = {1, head.period};
    if (event != event_) {
      labels_.push_back({"event", std::string(event)});
      values_[1] = 0;
    }
  }

  void EndSample() {
    if (!std::exchange(in_sample_, false)) return;
    const std::uint32_t labels = builder_.Labels(LabelSet(std::exchange(labels_, {})));
    const std::uint32_t row = builder_.AddRow(builder_.Stack(frames_), labels, values_);
    builder_.AddMoment(row, time_ns_, values_);
  }

  // "   7f12ab34 malloc+0x12 (/usr/lib/libc.so.6)". Other lines, such as those of source files, are
  // left out.
  void AddFrame(std::string_view line) {
    line = WithoutSpaces(line);
    const std::size_t space = line.find(' ');
    std::uint64_t address = 0;
    if (space == std::string_view::npos || frames_.size() >= kMaxTextFrames) return;
    if (!absl::SimpleHexAtoi(Absl(line.substr(0, space)), &address)) return;
    std::string_view name = WithoutSpaces(line.substr(space));
    std::string_view path;
    const std::size_t bracket = name.rfind(" (");
    if (bracket != std::string_view::npos && name.ends_with(')')) {
      path = name.substr(bracket + 2, name.size() - bracket - 3);
      name = WithoutSpaces(name.substr(0, bracket));
    } else if (name.starts_with('(') && name.ends_with(')')) {
      path = name.substr(1, name.size() - 2);
      name = "[unknown]";
    }
    const std::size_t plus = name.rfind("+0x");
    if (plus != std::string_view::npos && plus > 0) name = name.substr(0, plus);
    if (path.empty() || path == "inlined" || address == ~std::uint64_t{0}) {
      frames_.push_back(all_.Named(name));
    } else {
      frames_.push_back(all_.InModule(address, name, path));
    }
  }

  ProfileBuilder builder_;
  TextFrames all_{builder_};
  std::string event_;  // the first
  // Of the sample being read.
  bool in_sample_ = false;
  std::vector<std::uint32_t> frames_;
  std::vector<Label> labels_;
  std::int64_t time_ns_ = 0;
  std::array<std::int64_t, 2> values_{};
};

// The frames of a line, from the leaf to the root.
bool SplitStack(std::string_view stack, TextFrames& all, std::vector<std::uint32_t>& frames) {
  frames.clear();
  while (!stack.empty()) {
    const std::size_t end = std::min(stack.find(';'), stack.size());
    if (end > 0) frames.push_back(all.Named(stack.substr(0, end)));
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  std::ranges::reverse(frames);
  return frames.size() <= kMaxTextFrames;
}

}  // namespace

bool IsPerfSample(std::string_view line) { return ParseHead(line).has_value(); }

absl::StatusOr<LoadedProfile> ReadPerfScript(Input& input) { return PerfTextReading().Read(input); }

absl::StatusOr<LoadedProfile> ReadFolded(Input& input) {
  ProfileBuilder builder;
  TextFrames all(builder);
  builder.profile().value_types = {{"samples", "count"}};
  const std::uint32_t no_labels = builder.Labels({});
  std::vector<std::uint32_t> frames;
  std::string_view line;
  for (std::uint64_t number = 1;; ++number) {
    const absl::StatusOr<bool> has_line = input.Line(line, kMaxLineBytes);
    if (!has_line.ok()) return has_line.status();
    if (!*has_line) break;
    line = WithoutSpaces(line);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.rfind(' ');
    std::int64_t value = 0;
    if (space == std::string_view::npos || !TakeNumber(line.substr(space + 1), value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not a profile: line ", number, " is neither pprof nor \"root;...;leaf COUNT\""));
    }
    if (!SplitStack(WithoutSpaces(line.substr(0, space)), all, frames))
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " has too many frames"));
    if (value != 0) builder.AddRow(builder.Stack(frames), no_labels, std::span(&value, 1));
    if (absl::Status status = builder.status(); !status.ok()) return status;
  }
  builder.loaded().format = "folded stacks";
  return builder.Finish();
}

}  // namespace strobe::internal
