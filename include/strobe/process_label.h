// ProcessLabel: what the whole program is doing, such as the level of a game or the view of an
// application. Samples of all threads have this label.
//
//   strobe::ProcessLabel level("level", "forest");
//   ...
//   level.Set("desert");
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "strobe/core/label_set.h"

namespace strobe {

// A label from the construction to the end of the object, of all threads, registered or not, that
// this copy of the library samples. A sample has the value of the instant at which it was taken. A
// thread's own label with the same key goes before it, and so does a later ProcessLabel. At most
// LabelSet::kMaxLabels of them count, those that were made last.
//
// Thread-safe, also while sessions begin and end. A change takes a mutex and allocates: it is for
// what changes a few times a second at most. LabelTable limits the sets of labels that a process
// can have. After a fork, the child has the same labels.
class [[nodiscard]] ProcessLabel {
 public:
  explicit ProcessLabel(const LabelView& label);
  ProcessLabel(std::string_view key, std::string_view text) : ProcessLabel(LabelView(key, text)) {}
  template <std::integral Number>
  ProcessLabel(std::string_view key, Number number) : ProcessLabel(LabelView(key, number)) {}
  ~ProcessLabel();
  ProcessLabel(const ProcessLabel&) = delete;
  ProcessLabel& operator=(const ProcessLabel&) = delete;

  // Replaces the value.
  void Set(std::string_view text) { SetValue(std::string(text)); }
  template <std::integral Number>
  void Set(Number number) {
    SetValue(static_cast<std::int64_t>(number));
  }

 private:
  using Value = std::variant<std::int64_t, std::string>;

  void SetValue(Value value);
  // Under the mutex of all: gives samples the labels that there are now.
  static void Publish();

  const std::string key_;
  Value value_;
  ProcessLabel* older_ = nullptr;  // the one that was made before
};

}  // namespace strobe
