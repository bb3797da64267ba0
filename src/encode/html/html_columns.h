// ColumnWriter: the numbers and texts of a page as bytes, in the form that compresses best and that
// a script reads fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace strobe::internal {

// A column is a list of numbers from 0 to 2^64 - 1: varint(count), varint(width),
// varint(divisor), then `width` planes of `count` bytes: the lowest byte of each number over
// the divisor, then the second byte of each, and so on. Planes keep bytes of the same kind
// together, and cost deflate less than varints do.
//
// Texts are varint(count), varint(bytes), and the texts, which contain no zero byte, with a zero
// byte between each two.
class ColumnWriter {
 public:
  void Column(std::span<const std::uint64_t> values) {
    std::uint64_t divisor = 0, largest = 0;
    for (const std::uint64_t value : values) {
      if (divisor != 1) divisor = std::gcd(divisor, value);
      if (value > largest) largest = value;
    }
    if (divisor == 0) divisor = 1;
    largest /= divisor;
    std::size_t width = 0;
    for (std::uint64_t rest = largest; rest != 0; rest >>= 8) ++width;
    Varint(values.size());
    Varint(width);
    Varint(divisor);
    for (std::size_t plane = 0; plane < width; ++plane) {
      const std::size_t begin = bytes_.size();
      bytes_.resize(begin + values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        bytes_[begin + i] = static_cast<char>(values[i] / divisor >> (8 * plane) & 0xFF);
    }
  }

  void Texts(std::span<const std::string> texts) {
    std::size_t size = texts.empty() ? 0 : texts.size() - 1;
    for (const std::string& text : texts) size += text.size();
    Varint(texts.size());
    Varint(size);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i != 0) bytes_.push_back('\0');
      bytes_ += texts[i];
    }
  }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void Varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace strobe::internal
