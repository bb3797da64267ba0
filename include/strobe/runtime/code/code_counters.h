// CodeCounters: the part of stats() that tells of the loaded code.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "strobe/base/visibility.h"
#include "strobe/core/stats.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Counts over all sessions. LoadedCode writes, any thread reads.
struct CodeCounters {
  std::atomic<std::uint64_t> refreshes{0};
  std::atomic<std::uint64_t> table_bytes{0};
  std::atomic<std::uint64_t> tables{0};

  // A module whose frame information could not be read; empty if there is none.
  void SetUnread(std::string path) {
    const std::lock_guard lock(mutex_);
    unread_ = std::move(path);
  }

  void AddTo(Stats& stats) const {
    stats.module_refreshes += refreshes.load(std::memory_order_relaxed);
    stats.memory_bytes += table_bytes.load(std::memory_order_relaxed);
    stats.unwind_tables += tables.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    stats.unread_module = unread_;
  }

 private:
  mutable std::mutex mutex_;
  std::string unread_;
};

}  // namespace internal
}  // namespace strobe
