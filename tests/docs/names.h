// What the documents' blocks of C++ and C call and do not show: a reader's own program.
#pragma once

#ifdef __cplusplus

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <thread>

#include "strobe/own_parts.h"
#include "strobe/strobe.h"

struct Request {};
void RunYourProgram();
void Work();
void Handle(const Request& request);
inline const Request request;

// Parts of a reader's own.
struct QueueDepthProvider {
  static constexpr std::array<strobe::ValueType, 1> kValueTypes{
      strobe::ValueType{"queued", "job-nanoseconds"}};
  struct ThreadState {};
  explicit QueueDepthProvider(const strobe::SamplingOptions& options);
  [[nodiscard]] bool enabled() const;
  [[nodiscard]] std::int64_t poll_period_ns() const;
  std::int64_t Poll(strobe::SampleTarget& thread, ThreadState& state, std::int64_t now_ns);
};
struct Connection {};
inline Connection connection;
struct MyExporter {
  explicit MyExporter(Connection& connection);
  absl::StatusOr<std::string> Export(const strobe::ExportRequest& request);
};

// The profiler of blocks that do not construct one.
extern strobe::Profiler& profiler;

#else

void serve(void);

#endif
