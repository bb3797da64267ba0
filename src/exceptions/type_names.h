// TypeNames: the names of the types that have been thrown.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <typeinfo>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A hash table that only grows, up to a limit. Names stay valid for the life of the process, also
// where the type's library is unloaded. Any thread, without locks. Constant-initialized.
class TypeNames {
 public:
  static constexpr std::size_t kMaxTypes = 512;
  static constexpr std::size_t kMaxMangledBytes = 1024;

  constexpr TypeNames() = default;
  TypeNames(const TypeNames&) = delete;
  TypeNames& operator=(const TypeNames&) = delete;

  // The type's name as it is written in C++. Empty beyond the limits, or if memory runs out.
  // Allocates only for a type that was not seen before.
  std::string_view NameOf(const std::type_info& type) noexcept;

 private:
  struct Node {
    std::string mangled;
    std::string name;
  };
  static constexpr std::size_t kEntries = 2 * kMaxTypes;

  // What the entry has now: a new node, or that of another thread. nullptr beyond the limit.
  const Node* Add(std::atomic<const Node*>& entry, std::string_view mangled) noexcept;

  std::array<std::atomic<const Node*>, kEntries> entries_{};
  std::atomic<std::size_t> count_{0};
};

}  // namespace internal
}  // namespace strobe
