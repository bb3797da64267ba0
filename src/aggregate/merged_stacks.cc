#include "merged_stacks.h"

namespace strobe::internal {
namespace {

// The pseudo-frame that marks a stack's end. A complete stack has none.
constexpr Address PseudoOfEnd(StackEnd end) {
  switch (end) {
    case StackEnd::kTruncated: return static_cast<Address>(PseudoFrame::kTruncated);
    case StackEnd::kNoUnwindInfo: return static_cast<Address>(PseudoFrame::kNoUnwindInfo);
    case StackEnd::kCoroutine: return static_cast<Address>(PseudoFrame::kCoroutine);
    default: return static_cast<Address>(PseudoFrame::kBroken);
  }
}

}  // namespace

MergedStacks::MergedStacks(const StackTrie& trie, const ModuleHistory& modules)
    : modules_(modules) {
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
      merged_[id] = Root(node.address);
      continue;
    }
    const std::uint32_t generation =
        several ? generations[id] = generations[node.parent] : only_generation.value_or(0);
    may_collide_ = several;
    merged_[id] = Child(merged_[node.parent], FrameOf(generation, node.address));
  }
}

std::optional<std::uint32_t> MergedStacks::FindRoot(PseudoFrame frame) const {
  const auto found = pseudo_nodes_.find(static_cast<Address>(frame));
  return found == pseudo_nodes_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t MergedStacks::InternFrame(Address address, std::uint32_t module) {
  const auto [at, is_new] = frame_ids_.try_emplace(std::pair(address, module),
                                                   static_cast<std::uint32_t>(frames_.size()));
  if (is_new) frames_.push_back({address, module});
  return at->second;
}

std::uint32_t MergedStacks::FrameOf(std::uint32_t generation, Address address) {
  const auto [at, is_new] = frames_by_address_.try_emplace(std::pair(address, generation), 0);
  if (is_new)
    at->second =
        InternFrame(address, modules_.Find(generation, address).value_or(Frame::kNoModule));
  return at->second;
}

std::uint32_t MergedStacks::Child(std::uint32_t parent, std::uint32_t frame) {
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  if (!may_collide_) {
    nodes_.push_back({parent, frame});
    return id;
  }
  const auto [at, is_new] = node_ids_.try_emplace(std::uint64_t{parent} << 32 | frame, id);
  if (is_new) nodes_.push_back({parent, frame});
  return at->second;
}

// The node of a stack's root. For example, [broken stack] alone and the root of broken stacks are
// the same node.
std::uint32_t MergedStacks::Root(Address key) {
  if (!StackTrie::IsPseudoKey(key) && StackTrie::EndOfKey(key) == StackEnd::kComplete) return 0;
  const Address pseudo = StackTrie::IsPseudoKey(key)
                             ? static_cast<Address>(StackTrie::PseudoOfKey(key))
                             : PseudoOfEnd(StackTrie::EndOfKey(key));
  const auto [at, is_new] =
      pseudo_nodes_.try_emplace(pseudo, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({0, InternFrame(pseudo, Frame::kPseudo)});
  return at->second;
}

}  // namespace strobe::internal
