// A reader of DWARF's encodings that cannot leave its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "strobe/base/address.h"

namespace strobe::internal {

// After the first read past the end, ok() is false and every read is 0.
class DwarfReader {
 public:
  DwarfReader() = default;
  // `address` is where bytes[0] lies, for pointers relative to themselves.
  DwarfReader(std::span<const std::uint8_t> bytes, Address address)
      : bytes_(bytes), address_(address) {}

  [[nodiscard]] bool ok() const { return is_ok_; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }
  [[nodiscard]] Address address() const { return address_ + position_; }

  template <class T>
  T Read() {
    T value{};
    if (remaining() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::uint64_t ReadUleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = Read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0 || !is_ok_) return value;
    }
  }

  std::int64_t ReadSleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = Read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0 && is_ok_) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }

  // Up to `count` bytes as a reader of their own.
  DwarfReader Sub(std::uint64_t count) {
    if (count > remaining()) {
      Fail();
      return {};
    }
    DwarfReader sub(bytes_.subspan(position_, static_cast<std::size_t>(count)), address());
    position_ += static_cast<std::size_t>(count);
    return sub;
  }

  void Skip(std::uint64_t count) {
    if (count > remaining()) {
      Fail();
    } else {
      position_ += static_cast<std::size_t>(count);
    }
  }

  // Goes to a position from the start of the bytes.
  void Seek(std::size_t position) {
    if (position > bytes_.size()) {
      Fail();
    } else {
      position_ = position;
    }
  }

  std::span<const std::uint8_t> ReadBytes(std::uint64_t count) { return Sub(count).bytes_; }

  // A pointer in the encoding of .eh_frame (DW_EH_PE_*, Linux Standard Base 5.0, section 10.5).
  // Indirect ones are not followed.
  Address ReadPointer(std::uint8_t encoding, Address data_base = 0) {
    if (encoding == 0xFF) return 0;  // omitted
    const Address here = address();
    Address value = 0;
    switch (encoding & 0x0F) {
      case 0x00:
      case 0x04:
      case 0x0C: value = Read<std::uint64_t>(); break;
      case 0x01: value = ReadUleb(); break;
      case 0x02: value = Read<std::uint16_t>(); break;
      case 0x03: value = Read<std::uint32_t>(); break;
      case 0x09: value = static_cast<Address>(ReadSleb()); break;
      case 0x0A: value = static_cast<Address>(std::int64_t{Read<std::int16_t>()}); break;
      case 0x0B: value = static_cast<Address>(std::int64_t{Read<std::int32_t>()}); break;
      default: Fail(); break;
    }
    if (value == 0) return 0;
    switch (encoding & 0x70) {
      case 0x00: return value;
      case 0x10: return here + value;
      case 0x30: return data_base + value;
      default: Fail(); return 0;
    }
  }

  void Fail() {
    is_ok_ = false;
    position_ = bytes_.size();
  }

 private:
  std::span<const std::uint8_t> bytes_;
  Address address_ = 0;
  std::size_t position_ = 0;
  bool is_ok_ = true;
};

}  // namespace strobe::internal
