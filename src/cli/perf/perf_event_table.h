// kPerfEventTable: the events of perf_event_open(2) that have names, and what else they are called.
// The events of -e, their list, and the names in recordings come from it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "perf_header.h"

namespace strobe::internal {

struct KnownPerfEvent {
  std::string_view name;  // perf's
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  std::string_view others{};  // further names, of perf and ddprof, with spaces between them
  std::string_view counts{};  // for people; empty: no samples are taken of it
  bool is_off_cpu = false;    // see PerfEvent
};

// What events of caches are made of.
enum class PerfCache : std::uint8_t { kL1Data, kL1Code, kLast, kDataTlb, kCodeTlb, kBranch, kNode };
constexpr std::uint64_t PerfCacheConfig(PerfCache cache, bool is_store, bool is_miss) {
  constexpr unsigned kUseShift = 8;
  constexpr unsigned kResultShift = 16;
  return static_cast<std::uint64_t>(cache) | std::uint64_t{is_store} << kUseShift |
         std::uint64_t{is_miss} << kResultShift;
}

// Where two rows have the same type and config, the first has the event's name.
inline constexpr auto kPerfEventTable = [] {
  constexpr std::uint32_t kHard = PerfEvent::kHardware;
  constexpr std::uint32_t kSoft = PerfEvent::kSoftware;
  constexpr std::uint32_t kCache = PerfEvent::kCache;
  constexpr auto kLoads = [](PerfCache cache) { return PerfCacheConfig(cache, false, false); };
  constexpr auto kLoadMisses = [](PerfCache cache) { return PerfCacheConfig(cache, false, true); };
  constexpr auto kStores = [](PerfCache cache) { return PerfCacheConfig(cache, true, false); };
  constexpr auto kStoreMisses = [](PerfCache cache) { return PerfCacheConfig(cache, true, true); };
  return std::to_array<KnownPerfEvent>({
      {"task-clock", kSoft, 1, "cpu sCPU", "CPU time of threads"},
      {"cpu-clock", kSoft, 0, "", "CPU time, by a timer of each CPU"},
      {"context-switches", kSoft, 3, "cs sCS", "switches off a CPU"},
      {"off-cpu", kSoft, 3, "", "time from each switch off a CPU until the thread is back", true},
      {"cpu-migrations", kSoft, 4, "migrations sMig", "threads that go to another CPU"},
      {"page-faults", kSoft, 2, "faults sPF",
       "first uses of memory, and uses of what is not there"},
      {"minor-faults", kSoft, 5, "sPFMIN", "page faults that need no disk"},
      {"major-faults", kSoft, 6, "sPFMAJ", "page faults that wait for a disk"},
      {"alignment-faults", kSoft, 7},
      {"emulation-faults", kSoft, 8},
      {"dummy", kSoft, 9},
      {"bpf-output", kSoft, 10},
      {"cgroup-switches", kSoft, 11},
      {"cycles", kHard, 0, "cpu-cycles hCPU", "cycles of a CPU that is busy"},
      {"instructions", kHard, 1, "hINST", "instructions"},
      {"cache-references", kHard, 2, "hCREF", "accesses to the last cache, mostly"},
      {"cache-misses", kHard, 3, "hCMISS", "accesses that the last cache cannot serve, mostly"},
      {"branches", kHard, 4, "branch-instructions hBRANCH", "branches"},
      {"branch-misses", kHard, 5, "hBMISS", "branches that were predicted wrongly"},
      {"bus-cycles", kHard, 6, "hBUS", "cycles of the bus"},
      {"stalled-cycles-frontend", kHard, 7, "idle-cycles-frontend hBSTF",
       "cycles that wait for instructions"},
      {"stalled-cycles-backend", kHard, 8, "idle-cycles-backend hBSTB",
       "cycles that wait for results or memory"},
      {"ref-cycles", kHard, 9, "hREF", "cycles at the CPU's nominal rate"},
      {"L1-dcache-loads", kCache, kLoads(PerfCache::kL1Data), "", "loads"},
      {"L1-dcache-load-misses", kCache, kLoadMisses(PerfCache::kL1Data), "",
       "loads that the first cache cannot serve"},
      {"L1-dcache-stores", kCache, kStores(PerfCache::kL1Data), "", "stores"},
      {"L1-icache-load-misses", kCache, kLoadMisses(PerfCache::kL1Code), "",
       "instructions that the first cache does not have"},
      {"LLC-loads", kCache, kLoads(PerfCache::kLast), "", "loads that reach the last cache"},
      {"LLC-load-misses", kCache, kLoadMisses(PerfCache::kLast), "LLC",
       "loads that the last cache cannot serve"},
      {"LLC-stores", kCache, kStores(PerfCache::kLast), "", "stores that reach the last cache"},
      {"LLC-store-misses", kCache, kStoreMisses(PerfCache::kLast), "",
       "stores that the last cache cannot serve"},
      {"dTLB-loads", kCache, kLoads(PerfCache::kDataTlb), "", "addresses of loads"},
      {"dTLB-load-misses", kCache, kLoadMisses(PerfCache::kDataTlb), "",
       "addresses of loads that are looked up in page tables"},
      {"dTLB-store-misses", kCache, kStoreMisses(PerfCache::kDataTlb), "",
       "addresses of stores that are looked up in page tables"},
      {"iTLB-load-misses", kCache, kLoadMisses(PerfCache::kCodeTlb), "",
       "addresses of instructions that are looked up in page tables"},
      {"branch-loads", kCache, kLoads(PerfCache::kBranch)},
      {"branch-load-misses", kCache, kLoadMisses(PerfCache::kBranch)},
      {"node-loads", kCache, kLoads(PerfCache::kNode), "", "loads from memory"},
      {"node-load-misses", kCache, kLoadMisses(PerfCache::kNode), "",
       "loads from the memory of another node"},
  });
}();

// True if samples may be taken of it.
constexpr bool IsRecordable(const KnownPerfEvent& event) { return !event.counts.empty(); }

// True of events that happen in the kernel alone.
constexpr bool IsOfKernel(std::uint32_t type, std::uint64_t config) {
  constexpr std::uint64_t kContextSwitches = 3;  // of software events
  constexpr std::uint64_t kMigrations = 4;
  return type == PerfEvent::kTracepoint ||
         (type == PerfEvent::kSoftware && (config == kContextSwitches || config == kMigrations));
}

// Calls visit(name) for each name of the event.
template <class Visit>
constexpr void VisitNames(const KnownPerfEvent& event, Visit visit) {
  visit(event.name);
  std::string_view left = event.others;
  while (!left.empty()) {
    const std::size_t end = left.find(' ');
    visit(left.substr(0, end));
    left = end == std::string_view::npos ? std::string_view() : left.substr(end + 1);
  }
}

}  // namespace strobe::internal
