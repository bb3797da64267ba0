#include "section_bytes.h"

#include <algorithm>
#include <cstring>

namespace strobe::internal {

std::span<const std::uint8_t> SectionBytes::At(std::uint64_t position) {
  if (position >= size_) return {};
  const std::uint64_t begin = position / kMaxAtOnce * kMaxAtOnce;
  Window* window = windows_.data();
  for (Window& candidate : windows_) {
    if (!candidate.bytes.empty() && candidate.position == begin) {
      window = &candidate;
      break;
    }
    if (candidate.last_use < window->last_use) window = &candidate;
  }
  if (window->bytes.empty() || window->position != begin) {
    window->position = begin;
    if (!Read(begin, std::min<std::uint64_t>(2 * kMaxAtOnce, size_ - begin), window->bytes)) {
      window->bytes.clear();
      return {};
    }
  }
  window->last_use = ++uses_;
  return std::span(window->bytes).subspan(static_cast<std::size_t>(position - begin));
}

bool SectionBytes::Read(std::uint64_t position, std::uint64_t count,
                        std::vector<std::uint8_t>& bytes) const {
  if (source_ == nullptr || position > size_ || count > size_ - position) return false;
  bytes.resize(static_cast<std::size_t>(count));
  return source_->ReadAt(offset_ + position, std::as_writable_bytes(std::span(bytes)));
}

std::string_view SectionBytes::TextAt(std::uint64_t position) {
  const std::span<const std::uint8_t> bytes = At(position);
  if (bytes.empty()) return {};
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, std::min(bytes.size(), kMaxAtOnce))};
}

}  // namespace strobe::internal
