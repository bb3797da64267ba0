// The contract of an encoder: Profile -> bytes of a format.
#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"

namespace strobe {

// The file suffixes of all encoders of this library; a new encoder adds its own. When old files are
// removed, a file with any of these suffixes counts as a profile, whichever encoder the program
// uses now.
inline constexpr std::array<std::string_view, 7> kProfileFileSuffixes{
    ".pb.gz", ".folded", ".speedscope.json", ".firefox.json.gz", ".otlp", ".html", ".svg"};

// * Encode(profile, symbols) is pure and deterministic: equal input gives equal bytes, on any
//   machine, where the same library compresses them. It accepts every Profile whose indices are in
//   range, also an empty one, and Symbols without frames. The bytes are never empty.
// * kFileSuffix is the format's usual end of a file name (".pb.gz"), kContentType its media type.
// Called on the exporter's thread; errors are statuses. Made by its default constructor, unless
// Parts has one.
template <class E>
concept Encoder = requires(E& encoder, const Profile& profile, const Symbols& symbols) {
  { encoder.Encode(profile, symbols) } -> std::same_as<absl::StatusOr<std::string>>;
  { E::kFileSuffix } -> std::convertible_to<std::string_view>;
  { E::kContentType } -> std::convertible_to<std::string_view>;
};

}  // namespace strobe
