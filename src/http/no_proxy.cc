#include "no_proxy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"

namespace strobe::internal {
namespace {

using Address = std::vector<std::uint8_t>;  // 4 or 16 bytes, or none

std::optional<unsigned> NumberIn(std::string_view text, int base, std::size_t most_digits,
                                 unsigned most) {
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, base);
  if (text.empty() || text.size() > most_digits || read.ec != std::errc() || read.ptr != end ||
      number > most)
    return std::nullopt;
  return number;
}

// Splits at `between`, which the last part has not behind it.
std::vector<std::string_view> Split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(between);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Address FourBytes(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '.');
  Address address;
  for (const std::string_view part : parts) {
    const std::optional<unsigned> byte = NumberIn(part, 10, 3, 255);
    if (!byte || parts.size() != 4) return {};
    address.push_back(static_cast<std::uint8_t>(*byte));
  }
  return address;
}

// The 16-bit groups of a part of an address; false if it is none.
bool AddGroups(std::string_view text, Address& address) {
  if (text.empty()) return true;
  const std::vector<std::string_view> parts = Split(text, ':');
  for (const std::string_view& part : parts) {
    if (&part == &parts.back() && part.find('.') != std::string_view::npos) {
      const Address last = FourBytes(part);
      address.insert(address.end(), last.begin(), last.end());
      return !last.empty();
    }
    const std::optional<unsigned> group = NumberIn(part, 16, 4, 0xFFFF);
    if (!group) return false;
    address.push_back(static_cast<std::uint8_t>(*group >> 8));
    address.push_back(static_cast<std::uint8_t>(*group & 0xFF));
  }
  return true;
}

Address SixteenBytes(std::string_view text) {
  constexpr std::size_t kBytes = 16;
  const std::size_t gap = text.find("::");
  Address address;
  Address behind;
  if (!AddGroups(text.substr(0, gap), address)) return {};
  if (gap == std::string_view::npos) return address.size() == kBytes ? address : Address();
  if (!AddGroups(text.substr(gap + 2), behind) || address.size() + behind.size() >= kBytes)
    return {};
  address.resize(kBytes - behind.size());
  address.insert(address.end(), behind.begin(), behind.end());
  return address;
}

Address AddressOf(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return text.find(':') == std::string_view::npos ? FourBytes(text) : SixteenBytes(text);
}

bool HasSameBits(const Address& one, const Address& other, unsigned bits) {
  if (one.size() != other.size() || bits > one.size() * 8) return false;
  for (std::size_t i = 0; i < one.size() && i * 8 < bits; ++i) {
    const unsigned left = std::min<unsigned>(8, bits - static_cast<unsigned>(i) * 8);
    if (((one[i] ^ other[i]) & (0xFF00U >> left) & 0xFF) != 0) return false;
  }
  return true;
}

bool IsInNetwork(const Address& host, std::string_view entry) {
  const std::size_t slash = entry.find('/');
  const Address address = AddressOf(entry.substr(0, slash));
  if (address.empty()) return false;
  if (slash == std::string_view::npos) return host == address;
  const std::optional<unsigned> bits = NumberIn(entry.substr(slash + 1), 10, 3, 128);
  return bits && HasSameBits(host, address, *bits);
}

bool IsAtOrBelow(std::string_view host, std::string_view name) {
  if (name.starts_with('.')) name.remove_prefix(1);
  if (name.ends_with('.')) name.remove_suffix(1);
  const absl::string_view own(host.data(), host.size());
  const absl::string_view entry(name.data(), name.size());
  if (entry.empty() || !absl::EndsWithIgnoreCase(own, entry)) return false;
  return own.size() == entry.size() || own[own.size() - entry.size() - 1] == '.';
}

}  // namespace

bool IsWithoutProxy(std::string_view list, std::string_view host) {
  const Address address = AddressOf(host);
  if (address.empty() && host.ends_with('.')) host.remove_suffix(1);
  constexpr std::string_view kBetween = ", \t";
  while (true) {
    list.remove_prefix(std::min(list.find_first_not_of(kBetween), list.size()));
    if (list.empty()) return false;
    const std::string_view entry = list.substr(0, list.find_first_of(kBetween));
    list.remove_prefix(entry.size());
    if (entry == "*" || (address.empty() ? IsAtOrBelow(host, entry) : IsInNetwork(address, entry)))
      return true;
  }
}

}  // namespace strobe::internal
