// PageTruth: what a page must say of a profile, computed stack by stack from the profile itself.
// It shares no code with the encoder or with the page.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "strobe/encode/profile_view.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

// A text as JSON.
inline std::string JsonText(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      absl::StrAppend(&json, absl::StrFormat("\\u%04x", c));
    else
      json += c;
  }
  return json + "\"";
}
inline std::string JsonNumber(double number) { return absl::StrFormat("%.17g", number); }
template <class Range, class Write>
std::string JsonList(const Range& range, Write write) {
  std::string json = "[";
  for (const auto& element : range)
    absl::StrAppend(&json, json == "[" ? "" : ",\n", write(element));
  return json + "]";
}

// A function of a page: its name and the base name of its module.
using CodeName = std::pair<std::string, std::string>;

struct TruthFrame {
  CodeName code;
  std::uint32_t line = 0;
  bool is_inlined = false;
};

struct Amounts {
  double self = 0, total = 0;
};

// What rows add up to.
struct Truth {
  double sum = 0;
  double taken = 0;    // samples
  double samples = 0;  // effective ones
  double unknown = 0;  // the share of what no sample divides
  std::map<CodeName, Amounts> functions;
  std::map<std::pair<CodeName, std::uint32_t>, Amounts> lines;
  std::map<std::string, Amounts> tree;  // by "main;^inlined"
  // By (function, its neighbour): what is called by it, or calls it, next to its outermost call.
  // The neighbour of no name stands for none.
  std::map<std::pair<CodeName, CodeName>, double> callers, callees;
  // By a pattern: what has a matching function in its stack.
  std::map<std::string, double> searches;
};

// The part of each row that counts: its amount, and how many samples it stands on.
struct RowPart {
  double amount = 0, samples = 0;
};

class TruthBuilder {
 public:
  explicit TruthBuilder(const SampleProfile& sample)
      : sample_(sample), view_(ProfileView::Make(sample.profile, sample.symbols).value()) {}

