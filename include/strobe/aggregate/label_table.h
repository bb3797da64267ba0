// LabelTable: numbers for sets of labels, so that a thread's context is one word.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "strobe/core/label_set.h"
#include "strobe/core/zone.h"

namespace strobe {

// Numbers are never reused, and sets never freed before the table: a number may lie in a saved
// value, in a thread's channel and in records. Control plane, any thread. No function takes a lock,
// so a fork's child can go on with the table in whatever state it finds it.
class LabelTable {
 public:
  // The memory limit for all sets. A program with a label per request would otherwise grow without
  // end. The table itself takes up to 300 KiB more.
  static constexpr std::size_t kDefaultLimitBytes = std::size_t{4} << 20;
  // The most sets. Their numbers fit a context's (see SampleContext::kProcessLabelNumbers).
  static constexpr std::size_t kMaxSets = (std::size_t{1} << 15) - 256;

  // How a table's sets come to a table of another process: the one tells the listener of each set,
  // the other asks the source for those that it needs.
  using Listener = void (*)(std::uint64_t number, const LabelSet& set) noexcept;
  using Source = std::optional<LabelSet> (*)(std::uint64_t number);

  constexpr explicit LabelTable(std::size_t limit_bytes = kDefaultLimitBytes)
      : limit_bytes_(limit_bytes) {}
  // With the sets and numbers of the source: Intern adds none.
  constexpr explicit LabelTable(Source source, std::size_t limit_bytes = kDefaultLimitBytes)
      : limit_bytes_(limit_bytes), source_(source) {}
  LabelTable(const LabelTable&) = delete;
  LabelTable& operator=(const LabelTable&) = delete;
  ~LabelTable();

  // The number of the set with `labels` and, where they leave room, those of the set `base`; of
  // equal keys, that of `labels` counts, and of those the first. kOverflowContext beyond a limit,
  // or if memory runs out. Calls with equal arguments return the same number, or one of a few if
  // threads make the first calls at once.
  std::uint64_t Intern(std::uint64_t base, std::span<const LabelView> labels) noexcept;
  std::uint64_t Intern(std::initializer_list<LabelView> labels) noexcept {
    return Intern(kNoContext, std::span(labels.begin(), labels.size()));
  }
  // The same for the labels of `base` in the zone `zone`: see ZonePath.
  std::uint64_t Intern(std::uint64_t base, const ZoneName& zone) noexcept;

  // The set with that number, valid for the table's life. A forged record may have any other
  // number: it gives the overflow set, whose only label is "labels": "[labels over limit]".
  [[nodiscard]] const LabelSet& operator[](std::uint64_t number) const;

  // From now on calls listener(number, set) for each new set, before any call returns the number,
  // and at once for each set that is there. Possibly twice for a set. nullptr ends that.
  void Tell(Listener listener) noexcept;

  // Calls of Intern that found no room for a set.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Node;
  template <class T, std::size_t size>
  using Atomics = std::array<std::atomic<T*>, size>;
  static constexpr std::size_t kBuckets = 4096;
  static constexpr std::size_t kChunkNodes = 256;
  using Buckets = Atomics<Node, kBuckets>;
  using Chunk = Atomics<Node, kChunkNodes>;
  static constexpr std::uint64_t kFirstNumber = kOverflowContext + 1;

  // A set is known by the set that it is built on and by what was added to that, packed in bytes.
  struct Key {
    std::uint64_t hash;
    std::uint64_t base;
    std::string_view packed;
  };
  [[nodiscard]] const Node* Find(const Key& key) const;
  template <class MakeLabels>
  std::uint64_t FindOrAdd(const Key& key, const MakeLabels& make_labels) noexcept;
  template <class MakeLabels>
  std::uint64_t Add(const Key& key, const MakeLabels& make_labels, Buckets& buckets);
  [[nodiscard]] const Node* NodeOf(std::uint64_t number) const;
  [[nodiscard]] const Node* TakeFromSource(std::uint64_t number) const;
  [[nodiscard]] bool TakeRoom(const Node& node) const;

  const std::size_t limit_bytes_;
  const Source source_ = nullptr;
  std::atomic<Listener> listener_{nullptr};
  mutable std::atomic<std::size_t> used_bytes_{0};
  std::atomic<std::uint64_t> next_{kFirstNumber};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<Buckets*> buckets_{nullptr};  // lists of nodes, by hash
  // Nodes by number. Mutable: a set comes from the source when it is first asked for.
  mutable Atomics<Chunk, kMaxSets / kChunkNodes> chunks_{};
};

// The table that the numbers of all threads' labels refer to. It lives as long as the process.
LabelTable& ProcessLabels();
// In a process that serves others: of_thread() is the table of the one that the calling thread
// serves; nullptr for this process's own.
void UseProcessLabels(LabelTable* (*of_thread)());

}  // namespace strobe
