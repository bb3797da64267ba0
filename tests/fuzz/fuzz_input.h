// FuzzInput: takes a fuzzer's bytes apart, from the front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace strobe::testing {

// Past the end everything is zero.
class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  template <class T>
  T Take() {
    T value{};
    const auto taken = TakeBytes(sizeof(T));
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  // At most `count` bytes.
  std::span<const std::uint8_t> TakeBytes(std::size_t count) {
    const auto taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::span<const std::uint8_t> TakeRest() { return TakeBytes(bytes_.size()); }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace strobe::testing
