// EndedExports: the export workers of sessions that have ended.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/drain/collector_counters.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The most exporters that Stop has left behind and that still hang. Start fails if there are as
// many.
inline constexpr std::size_t kMaxAbandonedExporters = 4;

// Adds the counters of `more` that an OutputThreads keeps.
void AddExports(Stats& stats, const Stats& more);
template <class Worker>
void AddExportsOf(const Worker& worker, Stats& stats) {
  Stats exports;
  worker.AddTo(exports);
  AddExports(stats, exports);
}

// Keeps each worker while it hangs, and its account for good. Not thread-safe.
template <class Worker>
class EndedExports {
 public:
  explicit EndedExports(CollectorCounters& counters) : counters_(counters) {}

  // Makes room for another worker; ResourceExhausted if too many hang.
  absl::Status MakeRoom() {
    Settle();
    if (workers_.size() >= kMaxAbandonedExporters)
      return absl::ResourceExhaustedError("exporters of earlier sessions still hang");
    workers_.reserve(kMaxAbandonedExporters);
    return absl::OkStatus();
  }
  // Adds a worker whose End has been called. There must be room. Allocates no memory.
  void Add(std::shared_ptr<Worker> worker) {
    workers_.push_back(std::move(worker));
    Settle();
  }

  void AddTo(Stats& stats) const {
    AddExports(stats, settled_);
    for (const auto& worker : workers_) AddExportsOf(*worker, stats);
  }

 private:
  // Moves the accounts of ended workers to settled_. If memory runs out, the worker is kept like
  // one that hangs.
  void Settle() {
    std::erase_if(workers_, [this](const auto& worker) {
      return worker->HasEnded() && counters_.HasMemoryFor([&] {
        Stats sum = settled_;
        AddExportsOf(*worker, sum);
        settled_ = std::move(sum);
      });
    });
  }

  CollectorCounters& counters_;
  std::vector<std::shared_ptr<Worker>> workers_;
  Stats settled_;  // of the workers that are gone
};

}  // namespace internal
}  // namespace strobe
