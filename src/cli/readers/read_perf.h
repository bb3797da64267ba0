// ReadPerfData: a profile from a recording of `perf record`, whose stacks are unwound here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "perf/perf_stacks.h"
#include "profile/loaded_profile.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

struct PerfOptions {
  const SymbolFiles& files;
  SymbolSearch search{};                          // where else the files of code are
  std::string kernel_symbols = "/proc/kallsyms";  // a file; none if empty
  PerfStacks::FindGenerated find_generated{};     // names of code that is in no file
  std::function<void(std::uint64_t)> progress{};  // called with the bytes read so far
  std::size_t max_memory = 0;                     // 0: the default of memory_limit.h
};

// * Samples with registers and stack are unwound by the frame information of the files. Where a
//   recording has only its own call chains (--call-graph fp or lbr), these are taken.
// * The value types are `samples` and the amounts of each event: of a clock nanoseconds, as `cpu`;
//   of others its periods, by the event's name.
// * Samples that perf has lost are in [lost], with the mean amount of a sample of their event.
// * Frames of code have addresses and modules, but only those of the kernel have names.
// The first of `sources` has the header; others, of a recording by several threads, have records
// alone. InvalidArgument for a file that is broken, ResourceExhausted if it takes too much memory.
absl::StatusOr<LoadedProfile> ReadPerfData(std::span<const ByteSource* const> sources,
                                           const PerfOptions& options);

// The same of the file, or the directory of perf record --threads, at `path`; or of standard input
// for "-", which is read into memory whole. An error begins with the file's name.
absl::StatusOr<LoadedProfile> ReadPerfFile(const std::string& path, const PerfOptions& options);

}  // namespace strobe::internal
