// PerfFields: takes the bytes of a perf.data file apart, from the front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace strobe::internal {

// The word with that index; there must be one.
inline std::uint64_t PerfWord(std::span<const std::byte> words, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, words.data() + index * sizeof(word), sizeof(word));
  return word;
}

// Past the end everything is zero, and ok() is false.
class PerfFields {
 public:
  explicit PerfFields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size(); }

  template <class T>
  T Take() {
    T value{};
    const std::span<const std::byte> taken = TakeBytes(sizeof(T));
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }
  // Empty if there are fewer.
  std::span<const std::byte> TakeBytes(std::uint64_t count) {
    ok_ &= count <= bytes_.size();
    if (!ok_) return {};
    const auto taken = bytes_.first(static_cast<std::size_t>(count));
    bytes_ = bytes_.subspan(static_cast<std::size_t>(count));
    return taken;
  }
  // `count` words of 8 bytes.
  std::span<const std::byte> TakeWords(std::uint64_t count) {
    ok_ &= count <= bytes_.size() / sizeof(std::uint64_t);
    return ok_ ? TakeBytes(count * sizeof(std::uint64_t)) : std::span<const std::byte>();
  }
  // A text in `count` bytes, which ends at the first zero.
  std::string_view TakeText(std::uint64_t count) {
    const std::span<const std::byte> taken = TakeBytes(count);
    const std::string_view text(reinterpret_cast<const char*>(taken.data()), taken.size());
    return text.substr(0, std::min(text.find('\0'), text.size()));
  }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace strobe::internal
