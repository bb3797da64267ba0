#include "decoded_code.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "arch/frame_instruction.h"
#include "arch/frame_machine.h"
#include "arch/known_instructions.h"
#include "called_code.h"
#include "decoded_row.h"
#include "strobe/unwind/known_code.h"
#include "unwind/cfi_state.h"

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;

// Functions begin there, and loops.
constexpr std::size_t kAlignment = 16;
constexpr std::uint32_t kMaxZeros = 4096;  // between two sections
// The most parts of a function that end in a switch, one behind the other, until one confirms them.
constexpr std::size_t kMaxOpenParts = 8;

// Reads `text`, which begins at 0.
AnyMemoryReader ReaderOf(std::span<const std::uint8_t> text) {
  return [text](Address at, std::span<std::uint8_t> bytes) {
    const auto rest = text.subspan(std::min<std::size_t>(at, text.size()));
    return static_cast<std::size_t>(
        std::copy_n(rest.begin(), std::min(rest.size(), bytes.size()), bytes.begin()) -
        bytes.begin());
  };
}

// The functions of code whose first byte lies `offset` behind where a function may begin.
class Functions {
 public:
  Functions(std::uint32_t offset, std::span<const std::uint8_t> text)
      : offset_(offset), text_(text), places_(text.size()), called_(ReaderOf(text)) {}

  // `begin`: of one of them, where that is known.
  void Find(std::optional<std::uint32_t> begin) {
    Sweep();
    const std::uint32_t first = SkipPadding(begin.value_or(0));
    if (begin && first < text_.size()) places_[first].is_begin = true;
    for (std::uint32_t at = 0; at < text_.size(); ++at) {
      if (places_[at].is_begin) FollowBegin(at);
    }
    GuessOthers();
  }

  // The rows of [begin, end), the first at `offset`. Adds special rules to `specials`.
  [[nodiscard]] std::vector<UnwindRow> Rows(std::uint32_t begin, std::uint32_t end,
                                            std::uint32_t offset,
                                            std::vector<SpecialRule>& specials) const {
    const UnwindRow lost{.rule = AddLostRule(specials)};
    std::vector<UnwindRow> rows;
    for (std::uint32_t at = begin; at < end; at = After(at)) {
      UnwindRow row = RowAt(places_[at], specials).value_or(lost);
      row.offset = offset + (at - begin);
      if (rows.empty() || rows.back().rule != row.rule ||
          rows.back().special_register != row.special_register)
        rows.push_back(row);
    }
    return rows;
  }

