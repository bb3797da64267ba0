// ProtoReader: reads protobuf's wire format, field by field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strobe::internal {

// After the last field, or an error, Next returns false; ok() tells which.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  bool Next() {
    const std::string_view before = rest_;
    if (rest_.empty() || !ok_) return false;
    std::uint64_t key = 0;
    if (!Varint(key)) return false;
    if (key > kMaxKey) return ok_ = false;
    field_ = static_cast<std::uint32_t>(key >> 3);
    number_ = 0;
    content_ = {};
    is_bytes_ = (key & 7) == 2;
    switch (key & 7) {
      case 0: ok_ = Varint(number_); break;
      case 1: ok_ = Skip(8); break;
      case 2: ok_ = Varint(number_) && Skip(number_); break;
      case 5: ok_ = Skip(4); break;
      default: ok_ = false;
    }
    raw_ = before.substr(0, before.size() - rest_.size());
    return ok_;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::uint32_t field() const { return field_; }
  // A varint's value.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  // The bytes of a text, a message or a packed field.
  [[nodiscard]] std::string_view content() const { return content_; }
  [[nodiscard]] bool is_bytes() const { return is_bytes_; }
  // The field with its key.
  [[nodiscard]] std::string_view raw() const { return raw_; }

  // Takes one varint: of a packed field's content.
  bool Varint(std::uint64_t& value) {
    if (!rest_.empty() && static_cast<unsigned char>(rest_[0]) < 0x80) [[likely]] {
      value = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      return true;
    }
    return LongVarint(value);
  }
  // What has not been read.
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }

 private:
  // Numbers of fields have 29 bits. A larger one must not be taken for another.
  static constexpr std::uint64_t kMaxKey = 0xFFFFFFFF;

  bool LongVarint(std::uint64_t& value) {
    value = 0;
    for (std::size_t i = 0; i < rest_.size() && i < 10; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(rest_[i]) & 0x7Fu} << (7 * i);
      if ((static_cast<unsigned char>(rest_[i]) & 0x80) != 0) continue;
      rest_.remove_prefix(i + 1);
      return true;
    }
    ok_ = false;
    return false;
  }
  bool Skip(std::uint64_t bytes) {
    if (bytes > rest_.size()) return false;
    content_ = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
  std::uint32_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view content_;
  bool is_bytes_ = false;
  std::string_view raw_;
};

// Appends the numbers of a repeated field: packed, or one.
template <class Numbers>
bool AppendNumbers(const ProtoReader& reader, Numbers& numbers) {
  using Number = typename Numbers::value_type;
  if (!reader.is_bytes()) {
    numbers.push_back(static_cast<Number>(reader.number()));
    return true;
  }
  ProtoReader packed(reader.content());
  while (!packed.AtEnd()) {
    std::uint64_t number = 0;
    if (!packed.Varint(number)) return false;
    numbers.push_back(static_cast<Number>(number));
  }
  return true;
}

}  // namespace strobe::internal
