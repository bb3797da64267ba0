#include "strobe/aggregate/aggregated_period.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/aggregate/zone_frames.h"
#include "strobe/core/stack.h"
#include "thread_amounts.h"

namespace strobe {
namespace {

using internal::StackTrie;

constexpr std::uint32_t kNone = 0xFFFFFFFF;

// The pseudo-frame that marks a stack's end. A complete stack has none.
constexpr Address PseudoOfEnd(StackEnd end) {
  switch (end) {
    case StackEnd::kTruncated: return static_cast<Address>(PseudoFrame::kTruncated);
    case StackEnd::kNoUnwindInfo: return static_cast<Address>(PseudoFrame::kNoUnwindInfo);
    case StackEnd::kCoroutine: return static_cast<Address>(PseudoFrame::kCoroutine);
    default: return static_cast<Address>(PseudoFrame::kBroken);
  }
}

struct PairHash {
  std::size_t operator()(const std::pair<Address, std::uint32_t>& pair) const {
    return HashPair(pair.first, pair.second);
  }
};

// Merges the tries of the generations into one tree, whose nodes name a module instead of a
// generation. The maps are the standard library's, because an Abseil map is left in a broken state
// if an insertion runs out of memory, and cannot be destroyed safely.
class Conversion {
 public:
  explicit Conversion(const AggregatedPeriod& period) : period_(period) {}

  void Run(Profile& profile) {
    MergeNodes();
    MergeRows();
    if (period_.moments.size() != 0) sampled_ = values_;
    DivideAmounts();
    WriteStacks(profile);
    WriteFramesAndModules(profile);
    WriteThreads(profile);
    WriteSamples(profile);
    WriteMoments(profile);
    profile.stats.sums_cut += sums_cut_;
  }

 private:
  struct MergedRow {
    std::uint32_t node = 0;
    std::uint32_t labels = 0;  // index into label_sets_
  };
  // A distinct set of labels, and the index of the set with only its thread's labels. Amounts are
  // settled per such thread set.
  struct MergedLabels {
    LabelSet set;
    std::uint32_t account = 0;
  };
  // A table of sets by their indices, so that each set is in memory once.
  struct SetHash {
    const std::vector<MergedLabels>* sets;
    std::size_t operator()(std::uint32_t id) const { return absl::HashOf((*sets)[id].set); }
  };
  struct SetsAreEqual {
    const std::vector<MergedLabels>* sets;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      return (*sets)[a].set == (*sets)[b].set;
    }
  };
  // The merged frame's number.
  std::uint32_t InternFrame(Address address, std::uint32_t module) {
    const auto [at, is_new] = frame_ids_.try_emplace(std::pair(address, module),
                                                     static_cast<std::uint32_t>(frames_.size()));
    if (is_new) frames_.push_back({address, module});
    return at->second;
  }

  std::uint32_t FrameOf(std::uint32_t generation, Address address) {
    const auto [at, is_new] = frames_by_address_.try_emplace(std::pair(address, generation), 0);
    if (is_new)
      at->second = InternFrame(
          address, period_.modules.Find(generation, address).value_or(Frame::kNoModule));
    return at->second;
  }

  std::uint32_t MergedChild(std::uint32_t parent, std::uint32_t frame) {
    const auto id = static_cast<std::uint32_t>(nodes_.size());
    if (!may_collide_) {
      nodes_.push_back({parent, frame});
      return id;
    }
    const auto [at, is_new] = node_ids_.try_emplace(std::uint64_t{parent} << 32 | frame, id);
    if (is_new) nodes_.push_back({parent, frame});
    return at->second;
  }

  void MergeNodes() {
    const StackTrie& trie = period_.trie;
    // Within one generation, the nodes of the trie are already distinct.
    std::optional<std::uint32_t> only_generation;
    bool several = false;
    for (std::uint32_t id = 1; id < trie.size(); ++id) {
      if (trie[id].parent != StackTrie::kRoot || StackTrie::IsPseudoKey(trie[id].address)) continue;
      const std::uint32_t generation = StackTrie::GenerationOfKey(trie[id].address);
      several = several || only_generation.value_or(generation) != generation;
      only_generation = generation;
    }
    nodes_.reserve(trie.size());
    nodes_.push_back({0, 0});
    merged_.resize(trie.size());
    std::vector<std::uint32_t> generations(several ? trie.size() : 0);
    for (std::uint32_t id = 1; id < trie.size(); ++id) {
      const StackTrie::Node& node = trie[id];
      if (node.parent == StackTrie::kRoot) {
        if (several) generations[id] = StackTrie::GenerationOfKey(node.address);
        merged_[id] = MergedRoot(node.address);
        continue;
      }
      const std::uint32_t generation =
          several ? generations[id] = generations[node.parent] : only_generation.value_or(0);
      may_collide_ = several;
      merged_[id] = MergedChild(merged_[node.parent], FrameOf(generation, node.address));
    }
  }

