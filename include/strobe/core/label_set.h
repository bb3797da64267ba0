// LabelSet: what a row of a profile records besides its stack: which thread ran, and what the
// thread was doing.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace strobe {

// The keys of the labels that every row has. The id is a number. The name is a text, and is missing
// if the thread has no name.
inline constexpr std::string_view kThreadIdLabel = "thread id";
inline constexpr std::string_view kThreadNameLabel = "thread name";

// One label of a set.
struct Label {
  std::string key;
  std::variant<std::int64_t, std::string> value;

  friend bool operator==(const Label&, const Label&) = default;
  template <class H>
  friend H AbslHashValue(H state, const Label& label) {
    return H::combine(std::move(state), label.key, label.value);
  }
};

// A label that a caller gives, for example {"endpoint", "/pay"} or {"shard", 7}. It refers to the
// caller's texts.
struct LabelView {
  std::string_view key;
  std::variant<std::int64_t, std::string_view> value;

  LabelView(std::string_view label_key, std::string_view text) : key(label_key), value(text) {}
  template <std::integral Number>
  LabelView(std::string_view label_key, Number number)
      : key(label_key), value(static_cast<std::int64_t>(number)) {}
};

// What a set takes of the labels that it is given.
struct LabelLimits {
  std::size_t labels = 16;     // further ones are left out
  std::size_t key_bytes = 64;  // longer keys and texts are cut at a character boundary
  std::size_t text_bytes = 256;
  bool keeps_values = false;  // all of a key, in their order; or only the first
};

// An immutable set of labels, sorted by key. Sets with equal labels are equal; the order in which
// the labels were given does not matter.
class LabelSet {
 public:
  // Those of the labels that a program sets.
  static constexpr std::size_t kMaxLabels = LabelLimits().labels;
  static constexpr std::size_t kMaxKeyBytes = LabelLimits().key_bytes;
  static constexpr std::size_t kMaxTextBytes = LabelLimits().text_bytes;

  LabelSet() = default;
  // Keys and texts become valid UTF-8 without control characters. A file of another tool may have
  // more labels than a program may set, and several values of a key.
  explicit LabelSet(std::vector<Label> labels, const LabelLimits& limits = {});

  // The labels of both sets. If both have a key, this set's label is taken. The result may have up
  // to twice kMaxLabels.
  [[nodiscard]] LabelSet Joined(const LabelSet& other) const;

  // The labels that both sets have, with the same values.
  [[nodiscard]] LabelSet InCommonWith(const LabelSet& other) const;

  // The text, or the number, of the first label with `key`; empty, or 0, if there is none.
  [[nodiscard]] const std::string& Text(std::string_view key) const;
  [[nodiscard]] std::int64_t Number(std::string_view key) const;
  // The first label with `key`; nullptr if there is none.
  [[nodiscard]] const Label* Find(std::string_view key) const;

  [[nodiscard]] std::span<const Label> labels() const { return labels_; }
  [[nodiscard]] bool empty() const { return labels_.empty(); }
  [[nodiscard]] std::size_t memory_bytes() const;

  friend bool operator==(const LabelSet&, const LabelSet&) = default;
  template <class H>
  friend H AbslHashValue(H state, const LabelSet& set) {
    return H::combine(std::move(state), set.labels_);
  }

 private:
  std::vector<Label> labels_;
};

// The context word of a thread that has set no labels: the number of the empty set.
inline constexpr std::uint64_t kNoContext = 0;
// The number of the overflow set, which stands for all sets beyond a limit and all unknown numbers.
inline constexpr std::uint64_t kOverflowContext = 1;

// The labels of a thread.
LabelSet ThreadLabels(std::uint64_t id, std::string_view name);

}  // namespace strobe