  // The sums of `type` over the rows whose label set `counts` accepts.
  Truth OfRows(
      std::size_t type, const std::vector<std::string>& patterns,
      const std::function<bool(const LabelSet&)>& counts = [](const LabelSet&) {
        return true;
      }) const {
    const Profile& profile = sample_.profile;
    std::vector<RowPart> parts(profile.samples.size());
    std::map<std::int64_t, double> counted;  // by thread
    for (std::size_t i = 0; i < parts.size(); ++i)
      counted[profile.Labels(i).Number(kThreadIdLabel)] +=
          static_cast<double>(profile.Values(i)[0]);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!counts(profile.Labels(i)) || profile.Values(i)[type] == 0) continue;
      parts[i].amount = static_cast<double>(profile.Values(i)[type]);
      if (type <= 1) parts[i].samples = Samples(i, counted);
    }
    return Sum(parts, patterns);
  }

  // The sums of the moments in [from, to), or of all others.
  Truth OfMoments(std::size_t type, const std::vector<std::string>& patterns, std::int64_t from_ns,
                  std::int64_t to_ns, bool is_inside) const {
    const Profile& profile = sample_.profile;
    std::vector<RowPart> parts(profile.samples.size());
    for (std::size_t i = 0; i < profile.moments.size(); ++i) {
      const std::int64_t time = profile.moments[i].time_ns - profile.time_ns;
      if ((time >= from_ns && time < to_ns) != is_inside) continue;
      parts[profile.moments[i].sample].amount += static_cast<double>(profile.MomentValues(i)[type]);
      parts[profile.moments[i].sample].samples += 1;
    }
    return Sum(parts, patterns);
  }

 private:
  // A row counts its samples in the first column; a thread has no more than its captures.
  [[nodiscard]] double Samples(std::size_t row,
                               const std::map<std::int64_t, double>& counted) const {
    const std::int64_t id = sample_.profile.Labels(row).Number(kThreadIdLabel);
    const auto count = static_cast<double>(sample_.profile.Values(row)[0]);
    for (const ProfileThread& thread : sample_.profile.threads) {
      const auto captures = static_cast<double>(thread.samples);
      if (static_cast<std::int64_t>(thread.id) == id && captures > 0 && captures < counted.at(id))
        return count * captures / counted.at(id);
    }
    return count;
  }

  [[nodiscard]] std::string ModuleName(std::uint32_t frame) const {
    const std::uint32_t module = view_.ModuleOf(frame);
    if (module == ProfileView::kNone) return "";
    const std::string& path = sample_.profile.modules[module].path;
    return path.substr(path.rfind('/') + 1);
  }

  // From the root to the leaf, with inlined functions.
  [[nodiscard]] std::vector<TruthFrame> StackOf(std::size_t row) const {
    std::vector<std::uint32_t> frames;
    view_.VisitStack(row, [&](std::uint32_t frame) { frames.insert(frames.begin(), frame); });
    std::vector<TruthFrame> stack;
    for (const std::uint32_t frame : frames) {
      const std::string module = ModuleName(frame);
      stack.push_back({{view_.FrameText(frame), module}, view_.LineOf(frame).line, false});
      const auto inlined = view_.InlinedAt(frame);
      for (std::size_t i = inlined.size(); i-- > 0;) {
        const std::string& name = sample_.symbols.functions[inlined[i].function].name;
        stack.push_back({{name, module}, inlined[i].line, true});
      }
    }
    return stack;
  }

  static void AddStack(Truth& truth, const std::vector<TruthFrame>& stack, double amount) {
    std::set<CodeName> seen;
    std::set<std::pair<CodeName, std::uint32_t>> seen_lines;
    std::string path;
    for (std::size_t i = 0; i < stack.size(); ++i) {
      const TruthFrame& frame = stack[i];
      const bool is_leaf = i + 1 == stack.size();
      absl::StrAppend(&path, path.empty() ? "" : ";", frame.is_inlined ? "^" : "",
                      frame.code.first);
      truth.tree[path].total += amount;
      if (is_leaf) truth.tree[path].self += amount;
      if (is_leaf) truth.functions[frame.code].self += amount;
      if (is_leaf) truth.lines[{frame.code, frame.line}].self += amount;
      if (seen_lines.emplace(frame.code, frame.line).second)
        truth.lines[{frame.code, frame.line}].total += amount;
      if (!seen.insert(frame.code).second) continue;
      truth.functions[frame.code].total += amount;
      truth.callers[{frame.code, i == 0 ? CodeName() : stack[i - 1].code}] += amount;
      truth.callees[{frame.code, is_leaf ? CodeName() : stack[i + 1].code}] += amount;
    }
  }

  [[nodiscard]] Truth Sum(const std::vector<RowPart>& parts,
                          const std::vector<std::string>& patterns) const {
    Truth truth;
    std::map<std::string, std::regex> expressions;
    for (const std::string& pattern : patterns) expressions.emplace(pattern, pattern);
    std::map<std::int64_t, RowPart> threads;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].amount == 0) continue;
      truth.sum += parts[i].amount;
      const std::vector<TruthFrame> stack = StackOf(i);
      AddStack(truth, stack, parts[i].amount);
      for (const auto& [pattern, expression] : expressions) {
        bool is_match = false;
        for (const TruthFrame& frame : stack)
          is_match = is_match || std::regex_search(frame.code.first, expression);
        truth.searches[pattern] += is_match ? parts[i].amount : 0;
      }
      const std::string leaf = stack.empty() ? "" : stack.back().code.first;
      if (leaf == "[lost]" || leaf == "[residual]") continue;
      RowPart& thread = threads[sample_.profile.Labels(i).Number(kThreadIdLabel)];
      thread.amount += parts[i].amount;
      thread.samples += parts[i].samples;
    }
    double squares = 0, known = 0;
    for (const auto& [id, part] : threads) {
      if (part.samples == 0) continue;
      truth.taken += part.samples;
      known += part.amount;
      squares += part.amount * part.amount / part.samples;
    }
    truth.samples = squares > 0 ? known * known / squares : 0;
    truth.unknown = squares > 0 ? (truth.sum - known) / truth.sum : 0;
    return truth;
  }

  const SampleProfile& sample_;
  ProfileView view_;
};

