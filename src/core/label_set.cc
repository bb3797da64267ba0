#include "strobe/core/label_set.h"

#include <algorithm>
#include <iterator>

#include "strobe/core/thread_info.h"

namespace strobe {
namespace {

constexpr auto kByKey = [](const Label& a, const Label& b) { return a.key < b.key; };

}  // namespace

LabelSet::LabelSet(std::vector<Label> labels, const LabelLimits& limits) {
  labels_.reserve(std::min(labels.size(), limits.labels));
  for (Label& label : labels) {
    if (labels_.size() == limits.labels) break;
    label.key = SanitizedText(label.key, limits.key_bytes);
    if (!limits.keeps_values && Find(label.key) != nullptr) continue;
    if (auto* const text = std::get_if<std::string>(&label.value))
      *text = SanitizedText(*text, limits.text_bytes);
    labels_.push_back(std::move(label));
  }
  std::stable_sort(labels_.begin(), labels_.end(), kByKey);
}

LabelSet LabelSet::Joined(const LabelSet& other) const {
  LabelSet joined;
  joined.labels_.reserve(labels_.size() + other.labels_.size());
  std::set_union(labels_.begin(), labels_.end(), other.labels_.begin(), other.labels_.end(),
                 std::back_inserter(joined.labels_), kByKey);
  return joined;
}

LabelSet LabelSet::InCommonWith(const LabelSet& other) const {
  LabelSet common;
  std::ranges::copy_if(labels_, std::back_inserter(common.labels_), [&](const Label& label) {
    return std::ranges::find(other.labels_, label) != other.labels_.end();
  });
  return common;
}

const std::string& LabelSet::Text(std::string_view key) const {
  static const std::string* const kNoText = new std::string;
  const Label* const label = Find(key);
  const auto* const text = label == nullptr ? nullptr : std::get_if<std::string>(&label->value);
  return text == nullptr ? *kNoText : *text;
}

std::int64_t LabelSet::Number(std::string_view key) const {
  const Label* const label = Find(key);
  const auto* const number = label == nullptr ? nullptr : std::get_if<std::int64_t>(&label->value);
  return number == nullptr ? 0 : *number;
}

std::size_t LabelSet::memory_bytes() const {
  std::size_t bytes = sizeof(*this) + labels_.capacity() * sizeof(Label);
  for (const Label& label : labels_) {
    bytes += label.key.capacity();
    if (const auto* const text = std::get_if<std::string>(&label.value)) bytes += text->capacity();
  }
  return bytes;
}

const Label* LabelSet::Find(std::string_view key) const {
  const auto label = std::find_if(labels_.begin(), labels_.end(),
                                  [&](const Label& one) { return one.key == key; });
  return label == labels_.end() ? nullptr : &*label;
}

LabelSet ThreadLabels(std::uint64_t id, std::string_view name) {
  std::vector<Label> labels{{std::string(kThreadIdLabel), static_cast<std::int64_t>(id)}};
  if (!name.empty()) labels.push_back({std::string(kThreadNameLabel), std::string(name)});
  return LabelSet(std::move(labels));
}

}  // namespace strobe
