// The samples of the busiest process in a perf.data file, and what it had mapped: for contenders
// that unwind them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "perf/perf_header.h"
#include "perf/perf_records.h"
#include "strobe/platform/native.h"
#include "strobe/process/mapping.h"
#include "strobe/process/perf_registers.h"

namespace strobe::bench {

struct Sample {
  // In DWARF's order.
  std::array<Address, kX86_64GeneralRegisters> general{};
  Address pc = 0;
  std::vector<std::byte> stack;
};

struct Recording {
  std::uint32_t process = 0;
  std::vector<Mapping> mappings;
  std::vector<Sample> samples;
};

inline Sample TakeSample(const internal::PerfEvent& event, const internal::PerfSample& from) {
  const PerfRegisters sampled(Architecture::kX86_64, event.registers, from.registers_kind,
                              from.registers);
  const auto& registers = std::get<X86_64Registers>(sampled.get());
  Sample sample;
  for (std::size_t i = 0; i < sample.general.size(); ++i)
    sample.general[i] = registers.general_register(i);
  sample.pc = registers.pc;
  sample.stack.assign(from.stack.begin(), from.stack.end());
  return sample;
}

// Ends the program if the file cannot be read.
inline Recording ReadRecording(const std::string& path) {
  using namespace internal;  // NOLINT(google-build-using-namespace)
  const std::unique_ptr<FileSource> file = NativePlatform::Files().Open(path);
  PerfHeader header;
  if (file == nullptr || !header.Read(*file).ok()) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  std::map<std::uint32_t, Recording> processes;
  PerfRecordReader reader(*file, header);
  PerfRecord record;
  for (auto more = reader.Next(record); more.ok() && *more; more = reader.Next(record)) {
    if (record.type == PerfRecordType::kMmap || record.type == PerfRecordType::kMmap2) {
      if (auto map = ParseMap(record))
        processes[map->process].mappings.push_back(std::move(map->mapping));
    } else if (record.type == PerfRecordType::kSample) {
      const PerfEvent& event = header.events[EventOf(header, record)];
      PerfSample sample;
      if (ParseSample(event, record.body, sample) && !sample.stack.empty() &&
          sample.registers_kind == PerfRegisters::k64Bit)
        processes[sample.process].samples.push_back(TakeSample(event, sample));
    }
  }
  Recording busiest;
  for (auto& [id, process] : processes) {
    process.process = id;
    if (process.samples.size() > busiest.samples.size()) busiest = std::move(process);
  }
  return busiest;
}

inline void Report(const char* contender, const char* metric, double value, const char* unit) {
  std::printf(
      "{\"question\": \"perf_stacks\", \"contender\": \"%s\", \"metric\": \"%s\", \"value\": %.6g, "
      "\"unit\": \"%s\"}\n",
      contender, metric, value, unit);
}

}  // namespace strobe::bench