// The standard error of a share: that of a proportion of what is known, with one sample added on
// either side; and half of what is unknown.
inline double ShareError(double share, const Truth& truth) {
  if (truth.samples == 0) return std::numeric_limits<double>::quiet_NaN();
  const double known = 1 - truth.unknown;
  const double part = std::min(1.0, share / known);
  const double adjusted = (part * truth.samples + 1) / (truth.samples + 2);
  return std::hypot(known * std::sqrt(adjusted * (1 - adjusted) / (truth.samples + 2)),
                    truth.unknown / 2);
}

// null without samples.
inline std::string ErrorText(double error) {
  return std::isnan(error) ? "null" : std::string(JsonNumber(error));
}

inline std::string JsonOf(const CodeName& code) {
  return absl::StrCat("\"name\":", JsonText(code.first), ",\"module\":", JsonText(code.second));
}

inline std::string JsonOf(const Amounts& amounts) {
  return absl::StrCat("\"self\":", JsonNumber(amounts.self),
                      ",\"total\":", JsonNumber(amounts.total));
}

inline std::string JsonOf(const Truth& truth) {
  const auto neighbours = [](const auto& table) {
    return JsonList(table, [](const auto& entry) {
      return absl::StrCat("{\"of\":", JsonText(entry.first.first.first),
                          ",\"neighbour\":", JsonText(entry.first.second.first),
                          ",\"total\":", JsonNumber(entry.second), "}");
    });
  };
  return absl::StrCat(
      "{\"sum\":", JsonNumber(truth.sum), ",\"samples\":", JsonNumber(truth.taken),
      ",\n\"functions\":",
      JsonList(truth.functions,
               [&truth](const auto& entry) {
                 const double share = truth.sum > 0 ? entry.second.total / truth.sum : 0;
                 return absl::StrCat("{", JsonOf(entry.first), ",", JsonOf(entry.second),
                                     ",\"error\":", ErrorText(ShareError(share, truth)), "}");
               }),
      ",\n\"lines\":",
      JsonList(truth.lines,
               [](const auto& entry) {
                 return absl::StrCat("{", JsonOf(entry.first.first),
                                     ",\"line\":", entry.first.second, ",", JsonOf(entry.second),
                                     "}");
               }),
      ",\n\"tree\":",
      JsonList(truth.tree,
               [](const auto& entry) {
                 return absl::StrCat("{\"path\":", JsonText(entry.first), ",", JsonOf(entry.second),
                                     "}");
               }),
      ",\n\"callers\":", neighbours(truth.callers), ",\n\"callees\":", neighbours(truth.callees),
      ",\n\"searches\":",
      JsonList(truth.searches,
               [](const auto& entry) {
                 return absl::StrCat("{\"pattern\":", JsonText(entry.first),
                                     ",\"total\":", JsonNumber(entry.second), "}");
               }),
      "}");
}

// What changed from `base` to `now`, of each function.
inline std::string JsonOfChanges(const Truth& now, const Truth& base) {
  std::map<CodeName, std::pair<double, double>> shares;
  for (const auto& [code, amounts] : now.functions) shares[code].first = amounts.total / now.sum;
  for (const auto& [code, amounts] : base.functions) shares[code].second = amounts.total / base.sum;
  return JsonList(shares, [&](const auto& entry) {
    const auto [share, base_share] = entry.second;
    const double error = std::hypot(ShareError(share, now), ShareError(base_share, base));
    const double change = share - base_share;
    return absl::StrCat("{", JsonOf(entry.first), ",\"change\":", JsonNumber(change),
                        ",\"error\":", ErrorText(error),
                        ",\"isSignificant\":", std::abs(change) > 3 * error ? "true" : "false",
                        "}");
  });
}

}  // namespace strobe::testing
