// bench_perf_stacks FILE STACKS: unwinds the samples of a perf.data file by a ProcessTable.
#include <cstdio>

#include "passes.h"
#include "strobe/process/process_table.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const strobe::bench::Recording recording = strobe::bench::ReadRecording(argv[1]);
  if (recording.samples.empty()) return 1;
  strobe::ProcessTable table(strobe::NativePlatform::Files());
  for (const strobe::Mapping& mapping : recording.mappings) table.Map(recording.process, mapping);
  strobe::bench::Report("strobe", "samples", static_cast<double>(recording.samples.size()),
                        "samples");
  strobe::bench::MeasurePasses(
      "strobe", recording, argv[2],
      [&](const strobe::bench::Sample& sample, std::span<strobe::Address> frames) {
        const strobe::X86_64GeneralRegisters general(sample.general.data());
        const strobe::X86_64Registers registers{.pc = sample.pc,
                                                .sp = sample.general[strobe::kX86_64Rsp],
                                                .fp = sample.general[strobe::kX86_64Rbp],
                                                .general = &general};
        return table
            .Unwind(recording.process, {.registers = registers, .stack = sample.stack}, frames)
            .count;
      });
  strobe::bench::Report("strobe", "tables", static_cast<double>(table.stats().table_bytes),
                        "bytes");
  return 0;
}
