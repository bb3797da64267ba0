// A shared area whose chunks are all open: see SharedArea::OpenChunk.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe::testing {

inline absl::StatusOr<internal::SharedArea> CreateOpenArea(std::uint32_t chunks,
                                                           std::uint32_t chunk_channels,
                                                           std::uint64_t chunk_bytes) {
  absl::StatusOr<internal::SharedArea> area =
      internal::SharedArea::Create(chunks, chunk_channels, chunk_bytes);
  for (std::uint32_t chunk = 0; area.ok() && chunk < chunks; ++chunk)
    EXPECT_TRUE(area->OpenChunk(chunk));
  return area;
}

}  // namespace strobe::testing
