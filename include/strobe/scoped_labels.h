// ScopedLabels: what the calling thread is working for. Samples of the thread have these labels.
//
//   strobe::ScopedLabels labels({{"endpoint", "/pay"}, {"shard", 7}});
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"
#include "strobe/core/zone.h"
#include "strobe/platform/registration_link.h"

namespace strobe {

// A set of labels as a value: to copy, to keep, and to give to another thread or task. It stays
// valid for the life of the process.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class Labels {
 public:
  // No labels.
  Labels() = default;

  // These labels, and those of `outer` with other keys. A set has at most LabelSet::kMaxLabels
  // labels: those of `outer` that find no room are left out. A process has a limit on distinct sets
  // (LabelTable): beyond it, the result is "labels": "[labels over limit]".
  // Takes no lock; allocates only for labels that were not seen before.
  static Labels Of(std::span<const LabelView> labels, Labels outer) noexcept;
  static Labels Of(std::initializer_list<LabelView> labels) noexcept {
    return Of(std::span(labels.begin(), labels.size()), Labels());
  }

  // The labels of `outer` in the zone `zone`: see ScopedZone. Takes no lock; allocates only for a
  // zone that was not seen before in these labels.
  static Labels Of(const ZoneName& zone, Labels outer) noexcept;

  [[nodiscard]] const LabelSet& set() const;

  friend bool operator==(const Labels&, const Labels&) = default;

 private:
  friend Labels CurrentLabels() noexcept;
  friend Labels ExchangeLabels(Labels labels) noexcept;

  explicit Labels(std::uint64_t number) : number_(number) {}

  std::uint64_t number_ = kNoContext;
};
#pragma GCC diagnostic pop

// The labels of the calling thread. A thread that is not registered has labels, too: its
// registration begins with them.
inline Labels CurrentLabels() noexcept { return Labels(internal::OwnContext().labels()); }

// Replaces the labels of the calling thread, and returns those before. For code that saves and
// restores labels itself, as a coroutine does when it suspends: see src/examples/labels.cc.
inline Labels ExchangeLabels(Labels labels) noexcept {
  const Labels before = CurrentLabels();
  internal::SetOwnLabels(labels.number_);
  return before;
}

// Sets labels of the calling thread for a scope. Scopes nest: the inner scope keeps the outer
// scope's labels with other keys. The end of the scope restores the labels that were there before,
// so it must be on the same thread.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class [[nodiscard]] ScopedLabels {
 public:
  ScopedLabels(std::initializer_list<LabelView> labels) noexcept
      : ScopedLabels(Labels::Of(std::span(labels.begin(), labels.size()), CurrentLabels())) {}
  // With exactly these labels, for example those that another thread had.
  explicit ScopedLabels(Labels labels) noexcept : outer_(ExchangeLabels(labels)) {}
  ScopedLabels(const ScopedLabels&) = delete;
  ScopedLabels& operator=(const ScopedLabels&) = delete;
  ~ScopedLabels() { ExchangeLabels(outer_); }

 private:
  Labels outer_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
