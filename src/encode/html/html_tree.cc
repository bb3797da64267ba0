#include "html_tree.h"

#include <algorithm>

#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/html_encoder.h"
#include "strobe/encode/short_name.h"

namespace strobe::internal {
namespace {

std::string_view BaseName(std::string_view path) {
  return path.substr(path.find_last_of("/\\") + 1);
}

}  // namespace

std::uint32_t PageTexts::Index(std::string_view text) {
  const auto next = static_cast<std::uint32_t>(texts_.size());
  const auto [entry, is_new] =
      indices_.try_emplace(SanitizedText(text, HtmlEncoder::kMaxTextBytes), next);
  if (is_new) texts_.push_back(entry->first);
  return entry->second;
}

std::uint32_t PageCode::ModuleOf(const ProfileView& view, std::uint32_t frame) {
  const std::uint32_t index = view.ModuleOf(frame);
  if (index == ProfileView::kNone) return 0;
  const Module& module = view.profile().modules[index];
  const bool is_path = module.has_file();
  const std::uint32_t name =
      texts_.Index(is_path ? BaseName(module.path) : std::string_view(module.path));
  const auto next = static_cast<std::uint32_t>(modules_.size());
  const auto [entry, is_new] = module_numbers_.try_emplace(name, next);
  if (is_new) modules_.push_back({texts_.Index(module.path), texts_.Index(module.build_id)});
  return entry->second;
}

std::uint32_t PageCode::Function(std::string_view name, std::string_view file, std::uint32_t line,
                                 std::uint32_t module, bool is_pseudo) {
  const FunctionKey key{texts_.Index(name), texts_.Index(BaseName(file)), module};
  const auto next = static_cast<std::uint32_t>(functions_.size());
  const auto [entry, is_new] = function_numbers_.try_emplace(key, next);
  if (is_new) {
    const std::uint32_t short_name = is_pseudo ? key.name : texts_.Index(ShortFunctionName(name));
    functions_.push_back({key.name, short_name, texts_.Index(file), line, module, is_pseudo});
  }
  return entry->second;
}

std::uint32_t PageCode::FunctionOf(const ProfileView& view, std::uint32_t frame,
                                   std::uint32_t function) {
  const std::uint32_t module = ModuleOf(view, frame);
  if (function == ProfileView::kNone) return Function(view.FrameText(frame), "", 0, module, false);
  const FunctionName& name = view.function(function);
  return Function(name.name, name.file, name.line, module,
                  view.profile().frames[frame].is_pseudo());
}

std::uint32_t PageCode::Site(const PageSite& site) {
  const auto next = static_cast<std::uint32_t>(sites_.size());
  const auto [entry, is_new] = site_numbers_.try_emplace(site, next);
  if (is_new) sites_.push_back(site);
  return entry->second;
}

std::vector<std::vector<std::uint32_t>> PageCode::AddFrames(const ProfileView& view) {
  std::vector<std::vector<std::uint32_t>> result(view.profile().frames.size());
  for (std::uint32_t frame = 0; frame < result.size(); ++frame) {
    const SourceLine outer = view.LineOf(frame);
    std::vector<std::uint32_t>& sites = result[frame];
    sites.push_back(Site({FunctionOf(view, frame, outer.function), outer.line, false}));
    const std::span<const SourceLine> inlined = view.InlinedAt(frame);
    const std::size_t count = std::min(inlined.size(), HtmlEncoder::kMaxInlined);
    for (std::size_t i = 0; i < count; ++i) {
      const SourceLine& inner = inlined[inlined.size() - 1 - i];
      sites.push_back(Site({FunctionOf(view, frame, inner.function), inner.line, true}));
    }
  }
  return result;
}

std::uint32_t PageCode::PseudoSite(std::string_view name) {
  return Site({Function(name, "", 0, 0, true), 0, false});
}

std::uint32_t PageTree::Child(std::uint32_t parent, std::uint32_t site) {
  const auto next = static_cast<std::uint32_t>(nodes_.size());
  const auto [entry, is_new] = children_.try_emplace(std::uint64_t{parent} << 32 | site, next);
  if (is_new) nodes_.push_back({parent, site});
  return entry->second;
}

std::vector<bool> PageTree::Outermost(std::span<const std::uint32_t> functions,
                                      std::size_t function_count) const {
  std::vector<bool> is_outermost(nodes_.size()), is_open(function_count);
  std::vector<std::uint32_t> path = {0};
  for (const std::uint32_t node : Preorder()) {
    if (node == 0) continue;
    for (; path.back() != nodes_[node].parent; path.pop_back())
      if (is_outermost[path.back()]) is_open[functions[path.back()]] = false;
    is_outermost[node] = !is_open[functions[node]];
    is_open[functions[node]] = true;
    path.push_back(node);
  }
  return is_outermost;
}

std::vector<std::uint32_t> PageTree::Cut(std::size_t limit, std::span<const double> amounts,
                                         std::uint32_t small_site) {
  const std::size_t count = nodes_.size();
  std::vector<std::uint32_t> places(count);
  for (std::uint32_t i = 0; i < count; ++i) places[i] = i;
  if (count - 1 <= limit) return places;
  std::vector<double> totals(amounts.begin(), amounts.end());
  for (std::size_t i = count - 1; i > 0; --i) totals[nodes_[i].parent] += totals[i];
  // A parent is at least as heavy as its children, and has a lower number: what is kept is a tree.
  const auto is_heavier = [&totals](std::uint32_t a, std::uint32_t b) {
    return totals[a] != totals[b] ? totals[a] > totals[b] : a < b;
  };
  std::vector<std::uint32_t> order(places.begin() + 1, places.end());
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(limit);
  std::nth_element(order.begin(), end, order.end(), is_heavier);
  is_cut_.assign(count, false);
  for (auto node = end; node != order.end(); ++node) is_cut_[*node] = true;
  for (std::uint32_t i = 1; i < count; ++i) {
    if (!is_cut_[i]) continue;
    const std::uint32_t parent = nodes_[i].parent;
    places[i] = is_cut_[parent] ? places[parent] : Child(parent, small_site);
    // The profile itself may have such a child, as light as those that it takes the place of.
    if (places[i] < count) is_cut_[places[i]] = false;
  }
  is_cut_.resize(nodes_.size(), false);
  return places;
}

std::vector<std::uint32_t> PageTree::Preorder() const {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::vector<std::uint32_t> first_child(nodes_.size(), kNone), next_sibling(nodes_.size(), kNone);
  for (std::size_t i = nodes_.size(); i-- > 1;) {
    if (!is_cut_.empty() && is_cut_[i]) continue;
    next_sibling[i] = std::exchange(first_child[nodes_[i].parent], static_cast<std::uint32_t>(i));
  }
  std::vector<std::uint32_t> order, open = {0};
  order.reserve(nodes_.size());
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    order.push_back(node);
    if (node != 0 && next_sibling[node] != kNone) open.push_back(next_sibling[node]);
    if (first_child[node] != kNone) open.push_back(first_child[node]);
  }
  return order;
}

}  // namespace strobe::internal
