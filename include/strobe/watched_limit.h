// WatchedLimit: a number of the program's own, such as a queue's depth or a latency. When it
// exceeds its limit, a profiler that keeps the last seconds writes them.
//
//   strobe::WatchedLimit depth("queue depth", 1'000);
//   depth.Set(queue.size());
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace strobe {

// Every profiler of the process whose options have keep.last_s notices an excess at its
// next drain of samples, within about a second: see the how-to "what was before". A profiler with a
// worker process does not notice it. Thread-safe.
class WatchedLimit {
 public:
  // `limit` is in the unit of the values.
  WatchedLimit(std::string_view name, std::int64_t limit) : name_(name), limit_(limit) {}
  WatchedLimit(const WatchedLimit&) = delete;
  WatchedLimit& operator=(const WatchedLimit&) = delete;

  // The number is `value` now, as a queue's depth is. An excess counts once, until a value within
  // the limit. Costs a comparison and a load; an excess writes what all share.
  void Set(std::int64_t value) noexcept {
    if ((value > limit_) != is_over_.load(std::memory_order_relaxed)) Change(value);
  }
  // An event had the `value`, as a request has a latency. Each excess counts. Costs a comparison;
  // an excess writes what all share.
  void Note(std::int64_t value) noexcept {
    if (value > limit_) Exceed(value);
  }

 private:
  void Change(std::int64_t value) noexcept;
  void Exceed(std::int64_t value) const noexcept;

  const std::string name_;
  const std::int64_t limit_;
  std::atomic<bool> is_over_{false};  // by the last Set
};

}  // namespace strobe
