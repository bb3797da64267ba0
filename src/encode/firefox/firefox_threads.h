// What the Firefox Profiler's format shows of each thread: its samples and its markers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "../json_writer.h"
#include "../row_texts.h"
#include "firefox_tables.h"
#include "strobe/core/profile.h"

namespace strobe::internal {

// One row of a thread's samples. Times count from the profile's begin.
struct FirefoxSample {
  std::int64_t time_ns = 0;
  std::int64_t stack = -1;   // -1: idle
  std::int64_t weight = 0;   // of the value type that is shown
  std::int64_t cpu_ns = 0;   // since the last sample
  std::int64_t labels = -1;  // index into Profile::label_sets; -1: unknown
};

// The columns of the profile that a thread's samples have.
struct FirefoxColumns {
  std::size_t weight = 0;
  std::optional<std::size_t> cpu;
};

// The samples of a thread in order of time: see FirefoxEncoder.
std::vector<FirefoxSample> FirefoxSamples(const Profile& profile, const FirefoxTables& tables,
                                          const ThreadParts& thread, const FirefoxColumns& columns);

// Writes an element of "threads". `weight_type` is that of the format.
void WriteFirefoxThread(JsonWriter& json, const Profile& profile, FirefoxTables& tables,
                        const ThreadParts& thread, const std::vector<FirefoxSample>& samples,
                        std::string_view weight_type);
// The value of meta.markerSchema.
void WriteFirefoxMarkerSchemas(JsonWriter& json);

inline constexpr std::string_view kFirefoxMilliseconds = "tracing-ms";  // a weight type

}  // namespace strobe::internal
