// SampleParts: the rows of a profile, taken apart into the moments that were kept and the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strobe/core/profile.h"

namespace strobe::internal {

// A part of a row: one of its moments, or what its moments leave of it.
struct SamplePart {
  std::uint32_t sample = 0;              // index into Profile::samples
  std::int64_t time_ns = 0;              // since 1970; 0 for a rest
  std::span<const std::int64_t> values;  // one per value type
};

// First the moments, in order of time, and then the rests, in order of their rows. A rest is left
// out if its values are all 0 and its row has moments. The values of a row's parts add up to the
// row's. The profile must have passed ProfileView::Make, and must outlive the parts.
class SampleParts {
 public:
  explicit SampleParts(const Profile& profile);
  SampleParts(const SampleParts&) = delete;
  SampleParts& operator=(const SampleParts&) = delete;

  [[nodiscard]] const std::vector<SamplePart>& parts() const { return parts_; }

 private:
  std::vector<std::int64_t> rests_;  // of all rows; empty without moments
  std::vector<SamplePart> parts_;
};

}  // namespace strobe::internal
