// ProfileView: a Profile and the names of its frames, checked once and resolved, as an encoder of
// any format writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"

namespace strobe {

// A function as formats name it. Pseudo-frames have functions, too: "[truncated]".
struct FunctionName {
  std::string_view name;         // for people
  std::string_view system_name;  // as in the symbol table
  std::string_view file{};       // empty if unknown
  std::uint32_t line = 0;        // where it begins; 0 if unknown
};

// How far the symbols of a module go: true where they go so far for each of its frames. All false
// for a module without frames.
struct ModuleSymbols {
  bool functions = false;  // the symbolizer has looked for a name, and may have found none
  bool files = false;      // the function's file is known
  bool lines = false;      // the line is known, and so are the functions inlined there
};

// All indices are in range, so an encoder checks none. Frames, modules, label sets and samples have
// the same numbers as in the Profile. Functions are numbered from 0: first those of
// Symbols::functions, then those of the pseudo-frames that occur and "[libz.so.1]" of each library
// with code that the symbolizer has found no name for. Texts are those of the profile: paths and
// names may not be valid UTF-8 (see ValidUtf8).
class ProfileView {
 public:
  static constexpr std::uint32_t kNone = FrameSymbols::kNone;

  // InvalidArgument names the first part of the profile or of the symbols that refers to something
  // that does not exist. Both must outlive the view.
  static absl::StatusOr<ProfileView> Make(const Profile& profile, const Symbols& symbols);

  [[nodiscard]] const Profile& profile() const { return *profile_; }

  [[nodiscard]] std::size_t function_count() const {
    return symbols_->functions.size() + own_functions_.size();
  }
  [[nodiscard]] FunctionName function(std::size_t index) const;

  // The function of a frame, or kNone if no symbolizer has looked for one.
  [[nodiscard]] std::uint32_t FunctionOf(std::uint32_t frame) const { return functions_[frame]; }
  // That function with the line of the frame's address in it.
  [[nodiscard]] SourceLine LineOf(std::uint32_t frame) const;
  // The functions inlined there, innermost first; the last was called at LineOf(frame).
  [[nodiscard]] std::span<const SourceLine> InlinedAt(std::uint32_t frame) const;
  // Calls visit(line) for the functions inlined at a frame, innermost first, and then for the
  // frame's own. Does nothing for a frame without a function.
  template <class Visitor>
  void VisitLines(std::uint32_t frame, Visitor&& visit) const {
    if (functions_[frame] == kNone) return;
    for (const SourceLine& line : InlinedAt(frame)) visit(line);
    visit(LineOf(frame));
  }
  // The module that holds a frame's address. kNone for a pseudo-frame, for code in no module, and
  // for an address outside of the frame's module.
  [[nodiscard]] std::uint32_t ModuleOf(std::uint32_t frame) const;
  // A viewer with access to the module's file may find more where a member is false.
  [[nodiscard]] const ModuleSymbols& SymbolsOf(std::size_t module) const {
    return module_symbols_[module];
  }
  // The last part of the path of a module; the whole name of generated code.
  [[nodiscard]] std::string_view BaseName(std::size_t module) const;
  // What a format that shows frames as text writes: the function's name, else
  // "libname.so+0x1234", else "0x7f12...". Valid UTF-8.
  [[nodiscard]] std::string FrameText(std::uint32_t frame) const;

  // Calls visit(frame) for each frame of a sample's stack, from the leaf to the root.
  template <class Visitor>
  void VisitStack(std::size_t sample, Visitor&& visit) const {
    for (std::uint32_t node = profile_->samples[sample].stack; node != 0;) {
      const StackNode& step = profile_->stacks[node];
      visit(step.frame);
      node = step.parent;
    }
  }

 private:
  ProfileView(const Profile& profile, const Symbols& symbols);

  // The number of the own function with `name`, which is added if there is none.
  std::uint32_t OwnFunction(std::string name);
  [[nodiscard]] std::uint32_t FindFunction(std::uint32_t frame);
  void CheckModules();

  const Profile* profile_;
  const Symbols* symbols_;
  std::vector<std::uint32_t> functions_;                        // of each frame
  std::vector<std::string> own_functions_;                      // in the order of their frames
  std::unordered_map<std::string, std::uint32_t> own_numbers_;  // of their names
  std::vector<std::uint32_t> module_functions_;  // "[libz.so.1]" of each module, or kNone
  std::vector<ModuleSymbols> module_symbols_;    // of each module
};

}  // namespace strobe
