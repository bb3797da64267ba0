// Zones: named regions of a thread's work. A thread's zones are one label, the path of their names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/core/label_set.h"

namespace strobe {

// The label of samples that a thread took in a zone: the names of its zones from the outermost to
// the innermost, with kZoneSeparator between them.
inline constexpr std::string_view kZoneLabel = "zone path";
inline constexpr char kZoneSeparator = ';';

// The most zones of a path. The path of a zone that is nested deeper, or whose path has more than
// LabelSet::kMaxTextBytes, ends in kZonesOverLimit instead of the zone's name.
inline constexpr std::size_t kMaxZones = 16;
inline constexpr std::string_view kZonesOverLimit = "[zones over limit]";

// The name of a zone, with a hash that a literal has from the compiler.
class ZoneName {
 public:
  static constexpr std::size_t kMaxBytes = 64;

  // A literal of 1 to kMaxBytes bytes: another one does not compile. Implicit, so that a zone reads
  // ScopedZone zone("parse").
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval ZoneName(const char* literal) : ZoneName(std::string_view(literal), Checked()) {
    if (text_.empty() || text_.size() > kMaxBytes) AZoneNameHas1To64Bytes();
  }
  // Of a text that outlives the use of the name. A longer name is cut; it ends at a NUL byte.
  static constexpr ZoneName Of(std::string_view text) noexcept {
    text = text.substr(0, kMaxBytes);
    return {text.substr(0, text.find('\0')), Checked()};
  }

  [[nodiscard]] constexpr std::string_view text() const { return text_; }
  [[nodiscard]] constexpr std::uint64_t hash() const { return hash_; }

 private:
  struct Checked {};
  constexpr ZoneName(std::string_view text, Checked /*checked*/) : text_(text) {
    // FNV-1a.
    for (const char byte : text)
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x00000100000001B3;
  }
  // Not constexpr, and never defined: the error message.
  static void AZoneNameHas1To64Bytes();

  std::string_view text_;
  std::uint64_t hash_ = 0xCBF29CE484222325;
};

// The path of the zone `name` in the zones of `outer`, which is a path or empty. It is `outer` if
// that is over the limit already. A separator in the name becomes a ':'.
std::string ZonePath(std::string_view outer, std::string_view name);

// True if the path ends in kZonesOverLimit.
constexpr bool IsOverZoneLimit(std::string_view path) { return path.ends_with(kZonesOverLimit); }

// Calls visit(name, path) for each zone of a path, outermost first, with the path down to the zone.
template <class Visitor>
void VisitZones(std::string_view path, Visitor&& visit) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(kZoneSeparator, begin), path.size());
    visit(path.substr(begin, end - begin), path.substr(0, end));
    begin = end + 1;
  }
}

}  // namespace strobe
