// CfiMachine: runs DWARF's call frame instructions (DWARF 5, section 6.4; the encoding of .eh_frame
// is that of the Linux Standard Base).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cfi_state.h"
#include "dwarf_reader.h"

namespace strobe::internal {

class CfiMachine {
 public:
  CfiMachine(const CfiEntry& entry, const DwarfRegisters& registers)
      : entry_(entry), registers_(registers), state_(entry.initial) {}

  [[nodiscard]] const CfiState& state() const { return state_; }

  // Runs `program`; calls row(location, state) for each stretch of code, before the location moves
  // on and at the end. False if the instructions are broken; the rows so far are valid.
  template <class Row>
  bool Run(DwarfReader program, Address location, Row&& row) {
    while (program.ok() && program.remaining() > 0) {
      const auto instruction = program.Read<std::uint8_t>();
      const Address next = AdvanceOf(instruction, program, location);
      if (next != location) {
        row(location, state_);
        location = next;
      } else if (!Execute(instruction, program)) {
        return false;
      }
    }
    if (program.ok()) row(location, state_);
    return program.ok();
  }

 private:
  // Nesting of remembered states; real code has one or two.
  static constexpr std::size_t kMaxRemembered = 64;

  // The new location if the instruction moves it, otherwise `location`.
  [[nodiscard]] Address AdvanceOf(std::uint8_t instruction, DwarfReader& program,
                                  Address location) const {
    if ((instruction & 0xC0) == 0x40)
      return location + (instruction & 0x3F) * entry_.code_alignment;
    switch (instruction) {
      case 0x01: return program.ReadPointer(entry_.pointer_encoding);
      case 0x02: return location + program.Read<std::uint8_t>() * entry_.code_alignment;
      case 0x03: return location + program.Read<std::uint16_t>() * entry_.code_alignment;
      case 0x04: return location + program.Read<std::uint32_t>() * entry_.code_alignment;
      default: return location;
    }
  }

  void Set(std::uint64_t number, CfiValue value) {
    if (number == registers_.fp) state_.fp = value;
    if (number == entry_.return_register) state_.ra = value;
    if (number == registers_.special) state_.special = value;
    if (number == registers_.lr) state_.lr = value;
  }
  // No rule holds an offset of more than 32 bits. The largest number stands for all of those, so
  // that no product overflows.
  [[nodiscard]] std::int64_t Scaled(std::int64_t factored) const {
    const auto is_small = [](std::int64_t value) {
      return value == static_cast<std::int32_t>(value);
    };
    const bool fits = is_small(factored) && is_small(entry_.data_alignment);
    return fits ? factored * entry_.data_alignment : std::numeric_limits<std::int64_t>::max();
  }
  void SetOffset(std::uint64_t number, std::int64_t factored) {
    Set(number, {.kind = CfiValue::Kind::kOffset, .number = Scaled(factored), .expression = {}});
  }
  void SetKind(std::uint64_t number, CfiValue::Kind kind) {
    Set(number, {.kind = kind, .number = 0, .expression = {}});
  }
  void Restore(std::uint64_t number) {
    if (number == registers_.fp) state_.fp = entry_.initial.fp;
    if (number == entry_.return_register) state_.ra = entry_.initial.ra;
    if (number == registers_.special) state_.special = entry_.initial.special;
    if (number == registers_.lr) state_.lr = entry_.initial.lr;
  }
  void SetCfa(std::uint64_t number, std::int64_t offset) {
    state_.cfa_is_expression = false;
    state_.cfa_register = number;
    state_.cfa_offset = offset;
  }

  static std::span<const std::uint8_t> ReadBlock(DwarfReader& program) {
    return program.ReadBytes(program.ReadUleb());
  }

