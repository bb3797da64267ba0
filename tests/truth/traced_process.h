// A program run under ptrace, one instruction at a time. Linux on x86-64.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "instruction_kind.h"
#include "strobe/base/address.h"
#include "strobe/core/module_map.h"

namespace strobe::testing {

class TracedProcess {
 public:
  enum class Stop {
    kStepped,  // one instruction was executed, or a signal's handler entered
    kSignal,   // a signal is about to be delivered; the next Step delivers it
    kNewProgram,
    kEnded,
    kNotPermitted,  // this system forbids tracing
  };

  TracedProcess() = default;
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;
  ~TracedProcess();

  // Starts the program, stopped before its first instruction.
  Stop Start(const std::vector<std::string>& command);
  Stop Step();
  // How the program ended: an exit status, or 128 and the signal.
  [[nodiscard]] int end_status() const { return end_status_; }

  [[nodiscard]] const user_regs_struct& registers() const { return registers_; }

  // A MemoryReader of the traced process.
  std::size_t Read(Address address, std::span<std::uint8_t> bytes) const;
  [[nodiscard]] Address ReadWord(Address address) const;

  // Of the instruction at the program counter.
  InstructionKind NextInstruction();
  // Mappings have changed: forget the code.
  void ForgetCode() { pages_.clear(); }

  // The executable mappings of ELF images, as a profiler would list them.
  [[nodiscard]] std::vector<Module> Modules() const;
  // The end of the initial thread's stack.
  [[nodiscard]] Address StackEnd() const;

 private:
  static constexpr std::size_t kPageBytes = 4096;
  using Page = std::array<std::uint8_t, kPageBytes>;

  Stop Wait();
  void ReadRegisters();
  std::uint8_t CodeByte(Address address);

  pid_t pid_ = -1;
  int pending_signal_ = 0;
  int end_status_ = 0;
  user_regs_struct registers_{};
  std::unordered_map<Address, Page> pages_;  // by number
  Address last_page_ = ~Address{0};
  const Page* last_bytes_ = nullptr;
};

}  // namespace strobe::testing
