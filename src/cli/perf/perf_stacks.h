// PerfStacks: the stack of a perf sample, in frames of the profile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/jit_dumps.h"
#include "perf_frames.h"
#include "perf_header.h"
#include "perf_records.h"
#include "profile/profile_builder.h"
#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/core/thread_info.h"
#include "strobe/process/process_table.h"

namespace strobe::internal {

class PerfStacks {
 public:
  // Both outlive this.
  PerfStacks(ProfileBuilder& builder, ProcessTable& table) : builder_(builder), table_(table) {}

  // The frames of a sample, leaf first, by their numbers; valid until the next call. `misc` is the
  // record's. Samples with registers and stack are unwound; of others perf's call chain is taken.
  std::span<const std::uint32_t> Of(const PerfEvent& event, const PerfSample& sample,
                                    std::uint16_t misc);
  // Samples of other machines than this one: see PerfHeader.
  void UseArchitecture(std::optional<Architecture> architecture) { architecture_ = architecture; }
  // Samples whose stacks begin and end with the instruction, because 32-bit code is not unwound.
  [[nodiscard]] std::uint64_t stacks_of_32_bit() const { return stacks_of_32_bit_; }
  // The same of a machine whose stacks are not unwound.
  [[nodiscard]] std::uint64_t stacks_of_other_cpus() const { return stacks_of_other_cpus_; }
  [[nodiscard]] PerfFrames& frames() { return frames_; }
  // To be called once, after the last stack. True if a frame is there several times now.
  bool Finish();
  // Names code that a process without a jitdump has generated; empty if it has no name.
  using FindGenerated = std::function<std::string_view(std::uint32_t process, Address address)>;
  void UseGenerated(FindGenerated find) { find_generated_ = std::move(find); }

 private:
  // A sample whose frames are being added.
  struct Source {
    std::uint32_t process = 0;
    std::uint64_t time = 0;  // of CLOCK_MONOTONIC; 0 if it is not known
    std::uint32_t dump = JitDumps::kNone;
  };

  // What the registers and the stack of a sample are good for.
  enum class Unwinding : std::uint8_t { kDone, kNothingThere, kRefused };
  Unwinding Unwind(const PerfEvent& event, const PerfSample& sample);
  void FindProgram(std::uint32_t process);
  std::uint32_t UserFrame(const Source& source, Address address, const ProcessModule* module);
  void AddUserFrames(const PerfEvent& event, const PerfSample& sample,
                     std::span<const Address> addresses);

  ProfileBuilder& builder_;
  ProcessTable& table_;
  PerfFrames frames_{builder_};
  FindGenerated find_generated_;
  JitDumps dumps_;
  bool has_program_ = false;
  std::optional<Architecture> architecture_ = kNativeArchitecture;
  std::uint64_t stacks_of_32_bit_ = 0;
  std::uint64_t stacks_of_other_cpus_ = 0;
  std::vector<std::uint32_t> stack_;
  std::vector<Address> addresses_ = std::vector<Address>(kMaxFramesLimit);
};

}  // namespace strobe::internal