  bool Execute(std::uint8_t instruction, DwarfReader& program) {
    const std::uint8_t operand = instruction & 0x3F;
    if ((instruction & 0xC0) == 0x40) return true;  // an advance by nothing
    if ((instruction & 0xC0) == 0x80) {
      SetOffset(operand, static_cast<std::int64_t>(program.ReadUleb()));
      return true;
    }
    if ((instruction & 0xC0) == 0xC0) {
      Restore(operand);
      return true;
    }
    return instruction >= 0x0A && instruction != 0x10 && instruction != 0x11
               ? ExecuteCfa(instruction, program)
               : ExecuteRegister(instruction, program);
  }

  // Rules of registers.
  bool ExecuteRegister(std::uint8_t instruction, DwarfReader& program) {
    if (instruction == 0x00 || (instruction >= 0x01 && instruction <= 0x04))
      return true;  // nothing, or an advance by nothing
    const std::uint64_t number = program.ReadUleb();
    switch (instruction) {
      case 0x05: SetOffset(number, static_cast<std::int64_t>(program.ReadUleb())); return true;
      case 0x06: Restore(number); return true;
      case 0x07: SetKind(number, CfiValue::Kind::kUndefined); return true;
      case 0x08: SetKind(number, CfiValue::Kind::kSame); return true;
      case 0x09:
        Set(number, {.kind = CfiValue::Kind::kRegister,
                     .number = static_cast<std::int64_t>(program.ReadUleb()),
                     .expression = {}});
        return true;
      case 0x10:
        Set(number,
            {.kind = CfiValue::Kind::kExpression, .number = 0, .expression = ReadBlock(program)});
        return true;
      case 0x11: SetOffset(number, program.ReadSleb()); return true;
      default: return false;
    }
  }

  // Rules of the CFA and remembered states.
  bool ExecuteCfa(std::uint8_t instruction, DwarfReader& program) {
    switch (instruction) {
      case 0x0A:
        if (remembered_.size() == kMaxRemembered) return false;
        remembered_.push_back(state_);
        return true;
      case 0x0B:
        if (remembered_.empty()) return false;
        state_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x0C: {
        const std::uint64_t number = program.ReadUleb();
        SetCfa(number, static_cast<std::int64_t>(program.ReadUleb()));
        return true;
      }
      case 0x0D: SetCfa(program.ReadUleb(), state_.cfa_offset); return true;
      case 0x0E:
        SetCfa(state_.cfa_register, static_cast<std::int64_t>(program.ReadUleb()));
        return true;
      case 0x0F:
        state_.cfa_is_expression = true;
        state_.cfa_expression = ReadBlock(program);
        return true;
      case 0x12: {
        const std::uint64_t number = program.ReadUleb();
        SetCfa(number, Scaled(program.ReadSleb()));
        return true;
      }
      case 0x13: SetCfa(state_.cfa_register, Scaled(program.ReadSleb())); return true;
      default: return ExecuteOther(instruction, program);
    }
  }

  // Instructions that give values instead of addresses, and compilers' extensions.
  bool ExecuteOther(std::uint8_t instruction, DwarfReader& program) {
    switch (instruction) {
      case 0x14:
      case 0x15:
      case 0x16: {  // the value itself is given, not where it lies
        const std::uint64_t number = program.ReadUleb();
        if (instruction == 0x16) {
          ReadBlock(program);
        } else {
          program.ReadUleb();
        }
        SetKind(number, CfiValue::Kind::kUnsupported);
        return true;
      }
      case 0x2C:  // the next one's successor, which counts the pc in
      case 0x2D:
        // aarch64: the return address is signed from here on; the walk strips signatures always.
        return true;
      case 0x2E: program.ReadUleb(); return true;  // size of arguments: for exceptions only
      case 0x2F: {
        const std::uint64_t number = program.ReadUleb();
        SetOffset(number, static_cast<std::int64_t>(-program.ReadUleb()));
        return true;
      }
      default: return false;
    }
  }

  const CfiEntry& entry_;
  const DwarfRegisters registers_;
  CfiState state_;
  std::vector<CfiState> remembered_;
};

}  // namespace strobe::internal
