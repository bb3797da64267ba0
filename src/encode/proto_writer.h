// ProtoWriter: writes the part of protobuf's wire format that the encoders need, into one growing
// buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace strobe::internal {

// A nested message is built in a second writer, which the caller keeps and clears, and then copied
// behind its length. For messages of a hundred bytes this costs less than computing the length
// first. Fields with proto3's default value are left out.
class ProtoWriter {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view bytes() const { return {buffer_.data(), size_}; }
  // Removes the content and keeps the memory.
  void Clear() { size_ = 0; }

  // The content; the writer is empty afterwards.
  [[nodiscard]] std::string Take() {
    buffer_.resize(std::exchange(size_, 0));
    return std::exchange(buffer_, {});
  }

  // A bare varint: an element of a packed field.
  void Varint(std::uint64_t value) {
    Reserve(kMaxVarintBytes);
    size_ = static_cast<std::size_t>(PutVarint(&buffer_[size_], value) - buffer_.data());
  }

  // An integer or bool field. A negative int64 is the varint of its two's complement.
  void Field(std::uint32_t field, std::uint64_t value) {
    if (value != 0) Present(field, value);
  }

  // An integer field of a oneof, which also says that it is there.
  void Present(std::uint32_t field, std::uint64_t value) {
    Varint(field << 3 | kWireVarint);
    Varint(value);
  }

  // A field of type fixed64.
  void Fixed64(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    Varint(field << 3 | kWireFixed64);
    Reserve(sizeof(value));
    for (std::size_t i = 0; i < sizeof(value); ++i)
      buffer_[size_++] = static_cast<char>(value >> (8 * i));
  }

  // A field of type string, bytes or packed, or a message that is never empty.
  void Bytes(std::uint32_t field, std::string_view content) {
    if (!content.empty()) Message(field, content);
  }

  // An element of a repeated field of strings or messages: an empty one counts too.
  void Message(std::uint32_t field, std::string_view content) {
    Reserve(2 * kMaxVarintBytes + content.size());
    char* cursor = PutVarint(&buffer_[size_], field << 3 | kWireBytes);
    cursor = PutVarint(cursor, content.size());
    if (!content.empty()) std::memcpy(cursor, content.data(), content.size());
    size_ = static_cast<std::size_t>(cursor - buffer_.data()) + content.size();
  }

  // Fields that were encoded before.
  void Raw(std::string_view content) {
    Reserve(content.size());
    if (!content.empty()) std::memcpy(&buffer_[size_], content.data(), content.size());
    size_ += content.size();
  }

 private:
  static constexpr std::uint32_t kWireVarint = 0;
  static constexpr std::uint32_t kWireFixed64 = 1;
  static constexpr std::uint32_t kWireBytes = 2;
  static constexpr std::size_t kMaxVarintBytes = 10;
  static constexpr std::size_t kFirstBytes = 256;

  static char* PutVarint(char* cursor, std::uint64_t value) {
    while (value >= 0x80) {
      *cursor++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *cursor++ = static_cast<char>(value);
    return cursor;
  }

  void Reserve(std::size_t bytes) {
    if (buffer_.size() - size_ < bytes) [[unlikely]] {
      buffer_.resize(std::max({kFirstBytes, 2 * buffer_.size(), size_ + bytes}));
    }
  }

  std::string buffer_;    // its size is the capacity in use
  std::size_t size_ = 0;  // bytes written
};

}  // namespace strobe::internal