  // False if there is nothing but filling in [begin, end).
  [[nodiscard]] bool HasCode(std::uint32_t begin, std::uint32_t end) const {
    return SkipPadding(begin) < end;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint8_t kManyJumps = 255;

  // A byte of the text. If a function reaches the instruction that begins there: what holds before.
  struct Place {
    std::uint32_t function = kNone;
    std::uint32_t frame = 0;
    std::uint8_t bytes = 0;
    std::uint8_t jumps = 0;   // so many lead there, up to kManyJumps
    bool is_begin = false;    // of a function, for sure
    bool is_waiting = false;  // to be followed
  };
  struct Function {
    std::uint32_t begin = 0;
    std::uint8_t jumps_to_begin = 0;
    bool is_guessed = false;
    bool is_broken = false;
    bool is_confirmed = false;   // something has left it as a function is left
    bool is_open = false;        // it is confirmed if the code behind it is
    bool may_jump_away = false;  // also by a jump through a register or memory
    bool has_frame = false;      // has ever pushed something
    bool is_outermost = false;   // has no caller
    // What holds at a jump to where a register or memory says, as the code of a switch has it.
    std::optional<DecodedFrame> switch_frame;
  };

  [[nodiscard]] std::uint32_t After(std::uint32_t at) const {
    return at + (places_[at].function != kNone ? std::max<std::uint32_t>(1, places_[at].bytes) : 1);
  }
  [[nodiscard]] bool IsAligned(std::uint32_t at) const { return (offset_ + at) % kAlignment == 0; }

  [[nodiscard]] std::optional<std::uint32_t> Target(std::uint32_t at,
                                                    const FrameInstruction& instruction) const {
    const std::int64_t target = std::int64_t{at} + instruction.bytes + instruction.offset;
    if (target < 0 || target >= static_cast<std::int64_t>(text_.size())) return std::nullopt;
    return static_cast<std::uint32_t>(target);
  }

  // One instruction after the other, to see where calls lead.
  void Sweep() {
    for (std::uint32_t at = 0; at < text_.size();) {
      const FrameInstruction instruction = DecodeFrameInstruction(text_.subspan(at));
      const bool is_call = instruction.kind == Kind::kCall && instruction.has_target;
      const bool is_jump = instruction.kind == Kind::kJump || instruction.kind == Kind::kBranch;
      const std::optional<std::uint32_t> target = Target(at, instruction);
      if (target && is_call) places_[*target].is_begin = true;
      if (target && is_jump && places_[*target].jumps < kManyJumps) ++places_[*target].jumps;
      at += std::max<std::uint32_t>(1, instruction.bytes);
    }
  }

  // The first byte from `at` on that is no filling between functions.
  [[nodiscard]] std::uint32_t SkipPadding(std::uint32_t at) const {
    while (at < text_.size()) {
      if (text_[at] == 0xCC || (text_[at] == 0 && IsZeroPadding(at))) {
        ++at;
        continue;
      }
      const FrameInstruction instruction = DecodeFrameInstruction(text_.subspan(at));
      if (!instruction.is_nothing) break;
      at += instruction.bytes;
    }
    return at;
  }
  // Zeros up to where a section begins.
  [[nodiscard]] bool IsZeroPadding(std::uint32_t at) const {
    const std::uint32_t limit =
        std::min(static_cast<std::uint32_t>(text_.size()), at + std::uint32_t{kMaxZeros});
    while (at < limit && text_[at] == 0) ++at;
    return at == text_.size() || IsAligned(at);
  }

  void FollowBegin(std::uint32_t at) {
    static_cast<void>(Follow(at, /*is_guessed=*/false, {}));
    FollowBeside();
  }

  // What nothing has reached is another function if it stands behind the end of one, or where
  // functions begin; or a part of the function before, which jumps to where a table says.
  void GuessOthers() {
    bool is_behind = false;
    std::uint32_t previous = kNone;
    for (std::uint32_t at = 0; at < text_.size();) {
      if (places_[at].function != kNone) {
        previous = places_[at].function;
        is_behind = true;
        at = After(at);
        continue;
      }
      const std::uint32_t begin = SkipPadding(at);
      if (begin >= text_.size()) return;
      if (places_[begin].function == kNone) {
        is_behind = (is_behind || (begin != at && IsAligned(begin))) && Guess(begin, previous);
      }
      at = places_[begin].function != kNone
               ? begin
               : begin +
                     std::max<std::uint32_t>(1, DecodeFrameInstruction(text_.subspan(begin)).bytes);
    }
  }

  // Where code may be this function's or another's: the function goes on there if that leads to
  // where it is left.
  void FollowBeside() {
    while (!beside_.empty()) {
      const auto [at, frame] = beside_.back();
      beside_.pop_back();
      // Where nothing has been pushed, it does not matter whose it is.
      if (places_[at].function == kNone) FollowOrUndo(at, frame, frame.is_left());
    }
  }
  // `parts` come before it, of which nothing but a switch at the end tells that they are right.
  bool FollowOrUndo(std::uint32_t begin, const DecodedFrame& frame, bool may_jump_away,
                    std::size_t parts = 0) {
    const std::size_t beside = beside_.size();
    if (Follow(begin, /*is_guessed=*/true, frame, may_jump_away)) return true;
    const std::vector<std::uint32_t> reached = std::move(reached_);
    if (parts < kMaxOpenParts && IsOpen() && ConfirmBehind(begin, parts + 1)) return true;
    beside_.resize(beside);
    for (const std::uint32_t at : reached) places_[at].function = kNone;
    functions_.pop_back();
    return false;
  }

  // Whether the last function that was followed is right if the code is that its switches lead to.
  [[nodiscard]] bool IsOpen() const {
    const Function& function = functions_.back();
    return !function.is_broken && function.switch_frame && HasAllJumpsToBegin(function);
  }
  // Follows that code from behind the function on, which began at `begin`.
  bool ConfirmBehind(std::uint32_t begin, std::size_t parts) {
    const std::size_t number = functions_.size() - 1;
    std::uint32_t at = begin;
    while (at < text_.size() && places_[at].function != kNone) at = After(at);
    at = SkipPadding(at);
    if (at >= text_.size() || places_[at].function != kNone || places_[at].is_begin) return false;
    functions_[number].is_open = true;
    const DecodedFrame frame = *functions_[number].switch_frame;
    if (!FollowOrUndo(at, frame, /*may_jump_away=*/false, parts)) return false;
    if (!functions_.back().switch_frame) functions_.back().switch_frame = frame;
    functions_[number].is_open = false;
    return functions_[number].is_confirmed = !functions_[number].is_broken;
  }

  bool Guess(std::uint32_t begin, std::uint32_t previous) {
    const std::optional<DecodedFrame> frame =
        previous != kNone ? functions_[previous].switch_frame : std::nullopt;
    // A part of a leaf, or of another function, finds the same.
    const bool is_behind_leaf = previous != kNone && !functions_[previous].has_frame;
    const bool is_part = frame && FollowOrUndo(begin, *frame, false);
    if (!is_part && !FollowOrUndo(begin, {}, is_behind_leaf)) return false;
    if (is_part && !functions_.back().switch_frame) functions_.back().switch_frame = frame;
    FollowBeside();
    return true;
  }

  // Follows the function that begins at `begin`, where `frame` holds. False if nothing shows that
  // it is left as functions are, so that a guess was wrong.
  bool Follow(std::uint32_t begin, bool is_guessed, const DecodedFrame& frame,
              bool may_jump_away = false) {
    const auto number = static_cast<std::uint32_t>(functions_.size());
    Function& function = functions_.emplace_back();
    function.begin = begin;
    function.is_guessed = is_guessed;
    function.may_jump_away = may_jump_away;
    reached_.clear();
    waiting_.clear();
    Reach(number, begin, frame);
    while (!waiting_.empty()) {
      const std::uint32_t at = waiting_.back();
      waiting_.pop_back();
      places_[at].is_waiting = false;
      Step(number, at);
    }
    Function& followed = functions_.back();
    followed.is_outermost = BeginsProgram(text_.subspan(begin));
    if (followed.is_outermost) return true;
    return !followed.is_broken && followed.is_confirmed && HasAllJumpsToBegin(followed);
  }
  // Nothing else jumps there.
  [[nodiscard]] bool HasAllJumpsToBegin(const Function& function) const {
    return function.jumps_to_begin == places_[function.begin].jumps;
  }

  void Reach(std::uint32_t number, std::uint32_t at, const DecodedFrame& frame) {
    Function& function = functions_[number];
    if (at >= text_.size()) return;
    function.has_frame |= !frame.is_left();
    Place& place = places_[at];
    if (place.is_begin && at != function.begin) return Leave(function, frame);
    if (place.function == kNone) {
      place.function = number;
      place.frame = Number(frame);
      place.bytes = 0;
      reached_.push_back(at);
    } else if (place.function == number) {
      const DecodedFrame met = Meet(frames_[place.frame], frame);
      if (met == frames_[place.frame]) return;
      place.frame = Number(met);
    } else {
      return Share(function, place, frame);
    }
    if (!place.is_waiting) waiting_.push_back(at);
    place.is_waiting = true;
  }

  // Code that another function has reached, which must have found the same.
  void Share(Function& function, const Place& place, const DecodedFrame& frame) {
    Function& other = functions_[place.function];
    const bool is_same = IsSame(frames_[place.frame], frame);
    function.is_confirmed |= is_same && !other.is_open;
    function.is_broken |= !is_same;
    other.is_broken |= !is_same && !function.is_guessed;
  }

  static void Leave(Function& function, const DecodedFrame& frame) {
    function.is_confirmed |= frame.is_left();
    function.is_broken |= !frame.is_left();
  }

  void Step(std::uint32_t number, std::uint32_t at) {
    const FrameInstruction instruction = DecodeFrameInstruction(text_.subspan(at));
    Function& function = functions_[number];
    const bool is_first = std::exchange(places_[at].bytes, instruction.bytes) == 0;
    // A copy: what is reached adds frames.
    const DecodedFrame before = frames_[places_[at].frame];
    const std::uint32_t next = at + instruction.bytes;
    switch (instruction.kind) {
      case Kind::kInvalid: function.is_broken = true; return;
      case Kind::kEnd: return;
      case Kind::kReturn: return Leave(function, before);
      case Kind::kJumpThrough:
        if (before.is_left() && !IsSwitch(instruction, before)) {
          function.is_confirmed |= function.may_jump_away;
        } else {
          function.switch_frame = before;
        }
        return;
      case Kind::kAddress:
        // Of a part that a jump through the register leads to, or of another function.
        if (const std::optional<std::uint32_t> target = Target(at, instruction))
          beside_.emplace_back(*target, before);
        break;
      case Kind::kJump:
      case Kind::kBranch:
        if (const std::optional<std::uint32_t> target = Target(at, instruction)) {
          if (*target == function.begin && is_first && function.jumps_to_begin < kManyJumps)
            ++function.jumps_to_begin;
          Reach(number, *target, before);
        }
        if (instruction.kind == Kind::kJump) return;
        break;
      default: break;
    }
    FrameMachine machine(before);
    machine.Execute(instruction, next);
    if (instruction.kind == Kind::kCall) {
      const std::optional<std::uint32_t> target =
          instruction.has_target ? Target(at, instruction) : std::nullopt;
      machine.Forget(called_.WrittenByCall(before, target));
      if (IsOpenBehindCall(next) && !(target && called_.Returns(*target)))
        return static_cast<void>(beside_.emplace_back(next, machine.frame()));
    }
    Reach(number, next, machine.frame());
  }

  // Whether a jump through a register goes to where a table in the code says.
  static bool IsSwitch(const FrameInstruction& jump, const DecodedFrame& frame) {
    return jump.register_number != FrameInstruction::kNoRegister &&
           frame.places[jump.register_number].base == FramePlace::kTarget;
  }

  // Whether another function may begin behind a call that ends before `next`.
  [[nodiscard]] bool IsOpenBehindCall(std::uint32_t next) const {
    const std::uint32_t begin = SkipPadding(next);
    return begin >= text_.size() || places_[begin].is_begin || IsAligned(begin);
  }

  std::uint32_t Number(const DecodedFrame& frame) {
    if (frames_.empty() || frames_.back() != frame) frames_.push_back(frame);
    return static_cast<std::uint32_t>(frames_.size() - 1);
  }

  [[nodiscard]] std::optional<UnwindRow> RowAt(const Place& place,
                                               std::vector<SpecialRule>& specials) const {
    if (place.function == kNone) return std::nullopt;
    const Function& function = functions_[place.function];
    if (function.is_outermost) return UnwindRow{.rule = UnwindRule::Stop()};
    return function.is_broken ? std::nullopt : DecodedRow(frames_[place.frame], specials);
  }

  const std::uint32_t offset_;
  const std::span<const std::uint8_t> text_;
  std::vector<Place> places_;
  CalledCode called_;
  std::vector<DecodedFrame> frames_;
  std::vector<Function> functions_;
  std::vector<std::uint32_t> waiting_;  // places of the function that is followed
  std::vector<std::uint32_t> reached_;  // by it alone
  // Where another function may begin, behind a call or at an address that code takes; and what is
  // known there if none does.
  std::vector<std::pair<std::uint32_t, DecodedFrame>> beside_;
};

}  // namespace

void AddDecodedCode(const UndescribedCode& code, CompiledCfi& compiled) {
  const std::uint32_t begin = code.before;
  // The code may end before what is compiled does.
  const std::uint32_t end =
      std::min(begin + (code.end - code.begin), static_cast<std::uint32_t>(code.text.size()));
  // All offsets are nonnegative, and aligned where the code is.
  Functions functions(code.begin % kAlignment + kAlignment * code.before - code.before, code.text);
  if (!functions.HasCode(begin, end)) return;
  functions.Find(code.begins_function ? std::optional(begin) : std::nullopt);
  const std::vector<UnwindRow> rows = functions.Rows(begin, end, code.begin, compiled.specials);
  ReplaceRows(compiled, code.begin, code.begin + (end - begin), rows);
}

}  // namespace strobe::internal
