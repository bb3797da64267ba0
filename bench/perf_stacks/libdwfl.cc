// bench_perf_stacks_libdwfl FILE STACKS: the same by elfutils' libdwfl, attached to the process
// once.
#include <elfutils/libdwfl.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "passes.h"

namespace {

using strobe::Address;
using strobe::bench::Recording;
using strobe::bench::Sample;

struct Walk {
  const Sample* sample = nullptr;
  std::span<Address> frames;
  std::size_t count = 0;
};

pid_t NextThread(Dwfl* dwfl, void* argument, void** thread) {
  if (*thread != nullptr) return 0;
  *thread = argument;
  return dwfl_pid(dwfl);
}

bool ReadStack(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* argument) {
  const Sample& sample = *static_cast<Walk*>(argument)->sample;
  const Address offset = address - sample.general[strobe::kX86_64Rsp];
  if (offset > sample.stack.size() || sample.stack.size() - offset < sizeof(*word)) return false;
  std::memcpy(word, sample.stack.data() + offset, sizeof(*word));
  return true;
}

bool SetRegisters(Dwfl_Thread* thread, void* argument) {
  const Sample& sample = *static_cast<Walk*>(argument)->sample;
  Dwarf_Word words[strobe::kX86_64GeneralRegisters + 1];
  std::copy(sample.general.begin(), sample.general.end(), words);
  words[strobe::kX86_64Rip] = sample.pc;
  return dwfl_thread_state_registers(thread, 0, strobe::kX86_64GeneralRegisters + 1, words);
}

int TakeFrame(Dwfl_Frame* frame, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  Dwarf_Addr pc = 0;
  bool is_exact = false;
  if (!dwfl_frame_pc(frame, &pc, &is_exact) || walk.count == walk.frames.size())
    return DWARF_CB_ABORT;
  walk.frames[walk.count++] = pc - (is_exact ? 0 : 1);
  return DWARF_CB_OK;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const Recording recording = strobe::bench::ReadRecording(argv[1]);
  if (recording.samples.empty()) return 1;
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                           .find_debuginfo = dwfl_standard_find_debuginfo,
                                           .section_address = dwfl_offline_section_address,
                                           .debuginfo_path = &debug_path};
  static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = NextThread,
                                                         .get_thread = nullptr,
                                                         .memory_read = ReadStack,
                                                         .set_initial_registers = SetRegisters,
                                                         .detach = nullptr,
                                                         .thread_detach = nullptr};
  Dwfl* const dwfl = dwfl_begin(&callbacks);
  std::set<std::string> reported;
  for (const strobe::Mapping& mapping : recording.mappings) {
    if (mapping.path.starts_with('/') && reported.insert(mapping.path).second)
      dwfl_report_elf(dwfl, mapping.path.c_str(), mapping.path.c_str(), -1,
                      mapping.start - mapping.file_offset, false);
  }
  dwfl_report_end(dwfl, nullptr, nullptr);
  Walk walk;
  const auto process = static_cast<pid_t>(recording.process);
  if (!dwfl_attach_state(dwfl, nullptr, process, &thread_callbacks, &walk)) {
    std::fprintf(stderr, "skipped: libdwfl (%s)\n", dwfl_errmsg(-1));
    return 0;
  }
  strobe::bench::MeasurePasses("libdwfl", recording, argv[2],
                               [&](const Sample& sample, std::span<Address> frames) {
                                 walk = {&sample, frames, 0};
                                 dwfl_getthread_frames(dwfl, process, TakeFrame, &walk);
                                 return walk.count;
                               });
  dwfl_end(dwfl);
  return 0;
}
