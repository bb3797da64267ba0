// PageTree: the tree of stacks that a page shows, with equal code merged and inlined functions as
// nodes of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {

// Texts, each once, in the order of first use. Text 0 is empty.
class PageTexts {
 public:
  PageTexts() { Index(""); }
  // Invalid bytes and control characters are replaced, and the end of a long text is cut off.
  std::uint32_t Index(std::string_view text);
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::flat_hash_map<std::string, std::uint32_t> indices_;
  std::vector<std::string> texts_;
};

// A function of a page. Texts are indices into PageTexts.
struct PageFunction {
  std::uint32_t name = 0;
  std::uint32_t short_name = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t module = 0;  // index into PageCode::modules; 0 if there is none
  bool is_pseudo = false;
};

// A module of a page: the base name makes it distinct. Module 0 stands for none.
struct PageModule {
  std::uint32_t path = 0;
  std::uint32_t build_id = 0;
};

// A function at a source line: what a node of the tree shows.
struct PageSite {
  std::uint32_t function = 0;  // index into PageCode::functions
  std::uint32_t line = 0;      // 0 if unknown
  bool is_inlined = false;     // into the site of the parent node

  friend bool operator==(const PageSite&, const PageSite&) = default;
  template <class H>
  friend H AbslHashValue(H state, const PageSite& site) {
    return H::combine(std::move(state), site.function, site.line, site.is_inlined);
  }
};

// The functions and sites of all profiles of a page.
class PageCode {
 public:
  explicit PageCode(PageTexts& texts) : texts_(texts), modules_(1) {}

  // The sites of each frame of a profile, from the function that has the frame to the innermost of
  // those inlined there.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> AddFrames(const ProfileView& view);
  // The site of a pseudo-frame that the page itself adds.
  std::uint32_t PseudoSite(std::string_view name);

  [[nodiscard]] const std::vector<PageModule>& modules() const { return modules_; }
  [[nodiscard]] const std::vector<PageFunction>& functions() const { return functions_; }
  [[nodiscard]] const std::vector<PageSite>& sites() const { return sites_; }

 private:
  struct FunctionKey {
    std::uint32_t name, file, module;  // `file` is the base name
    friend bool operator==(const FunctionKey&, const FunctionKey&) = default;
    template <class H>
    friend H AbslHashValue(H state, const FunctionKey& key) {
      return H::combine(std::move(state), key.name, key.file, key.module);
    }
  };
  std::uint32_t ModuleOf(const ProfileView& view, std::uint32_t frame);
  std::uint32_t Function(std::string_view name, std::string_view file, std::uint32_t line,
                         std::uint32_t module, bool is_pseudo);
  std::uint32_t FunctionOf(const ProfileView& view, std::uint32_t frame, std::uint32_t function);
  std::uint32_t Site(const PageSite& site);

  PageTexts& texts_;
  std::vector<PageModule> modules_;
  std::vector<PageFunction> functions_;
  std::vector<PageSite> sites_;
  absl::flat_hash_map<std::uint32_t, std::uint32_t> module_numbers_;  // by base name
  absl::flat_hash_map<FunctionKey, std::uint32_t> function_numbers_;
  absl::flat_hash_map<PageSite, std::uint32_t> site_numbers_;
};

// Nodes are numbered from 0, the root; a parent has a lower number than its children.
class PageTree {
 public:
  // Nodes while the tree is built. A larger tree is refused.
  static constexpr std::size_t kMaxBuiltNodes = std::size_t{1} << 24;

  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t site = 0;
  };

  // The child of `parent` at `site`, which is made if there is none.
  std::uint32_t Child(std::uint32_t parent, std::uint32_t site);
  // Makes room for `count` more nodes.
  void Reserve(std::size_t count) {
    nodes_.reserve(nodes_.size() + count);
    children_.reserve(children_.size() + count);
  }
  [[nodiscard]] bool is_full() const { return nodes_.size() >= kMaxBuiltNodes; }

  // Of each node, whether no caller of it is the same function: of a recursion only the first call
  // is. `functions` has the function of each node but the root.
  [[nodiscard]] std::vector<bool> Outermost(std::span<const std::uint32_t> functions,
                                            std::size_t function_count) const;

  // Keeps the root and the `limit` heaviest nodes. `amounts` has what each node has for itself.
  // Returns for each node the one that takes its place: itself, or a new child at `small_site` of
  // the nearest caller that is kept.
  std::vector<std::uint32_t> Cut(std::size_t limit, std::span<const double> amounts,
                                 std::uint32_t small_site);

  // The nodes that are kept, each before its children, and the children of a node together.
  [[nodiscard]] std::vector<std::uint32_t> Preorder() const;

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }

 private:
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<bool> is_cut_;  // of each node, or empty
  absl::flat_hash_map<std::uint64_t, std::uint32_t> children_;
};

}  // namespace strobe::internal
