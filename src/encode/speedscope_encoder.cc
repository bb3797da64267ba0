#include "strobe/encode/speedscope_encoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "json_writer.h"
#include "row_texts.h"
#include "sample_parts.h"
#include "strobe/core/label_set.h"
#include "strobe/encode/profile_view.h"

namespace strobe {
namespace {

constexpr std::string_view kSchema = "https://www.speedscope.app/file-format-schema.json";

std::string_view UnitOf(const ValueType& value_type) {
  constexpr std::array<std::string_view, 5> kUnits{"nanoseconds", "microseconds", "milliseconds",
                                                   "seconds", "bytes"};
  return std::ranges::find(kUnits, value_type.unit) != kUnits.end() ? value_type.unit : "none";
}

// The list of frames, and the elements of a sample's array that stand for a frame of the profile or
// for a set of labels: "17,4,", from the root to the leaf.
class FrameList {
 public:
  explicit FrameList(const ProfileView& view) : view_(view), functions_(view.function_count()) {
    const std::vector<std::string> names = internal::ShortNames(view);
    frames_.BeginArray();
    elements_.resize(view.profile().frames.size());
    for (std::uint32_t i = 0; i < elements_.size(); ++i) {
      view.VisitLines(i, [&](const SourceLine& line) {
        elements_[i].insert(0, Element(Function(line.function, names[line.function])));
      });
      if (elements_[i].empty()) elements_[i] = Element(Add(view.FrameText(i), {}));
    }
    for (const LabelSet& set : view.profile().label_sets) {
      std::string& elements = labels_.emplace_back();
      for (const std::string& label : internal::LabelTexts(set)) elements += Element(Text(label));
    }
    no_stack_ = Element(Add("[no stack]", {}));
    frames_.EndArray();
  }

  [[nodiscard]] std::string Take() { return frames_.Take(); }
  [[nodiscard]] const std::string& OfFrame(std::uint32_t frame) const { return elements_[frame]; }
  [[nodiscard]] const std::string& NoStack() const { return no_stack_; }
  [[nodiscard]] const std::string& OfLabels(std::uint32_t set) const { return labels_[set]; }

 private:
  static std::string Element(std::uint32_t number) { return absl::StrCat(number, ","); }

  std::uint32_t Add(std::string_view name, const FunctionName& place) {
    frames_.BeginObject();
    frames_.Member("name", name);
    if (!place.file.empty()) frames_.Member("file", place.file);
    if (place.line != 0) frames_.Member("line", std::int64_t{place.line});
    frames_.EndObject();
    return count_++;
  }
  std::uint32_t Function(std::uint32_t function, std::string_view name) {
    if (functions_[function] == 0) functions_[function] = Add(name, view_.function(function)) + 1;
    return functions_[function] - 1;
  }
  std::uint32_t Text(const std::string& label) {
    const auto [place, is_new] = texts_.try_emplace(label, count_);
    if (is_new) Add(absl::StrCat("[", label, "]"), {});
    return place->second;
  }

  const ProfileView& view_;
  internal::JsonWriter frames_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> functions_;        // number of each function + 1; 0 if it has none
  std::map<std::string, std::uint32_t> texts_;  // numbers of labels
  std::vector<std::string> elements_;           // of each frame of the profile
  std::vector<std::string> labels_;             // of each label set
  std::string no_stack_;
};

// Wraps around, as the sum of a hostile profile may.
std::int64_t Sum(const std::vector<internal::SamplePart>& parts, std::size_t column) {
  std::uint64_t sum = 0;
  for (const internal::SamplePart& part : parts)
    sum += static_cast<std::uint64_t>(part.values[column]);
  return static_cast<std::int64_t>(sum);
}

class SpeedscopeEncoding {
 public:
  explicit SpeedscopeEncoding(const ProfileView& view)
      : view_(view), profile_(view.profile()), frames_(view) {}

  absl::StatusOr<std::string> Run() {
    json_.BeginObject();
    json_.Member("$schema", kSchema);
    json_.Member("exporter", "strobe");
    json_.Member("name", profile_.program);
    json_.Key("shared");
    json_.BeginObject();
    json_.Key("frames");
    json_.Raw(frames_.Take());
    json_.EndObject();
    json_.Key("profiles");
    json_.BeginArray();
    const internal::SampleParts parts(profile_);
    for (const internal::ThreadParts& thread : internal::PartsByThread(profile_, parts)) {
      for (std::size_t column = 0; column < profile_.value_types.size(); ++column) {
        WriteProfile(thread, column);
        if (json_.size() > SpeedscopeEncoder::kMaxBytes)
          return absl::OutOfRangeError("the profile is too long for speedscope");
      }
    }
    // The viewer refuses a file without profiles.
    if (count_ == 0) WriteProfile("no samples", "none", {}, 0);
    json_.EndArray();
    json_.Member("activeProfileIndex", active_);
    json_.EndObject();
    return json_.Take();
  }

 private:
  void WriteProfile(const internal::ThreadParts& thread, std::size_t column) {
    const auto is_zero = [column](const internal::SamplePart& part) {
      return part.values[column] == 0;
    };
    if (std::ranges::all_of(thread.parts, is_zero)) return;
    const ValueType& value_type = profile_.value_types[column];
    const std::int64_t sum = Sum(thread.parts, column);
    if (column == profile_.default_value_type && sum > most_) {
      most_ = sum;
      active_ = count_;
    }
    std::string name = internal::ThreadText(thread.id, thread.name);
    if (!thread.name.empty()) absl::StrAppend(&name, " (", thread.id, ")");
    absl::StrAppend(&name, ", ", std::string(value_type.type));
    WriteProfile(name, UnitOf(value_type), thread.parts, column);
  }

  void WriteProfile(std::string_view name, std::string_view unit,
                    const std::vector<internal::SamplePart>& parts, std::size_t column) {
    ++count_;
    json_.BeginObject();
    json_.Member("type", "sampled");
    json_.Member("name", name);
    json_.Member("unit", unit);
    json_.Member("startValue", std::int64_t{0});
    json_.Member("endValue", Sum(parts, column));
    json_.Key("samples");
    json_.BeginArray();
    for (const internal::SamplePart& part : parts) {
      if (part.values[column] != 0) WriteStack(part.sample);
      if (json_.size() > SpeedscopeEncoder::kMaxBytes) break;
    }
    json_.EndArray();
    json_.Key("weights");
    json_.BeginArray();
    for (const internal::SamplePart& part : parts) {
      if (part.values[column] != 0) json_.Number(part.values[column]);
    }
    json_.EndArray();
    json_.EndObject();
  }

  void WriteStack(std::uint32_t sample) {
    stack_.clear();
    view_.VisitStack(sample, [this](std::uint32_t frame) { stack_.push_back(frame); });
    text_ = "[";
    text_ += frames_.OfLabels(profile_.samples[sample].labels);
    if (stack_.empty()) text_ += frames_.NoStack();
    std::reverse(stack_.begin(), stack_.end());
    for (const std::uint32_t frame : stack_) text_ += frames_.OfFrame(frame);
    text_.back() = ']';  // was the last comma
    json_.Raw(text_);
  }

  const ProfileView& view_;
  const Profile& profile_;
  FrameList frames_;
  internal::JsonWriter json_;
  std::int64_t count_ = 0;   // profiles written
  std::int64_t active_ = 0;  // the one to show first
  std::int64_t most_ = 0;    // its sum
  std::vector<std::uint32_t> stack_;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> SpeedscopeEncoder::Encode(const Profile& profile,
                                                      const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  return SpeedscopeEncoding(*view).Run();
}

}  // namespace strobe