  // The node of a stack's root. For example, [broken stack] alone and the root of broken stacks are
  // the same node.
  std::uint32_t MergedRoot(Address key) {
    if (!StackTrie::IsPseudoKey(key) && StackTrie::EndOfKey(key) == StackEnd::kComplete) return 0;
    const Address pseudo = StackTrie::IsPseudoKey(key)
                               ? static_cast<Address>(StackTrie::PseudoOfKey(key))
                               : PseudoOfEnd(StackTrie::EndOfKey(key));
    const auto [at, is_new] =
        pseudo_nodes_.try_emplace(pseudo, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({0, InternFrame(pseudo, Frame::kPseudo)});
    return at->second;
  }

  std::uint32_t InternLabels(LabelSet set, std::uint32_t account) {
    const auto id = static_cast<std::uint32_t>(label_sets_.size());
    label_sets_.push_back({std::move(set), account == kNone ? id : account});
    const auto [at, is_new] = label_set_ids_.insert(id);
    if (!is_new) label_sets_.pop_back();
    return *at;
  }

  std::uint32_t LabelsOfThread(std::uint32_t key) {
    if (thread_labels_[key] == kNone) {
      const ProfileThread& thread = period_.threads[key].thread;
      thread_labels_[key] = InternLabels(ThreadLabels(thread.id, thread.name), kNone);
    }
    return thread_labels_[key];
  }

  std::uint32_t LabelsOfRow(std::uint32_t row) {
    const std::uint32_t labels = period_.rows.labels(row);
    if ((labels & AggregatedPeriod::kContextBit) == 0) return LabelsOfThread(labels);
    const std::size_t index = labels & ~AggregatedPeriod::kContextBit;
    if (context_labels_[index] == kNone) {
      const PeriodContext& row_context = period_.contexts[index];
      const SampleContext& context = row_context.context;
      const std::uint32_t account = LabelsOfThread(row_context.thread);
      LabelSet set = label_sets_[account]
                         .set.Joined(TraceLabels(context.trace))
                         .Joined((*period_.labels)[context.labels()])
                         .Joined((*period_.labels)[context.process_labels()]);
      if (std::ranges::binary_search(period_.slow_spans, context.span()))
        set = LabelSet({{std::string(kSlowLabel), std::string("true")}}).Joined(set);
      context_labels_[index] = InternLabels(std::move(set), account);
    }
    return context_labels_[index];
  }

  void MergeRows() {
    thread_labels_.assign(period_.threads.size(), kNone);
    context_labels_.assign(period_.contexts.size(), kNone);
    const RowTable& rows = period_.rows;
    const std::size_t width = rows.value_count();
    std::unordered_map<std::uint64_t, std::uint32_t> ids;
    ids.reserve(rows.size());
    rows_.reserve(rows.size());
    merged_rows_.reserve(rows.size());
    values_.reserve(rows.size() * width);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const MergedRow merged{merged_[rows.node(row)], LabelsOfRow(row)};
      const auto [at, is_new] = ids.try_emplace(std::uint64_t{merged.node} << 32 | merged.labels,
                                                static_cast<std::uint32_t>(rows_.size()));
      if (is_new) {
        rows_.push_back(merged);
        values_.resize(values_.size() + width);
      }
      merged_rows_.push_back(at->second);
      for (std::size_t i = 0; i < width; ++i) {
        std::int64_t& sum = values_[at->second * width + i];
        sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                        static_cast<std::uint64_t>(rows.value(row, i)));
      }
    }
  }

  [[nodiscard]] std::uint32_t AccountOf(std::size_t row) const {
    return label_sets_[rows_[row].labels].account;
  }

