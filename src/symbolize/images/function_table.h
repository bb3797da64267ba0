// FunctionTable: from an address in an image to the name of the function there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace strobe::internal {

// Limits of the symbols that are read of one file, whatever its format. A larger table counts as
// none.
inline constexpr std::size_t kMaxSymbols = std::size_t{1} << 22;
inline constexpr std::size_t kMaxStringTableBytes = std::size_t{256} << 20;

// The functions of one image, sorted by address.
class FunctionTable {
 public:
  struct Function {
    std::uint64_t address = 0;  // in the file's own virtual addresses
    std::uint64_t end = 0;      // one past its last byte
    std::uint32_t name = 0;     // offset into names
  };

  // Longer names are cut: they are of no use, and a hostile file has thousands of them.
  static constexpr std::size_t kMaxNameBytes = 64 * 1024;

  FunctionTable() = default;
  // In `names`, a zero ends each function's name.
  FunctionTable(std::vector<Function> functions, std::vector<char> names);

  // The name of the function at `address` as the file has it, without a version; empty if there is
  // none. Valid as long as the table.
  [[nodiscard]] std::string_view Find(std::uint64_t address) const;
  // The function at `address`; nullptr if there is none. Valid as long as the table.
  [[nodiscard]] const Function* FindFunction(std::uint64_t address) const;
  // All, sorted by address.
  [[nodiscard]] std::span<const Function> functions() const { return functions_; }
  [[nodiscard]] std::string_view NameOf(const Function& function) const;
  [[nodiscard]] bool empty() const { return functions_.empty(); }
  // True if the image has more functions than are kept.
  [[nodiscard]] bool is_partial() const { return is_partial_; }
  void set_is_partial(bool is_partial) { is_partial_ = is_partial; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + functions_.capacity() * sizeof(Function) + names_.capacity();
  }

 private:
  std::vector<Function> functions_;
  std::vector<char> names_;
  bool is_partial_ = false;
};

}  // namespace strobe::internal
