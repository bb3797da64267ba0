#include "strobe/aggregate/label_table.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/hash/hash.h"
#include "strobe/aggregate/bounded_table.h"
#include "strobe/base/memory_guard.h"
#include "strobe/core/sample_context.h"

namespace strobe {
namespace {

static_assert(kOverflowContext + 1 + LabelTable::kMaxSets <=
                  std::min(SampleContext::kLabelNumbers, SampleContext::kProcessLabelNumbers),
              "a context's word has room for each number");

// A few bytes more than are kept, so that a text is cut at the same character as a longer one.
constexpr std::size_t kMostKeyBytes = LabelSet::kMaxKeyBytes + 4;
constexpr std::size_t kMostTextBytes = LabelSet::kMaxTextBytes + 4;

// The labels of one call as bytes that say all of them, for hashing and comparing.
class PackedLabels {
 public:
  explicit PackedLabels(std::span<const LabelView> labels) {
    for (const LabelView& label : labels) {
      Append(label.key.substr(0, kMostKeyBytes));
      if (const auto* const number = std::get_if<std::int64_t>(&label.value)) {
        AppendWord(kIsNumber);
        std::memcpy(bytes_.data() + size_, number, sizeof(*number));
        size_ += sizeof(*number);
      } else {
        Append(std::get<std::string_view>(label.value).substr(0, kMostTextBytes));
      }
    }
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  static constexpr std::uint16_t kIsNumber = 0xFFFF;  // no text has this length
  static constexpr std::size_t kMostLabelBytes =
      2 * sizeof(std::uint16_t) + kMostKeyBytes + kMostTextBytes;

  void AppendWord(std::uint16_t word) {
    std::memcpy(bytes_.data() + size_, &word, sizeof(word));
    size_ += sizeof(word);
  }
  void Append(std::string_view text) {
    AppendWord(static_cast<std::uint16_t>(text.size()));
    // An empty view may have no data.
    if (!text.empty()) std::memcpy(bytes_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }

  // Not initialised: a call would clear 5 KiB to use a few bytes.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  std::array<char, LabelSet::kMaxLabels * kMostLabelBytes> bytes_;
  std::size_t size_ = 0;
};

std::vector<Label> JoinedLabels(std::span<const LabelView> labels, const LabelSet& base) {
  std::vector<Label> joined;
  joined.reserve(labels.size() + base.labels().size());
  for (const LabelView& label : labels) {
    Label& copy = joined.emplace_back(Label{std::string(label.key.substr(0, kMostKeyBytes)), {}});
    if (const auto* const text = std::get_if<std::string_view>(&label.value)) {
      copy.value = std::string(text->substr(0, kMostTextBytes));
    } else {
      copy.value = std::get<std::int64_t>(label.value);
    }
  }
  joined.insert(joined.end(), base.labels().begin(), base.labels().end());
  return joined;
}

// What `pointer` points to, made from the arguments if it is nullptr. Without a lock, which a local
// static variable has: a fork's child would wait for a thread that it does not have.
template <class T, class... Arguments>
T& GetOrMake(std::atomic<T*>& pointer, Arguments&&... arguments) {
  T* found = pointer.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto made = std::make_unique<T>(std::forward<Arguments>(arguments)...);
  if (!pointer.compare_exchange_strong(found, made.get(), std::memory_order_seq_cst)) return *found;
  return *made.release();
}

}  // namespace

struct LabelTable::Node {
  std::uint64_t hash = 0;
  std::uint64_t base = kNoContext;
  std::string packed;
  std::uint64_t number = kNoContext;
  LabelSet set;
  Node* next = nullptr;  // of the bucket
};

LabelTable::~LabelTable() {
  for (const std::atomic<Chunk*>& slot : chunks_) {
    const std::unique_ptr<Chunk> chunk(slot.load(std::memory_order_acquire));
    if (chunk == nullptr) continue;
    for (const std::atomic<Node*>& node : *chunk)
      const std::unique_ptr<Node> own(node.load(std::memory_order_acquire));
  }
  const std::unique_ptr<Buckets> buckets(buckets_.load(std::memory_order_acquire));
}

const LabelTable::Node* LabelTable::Find(const Key& key) const {
  const Buckets* const buckets = buckets_.load(std::memory_order_acquire);
  if (buckets == nullptr) return nullptr;
  const Node* node = (*buckets)[key.hash % kBuckets].load(std::memory_order_acquire);
  while (node != nullptr &&
         (node->hash != key.hash || node->base != key.base || node->packed != key.packed))
    node = node->next;
  return node;
}

template <class MakeLabels>
std::uint64_t LabelTable::FindOrAdd(const Key& key, const MakeLabels& make_labels) noexcept {
  if (const Node* const node = Find(key)) return node->number;
  std::uint64_t number = kOverflowContext;
  static_cast<void>(
      internal::HasMemoryFor([&] { number = Add(key, make_labels, GetOrMake(buckets_)); }));
  if (number == kOverflowContext) refused_.fetch_add(1, std::memory_order_relaxed);
  return number;
}

std::uint64_t LabelTable::Intern(std::uint64_t base, std::span<const LabelView> labels) noexcept {
  labels = labels.first(std::min(labels.size(), LabelSet::kMaxLabels));
  if (labels.empty()) return base;
  const PackedLabels packed(labels);
  return FindOrAdd({absl::HashOf(base, packed.view()), base, packed.view()},
                   [&] { return JoinedLabels(labels, (*this)[base]); });
}

// A zone is packed as its name alone: a name has no NUL byte, and packed labels have one.
std::uint64_t LabelTable::Intern(std::uint64_t base, const ZoneName& zone) noexcept {
  const Key key{HashPair(base, zone.hash()), base, zone.text()};
  if (const Node* const node = Find(key)) return node->number;
  const std::string& outer = (*this)[base].Text(kZoneLabel);
  if (IsOverZoneLimit(outer)) return base;
  return FindOrAdd(key, [&] {
    const std::string path = ZonePath(outer, zone.text());
    const LabelView label(kZoneLabel, path);
    return JoinedLabels(std::span(&label, 1), (*this)[base]);
  });
}

template <class MakeLabels>
std::uint64_t LabelTable::Add(const Key& key, const MakeLabels& make_labels, Buckets& buckets) {
  // A full table costs no further allocations.
  if (source_ != nullptr || next_.load(std::memory_order_relaxed) >= kFirstNumber + kMaxSets ||
      used_bytes_.load(std::memory_order_relaxed) + sizeof(Node) > limit_bytes_)
    return kOverflowContext;
  auto node = std::make_unique<Node>();
  node->hash = key.hash;
  node->base = key.base;
  node->packed = key.packed;
  node->set = LabelSet(make_labels());
  if (!TakeRoom(*node)) return kOverflowContext;
  const std::uint64_t place = next_.fetch_add(1, std::memory_order_relaxed) - kFirstNumber;
  if (place >= kMaxSets) {
    next_.fetch_sub(1, std::memory_order_relaxed);
    return kOverflowContext;
  }
  node->number = place + kFirstNumber;
  Chunk& chunk = GetOrMake(chunks_[place / kChunkNodes]);
  Node* const shared = node.release();
  // Sequentially consistent, as in Tell: either this call sees the listener, or Tell the node.
  chunk[place % kChunkNodes].store(shared, std::memory_order_seq_cst);
  if (const Listener listener = listener_.load(std::memory_order_seq_cst))
    listener(shared->number, shared->set);
  std::atomic<Node*>& bucket = buckets[key.hash % kBuckets];
  shared->next = bucket.load(std::memory_order_relaxed);
  while (!bucket.compare_exchange_weak(shared->next, shared, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  return shared->number;
}

bool LabelTable::TakeRoom(const Node& node) const {
  const std::size_t bytes = sizeof(Node) + node.packed.capacity() + node.set.memory_bytes();
  if (used_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_bytes_) return true;
  used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void LabelTable::Tell(Listener listener) noexcept {
  listener_.store(listener, std::memory_order_seq_cst);
  if (listener == nullptr) return;
  for (std::uint64_t place = 0; place < kMaxSets; ++place) {
    const Node* const node = NodeOf(place + kFirstNumber);
    if (node != nullptr) listener(node->number, node->set);
  }
}

// Two calls for a number may both ask the source; the set of one of them stays.
const LabelTable::Node* LabelTable::TakeFromSource(std::uint64_t number) const {
  const std::uint64_t place = number - kFirstNumber;  // wraps
  if (source_ == nullptr || place >= kMaxSets) return nullptr;
  std::optional<LabelSet> set = source_(number);
  if (!set) return nullptr;
  auto node = std::make_unique<Node>();
  node->number = number;
  node->set = *std::move(set);
  if (!TakeRoom(*node)) return nullptr;
  std::atomic<Node*>& taken = GetOrMake(chunks_[place / kChunkNodes])[place % kChunkNodes];
  Node* found = nullptr;
  return taken.compare_exchange_strong(found, node.get(), std::memory_order_seq_cst)
             ? node.release()
             : found;
}

const LabelTable::Node* LabelTable::NodeOf(std::uint64_t number) const {
  const std::uint64_t place = number - kFirstNumber;  // wraps
  if (place >= kMaxSets) return nullptr;
  const Chunk* const chunk = chunks_[place / kChunkNodes].load(std::memory_order_seq_cst);
  return chunk == nullptr ? nullptr : (*chunk)[place % kChunkNodes].load(std::memory_order_seq_cst);
}

const LabelSet& LabelTable::operator[](std::uint64_t number) const {
  // Never freed.
  static constinit std::atomic<LabelSet*> none{nullptr};
  static constinit std::atomic<LabelSet*> overflow{nullptr};
  if (number == kNoContext) return GetOrMake(none);
  if (const Node* const node = NodeOf(number); node != nullptr) return node->set;
  if (const Node* const node = TakeFromSource(number); node != nullptr) return node->set;
  return GetOrMake(overflow, std::vector<Label>{{"labels", std::string("[labels over limit]")}});
}

namespace {

// Never destroyed: threads may set labels while the program ends. Not a local variable of the
// function: the C library's lock for such a destructor's registration may be held at a fork.
union ProcessTable {
  constexpr ProcessTable() : table() {}
  ~ProcessTable() {}
  LabelTable table;
};
constinit ProcessTable process_table;
constinit std::atomic<LabelTable* (*)()> labels_of_thread{nullptr};

}  // namespace

LabelTable& ProcessLabels() {
  auto* const of_thread = labels_of_thread.load(std::memory_order_acquire);
  LabelTable* const served = of_thread != nullptr ? of_thread() : nullptr;
  return served != nullptr ? *served : process_table.table;
}

void UseProcessLabels(LabelTable* (*of_thread)()) {
  labels_of_thread.store(of_thread, std::memory_order_release);
}

}  // namespace strobe
