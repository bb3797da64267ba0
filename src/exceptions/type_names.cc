#include "type_names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "absl/hash/hash.h"
#include "strobe/base/memory_guard.h"

namespace strobe::internal {
namespace {

std::string Demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return name == nullptr ? mangled : std::string(name.get());
}

}  // namespace

std::string_view TypeNames::NameOf(const std::type_info& type) noexcept {
  const std::string_view mangled = type.name();
  if (mangled.size() > kMaxMangledBytes) return {};
  const std::size_t home = absl::HashOf(mangled);
  for (std::size_t i = 0; i < kEntries; ++i) {
    std::atomic<const Node*>& entry = entries_[(home + i) % kEntries];
    const Node* node = entry.load(std::memory_order_acquire);
    if (node == nullptr) node = Add(entry, mangled);
    if (node == nullptr) return {};
    if (node->mangled == mangled) return node->name;
  }
  return {};
}

const TypeNames::Node* TypeNames::Add(std::atomic<const Node*>& entry,
                                      std::string_view mangled) noexcept {
  const Node* found = nullptr;
  bool is_added = false;
  if (count_.fetch_add(1, std::memory_order_relaxed) < kMaxTypes) {
    static_cast<void>(HasMemoryFor([&] {
      auto node = std::make_unique<Node>();
      node->mangled = mangled;
      node->name = Demangled(node->mangled);
      is_added = entry.compare_exchange_strong(found, node.get(), std::memory_order_acq_rel);
      if (is_added) found = node.release();
    }));
  }
  if (!is_added) count_.fetch_sub(1, std::memory_order_relaxed);
  return found;
}

}  // namespace strobe::internal