  // By account: a number for the thread's name.
  [[nodiscard]] std::vector<std::uint32_t> PoolsOfAccounts() const {
    std::vector<std::uint32_t> pools(label_sets_.size());
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::size_t key = 0; key < period_.threads.size(); ++key) {
      if (thread_labels_[key] == kNone) continue;
      const auto number = static_cast<std::uint32_t>(numbers.size());
      pools[thread_labels_[key]] =
          numbers.try_emplace(period_.threads[key].thread.name, number).first->second;
    }
    return pools;
  }

  // Divides each thread's residual among its rows, or those like it: see DivideResiduals.
  void DivideAmounts() {
    const std::vector<std::uint32_t> pools = PoolsOfAccounts();
    const auto residual = pseudo_nodes_.find(static_cast<Address>(PseudoFrame::kResidual));
    std::vector<internal::AmountRow> rows(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      rows[row] = {AccountOf(row), pools[AccountOf(row)],
                   residual != pseudo_nodes_.end() && rows_[row].node == residual->second};
    }
    sums_cut_ = internal::DivideResiduals(rows, values_, period_.pooled_below);
  }

  [[nodiscard]] bool IsZero(std::size_t row) const {
    const std::size_t width = period_.rows.value_count();
    for (std::size_t i = 0; i < width; ++i) {
      if (values_[row * width + i] != 0) return false;
    }
    return true;
  }

  // Numbers the nodes that some row needs, parents first.
  void WriteStacks(Profile& profile) {
    std::vector<bool> needed(nodes_.size());
    needed[0] = true;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!IsZero(row)) needed[rows_[row].node] = true;
    }
    for (std::size_t id = nodes_.size() - 1; id > 0; --id) {
      if (needed[id]) needed[nodes_[id].parent] = true;
    }
    profile.stacks.clear();
    new_node_.assign(nodes_.size(), kNone);
    new_frame_.assign(frames_.size(), kNone);
    for (std::size_t id = 0; id < nodes_.size(); ++id) {
      if (!needed[id]) continue;
      new_node_[id] = static_cast<std::uint32_t>(profile.stacks.size());
      StackNode node;
      if (id != 0) {
        std::uint32_t& frame = new_frame_[nodes_[id].frame];
        if (frame == kNone) {
          frame = static_cast<std::uint32_t>(used_frames_.size());
          used_frames_.push_back(nodes_[id].frame);
        }
        node = {new_node_[nodes_[id].parent], frame};
      }
      profile.stacks.push_back(node);
    }
  }

  void WriteFramesAndModules(Profile& profile) {
    const std::vector<Module>& modules = period_.modules.modules();
    std::vector<std::uint32_t> new_module(modules.size(), kNone);
    profile.modules.clear();
    const auto take = [&](std::uint32_t index) {
      if (new_module[index] == kNone) {
        new_module[index] = static_cast<std::uint32_t>(profile.modules.size());
        profile.modules.push_back(modules[index]);
      }
      return new_module[index];
    };
    // The program may lie above its libraries: by the system's choice, or begun by the loader.
    for (const std::uint32_t index : period_.modules.newest()) {
      if (modules[index].kind == ModuleKind::kProgram) take(index);
    }
    for (const std::uint32_t index : period_.modules.newest()) take(index);
    profile.frames.clear();
    profile.frames.reserve(used_frames_.size());
    for (const std::uint32_t id : used_frames_) {
      Frame frame = frames_[id];
      if (frame.module < modules.size()) frame.module = take(frame.module);
      profile.frames.push_back(frame);
    }
  }

  void WriteThreads(Profile& profile) {
    std::vector<bool> has_rows(label_sets_.size());  // by account
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!IsZero(row)) has_rows[AccountOf(row)] = true;
    }
    profile.threads.clear();
    for (std::size_t key = 0; key < period_.threads.size(); ++key) {
      const std::uint32_t account = thread_labels_[key];
      const LifePart* const life = period_.lives.Find(static_cast<std::uint32_t>(key));
      if ((account == kNone || !has_rows[account]) && !period_.threads[key].alive &&
          life == nullptr)
        continue;
      profile.threads.push_back(period_.threads[key].thread);
      if (life != nullptr) SetLife(*life, profile.threads.back());
    }
  }

  void SetLife(const LifePart& life, ProfileThread& thread) const {
    thread.begin_ns = UnixTimeNs(life.begin_ns);
    thread.end_ns = life.end_ns == 0 ? 0 : UnixTimeNs(life.end_ns);
    thread.cpu_ns = life.cpu_ns;
    thread.samples = life.samples;
  }

  void WriteSamples(Profile& profile) {
    const std::size_t width = period_.rows.value_count();
    std::vector<std::uint32_t> new_labels(label_sets_.size(), kNone);
    profile.label_sets.clear();
    profile.samples.clear();
    profile.values.clear();
    new_sample_.assign(rows_.size(), kNone);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (IsZero(row)) continue;
      std::uint32_t& labels = new_labels[rows_[row].labels];
      if (labels == kNone) {
        labels = static_cast<std::uint32_t>(profile.label_sets.size());
        profile.label_sets.push_back(std::move(label_sets_[rows_[row].labels].set));
      }
      new_sample_[row] = static_cast<std::uint32_t>(profile.samples.size());
      profile.samples.push_back({new_node_[rows_[row].node], labels});
      const auto first = values_.begin() + static_cast<std::ptrdiff_t>(row * width);
      profile.values.insert(profile.values.end(), first,
                            first + static_cast<std::ptrdiff_t>(width));
    }
  }

  void WriteMoments(Profile& profile) {
    const MomentTable& moments = period_.moments;
    const std::size_t width = period_.rows.value_count();
    std::vector<std::size_t> order(moments.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return moments.time_ns(i); });
    std::vector<internal::Division> divisions(moments.size() == 0 ? 0 : values_.size());
    for (std::size_t i = 0; i < divisions.size(); ++i) {
      divisions[i] = {.whole = static_cast<std::uint64_t>(values_[i]),
                      .parts = static_cast<std::uint64_t>(sampled_[i])};
    }
    profile.moments.clear();
    profile.moment_values.clear();
    for (const std::size_t moment : order) {
      const std::size_t row = merged_rows_[moments.row(moment)];
      if (new_sample_[row] == kNone) continue;
      profile.moments.push_back({new_sample_[row], UnixTimeNs(moments.time_ns(moment))});
      for (std::size_t i = 0; i < width; ++i)
        profile.moment_values.push_back(divisions[row * width + i].Next(moments.value(moment, i)));
    }
  }

  // Wraps around for the time of a forged record.
  [[nodiscard]] std::int64_t UnixTimeNs(std::int64_t monotonic_ns) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(monotonic_ns) +
                                     static_cast<std::uint64_t>(period_.unix_offset_ns));
  }

  const AggregatedPeriod& period_;
  std::vector<Frame> frames_;  // `module` is an index into the history's modules
  std::unordered_map<std::pair<Address, std::uint32_t>, std::uint32_t, PairHash> frame_ids_;
  std::unordered_map<std::pair<Address, std::uint32_t>, std::uint32_t, PairHash>
      frames_by_address_;  // by (address, generation)
  std::vector<StackNode> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> node_ids_;
  std::unordered_map<Address, std::uint32_t> pseudo_nodes_;
  bool may_collide_ = false;
  std::vector<std::uint32_t> merged_;  // of each trie node
  std::vector<MergedLabels> label_sets_;
  std::unordered_set<std::uint32_t, SetHash, SetsAreEqual> label_set_ids_{
      0, SetHash{&label_sets_}, SetsAreEqual{&label_sets_}};
  std::vector<std::uint32_t> thread_labels_;   // of each thread's key: index into label_sets_
  std::vector<std::uint32_t> context_labels_;  // of each of the period's contexts
  std::vector<std::uint32_t> merged_rows_;     // of each row: index into rows_
  std::vector<MergedRow> rows_;
  std::vector<std::int64_t> values_;
  std::vector<std::int64_t> sampled_;  // the values before DivideAmounts; empty without moments
  std::uint64_t sums_cut_ = 0;
  std::vector<std::uint32_t> new_node_;
  std::vector<std::uint32_t> new_frame_;
  std::vector<std::uint32_t> new_sample_;
  std::vector<std::uint32_t> used_frames_;
};

}  // namespace

void FillProfile(AggregatedPeriod&& period, Profile& profile) {
  Conversion(period).Run(profile);
  if (period.zone_frames) AddZoneFrames(profile);
  const AggregatedPeriod done = std::move(period);
}

}  // namespace strobe
