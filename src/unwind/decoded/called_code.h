// CalledCode: which registers the code that is called leaves alone.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

#include "arch/frame_instruction.h"
#include "arch/frame_machine.h"
#include "arch/written_registers.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Code for x86-64, which `read` reads.
class CalledCode {
 public:
  // Code that has more is taken to write everything. OpenSSL's longest helper has 600.
  static constexpr std::size_t kMaxInstructions = 4096;

  explicit CalledCode(AnyMemoryReader read) : read_(std::move(read)) {}

  // What the function at `begin` may write, and all that it calls: each of its instructions, on
  // every path. All registers if it cannot be followed.
  RegisterSet WrittenBy(Address begin) { return At(begin).written; }
  // True for a function that calls nothing, and returns: what stands behind its call goes on.
  bool Returns(Address begin) { return At(begin).returns; }
  // What is not known any more behind a call of `target`, or of anything: the registers that it
  // need not give back. Where the caller has no other way to its frame, it may know better of its
  // own functions.
  RegisterSet WrittenByCall(const DecodedFrame& caller, std::optional<Address> target);

 private:
  struct Function {
    RegisterSet written = kAllRegisters;
    bool returns = false;
  };
  const Function& At(Address begin);
  [[nodiscard]] Function Follow(Address begin) const;

  const AnyMemoryReader read_;
  std::unordered_map<Address, Function> known_;
};

// Where a call, a jump or a branch at `at` leads, if it has a target.
Address TargetOf(const FrameInstruction& instruction, Address at);

}  // namespace internal
}  // namespace strobe
