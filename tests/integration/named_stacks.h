// The stacks of exported profiles by the names of their functions, as a reader of the files has
// them; and threads that work until one is there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collecting_exporter.h"
#include "gtest/gtest.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::testing {

// A row of a profile.
struct NamedStack {
  std::vector<std::string> frames;            // leaf first
  std::map<std::string, std::string> labels;  // numbers as text, too
  std::vector<std::int64_t> values;

  // The index of the first frame, from `begin` on, of strobe::testing::`function`; -1 if there is
  // none.
  [[nodiscard]] int Find(std::string_view function, int begin = 0) const {
    const std::string name = "strobe::testing::" + std::string(function);
    const auto found = std::find(frames.begin() + begin, frames.end(), name);
    return found == frames.end() ? -1 : static_cast<int>(found - frames.begin());
  }
  [[nodiscard]] bool Has(std::string_view function) const { return Find(function) >= 0; }
  // The text of a label, or "".
  [[nodiscard]] std::string Label(const std::string& key) const {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string() : found->second;
  }
};

// The rows of one profile, which is checked. Those without a frame are left out.
inline std::vector<NamedStack> NamedStacksOf(const CollectingExporter::Exported& exported) {
  std::vector<NamedStack> stacks;
  const std::optional<PprofProfile> profile = ReadPprof(exported.bytes);
  EXPECT_TRUE(profile.has_value());
  if (!profile.has_value()) return stacks;
  EXPECT_EQ(CheckPprof(*profile), "");
  for (const PprofProfile::Sample& sample : profile->samples) {
    NamedStack stack{.frames = profile->Stack(sample), .labels = {}, .values = sample.values};
    for (const PprofProfile::Label& label : sample.labels)
      stack.labels[label.key] = label.text.empty() ? std::to_string(label.number) : label.text;
    if (!stack.frames.empty()) stacks.push_back(std::move(stack));
  }
  return stacks;
}
inline std::vector<NamedStack> NamedStacksOf(
    const std::vector<CollectingExporter::Exported>& exports) {
  std::vector<NamedStack> stacks;
  for (const auto& exported : exports) {
    for (NamedStack& stack : NamedStacksOf(exported)) stacks.push_back(std::move(stack));
  }
  return stacks;
}

// Finds, one after another, whether stacks have been exported. It reads each profile once.
class StackSearch {
 public:
  // Whether accepts(stack) holds for any stack of the profiles exported since the last Take.
  template <class Accepts>
  bool Finds(const Accepts& accepts) {
    CollectingExporter::HasProfile([&, at = std::size_t{0}](const auto& exported) mutable {
      if (at++ < read_) return false;
      ++read_;
      for (NamedStack& stack : NamedStacksOf(exported)) stacks_.push_back(std::move(stack));
      return false;
    });
    return std::any_of(stacks_.begin(), stacks_.end(), accepts);
  }

 private:
  std::size_t read_ = 0;
  std::vector<NamedStack> stacks_;
};

// Calls work() and ends a period, until a stack has been exported that accepts(stack).
template <class Traits, class Accepts, class Work>
bool WorkUntilStack(BasicProfiler<Traits>& profiler, const Accepts& accepts, const Work& work) {
  StackSearch search;
  return WorkUntil([&] { return search.Finds(accepts); },
                   [&] {
                     work();
                     EXPECT_TRUE(profiler.Flush().ok());
                   });
}

}  // namespace strobe::testing
