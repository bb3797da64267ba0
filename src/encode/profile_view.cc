#include "strobe/encode/profile_view.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strobe/base/address.h"
#include "strobe/core/module_map.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"

namespace strobe {
namespace {

absl::Status OutOfRange(absl::string_view what, std::size_t index) {
  return absl::InvalidArgumentError(
      absl::StrCat("profile: ", what, " ", index, " refers to something that does not exist"));
}

absl::Status CheckFrames(const Profile& profile, const Symbols& symbols) {
  if (!symbols.frames.empty() && symbols.frames.size() != profile.frames.size()) {
    return absl::InvalidArgumentError(absl::StrCat("symbols for ", symbols.frames.size(),
                                                   " frames of a profile with ",
                                                   profile.frames.size()));
  }
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    const Frame& frame = profile.frames[i];
    if (frame.is_pseudo()) continue;
    if (frame.module >= profile.modules.size() && frame.module != Frame::kNoModule)
      return OutOfRange("frame", i);
    if (symbols.frames.empty()) continue;
    const FrameSymbols& names = symbols.frames[i];
    if (names.function >= symbols.functions.size() && names.function != FrameSymbols::kNone)
      return OutOfRange("symbol of frame", i);
    if (std::uint64_t{names.inlined_begin} + names.inlined_count > symbols.inlined.size())
      return OutOfRange("inlined function of frame", i);
  }
  for (std::size_t i = 0; i < symbols.inlined.size(); ++i) {
    if (symbols.inlined[i].function >= symbols.functions.size())
      return OutOfRange("inlined function", i);
  }
  return absl::OkStatus();
}

absl::Status CheckMoments(const Profile& profile) {
  if (profile.moment_values.size() != profile.moments.size() * profile.value_types.size()) {
    return absl::InvalidArgumentError(absl::StrCat("profile: ", profile.moment_values.size(),
                                                   " values for ", profile.moments.size(),
                                                   " moments of ", profile.value_types.size()));
  }
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    if (profile.moments[i].sample >= profile.samples.size()) return OutOfRange("moment", i);
  }
  return absl::OkStatus();
}

absl::Status CheckSamples(const Profile& profile) {
  if (profile.values.size() != profile.samples.size() * profile.value_types.size()) {
    return absl::InvalidArgumentError(absl::StrCat("profile: ", profile.values.size(),
                                                   " values for ", profile.samples.size(),
                                                   " samples of ", profile.value_types.size()));
  }
  if (!profile.value_types.empty() && profile.default_value_type >= profile.value_types.size())
    return OutOfRange("default value type", profile.default_value_type);
  // A parent has a lower number than its children, so every walk to the root ends.
  for (std::size_t i = 1; i < profile.stacks.size(); ++i) {
    const StackNode& node = profile.stacks[i];
    if (node.parent >= i || node.frame >= profile.frames.size()) return OutOfRange("stack", i);
  }
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    if (sample.stack >= profile.stacks.size() || sample.labels >= profile.label_sets.size())
      return OutOfRange("sample", i);
  }
  return absl::OkStatus();
}

// All PseudoFrame numbers that this version does not know count as one: the number after the last.
std::size_t PseudoFrameIndex(const Frame& frame) {
  return static_cast<std::size_t>(std::min<Address>(frame.address, kPseudoFrameCount));
}

std::string Hex(Address address) { return absl::StrCat("0x", absl::Hex(address)); }

// A path without its directories. The name of generated code is not a path, and stays whole.
std::string_view BaseName(const Module& module) {
  const std::string_view path = module.path;
  if (module.code_number != 0) return path;
  return path.substr(path.find_last_of(module.pdata_address != 0 ? "/\\" : "/") + 1);
}

}  // namespace

absl::StatusOr<ProfileView> ProfileView::Make(const Profile& profile, const Symbols& symbols) {
  if (absl::Status status = CheckFrames(profile, symbols); !status.ok()) return status;
  if (absl::Status status = CheckSamples(profile); !status.ok()) return status;
  if (absl::Status status = CheckMoments(profile); !status.ok()) return status;
  return ProfileView(profile, symbols);
}

ProfileView::ProfileView(const Profile& profile, const Symbols& symbols)
    : profile_(&profile), symbols_(&symbols) {
  std::array<std::uint32_t, kPseudoFrameCount + 1> pseudo;
  pseudo.fill(kNone);
  std::vector<bool> has_frames(profile.modules.size());
  is_named_.assign(profile.modules.size(), true);
  functions_.reserve(profile.frames.size());
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    const Frame& frame = profile.frames[i];
    if (frame.is_pseudo()) {
      const std::size_t index = PseudoFrameIndex(frame);
      if (pseudo[index] == kNone) {
        pseudo[index] = static_cast<std::uint32_t>(function_count());
        pseudo_functions_.push_back(PseudoFrameName(static_cast<PseudoFrame>(index)));
      }
      functions_.push_back(pseudo[index]);
      continue;
    }
    const std::uint32_t function = symbols.frames.empty() ? kNone : symbols.frames[i].function;
    functions_.push_back(function);
    if (frame.module == Frame::kNoModule) continue;
    has_frames[frame.module] = true;
    if (function == kNone || !symbols.functions[function].resolved) is_named_[frame.module] = false;
  }
  for (std::size_t i = 0; i < has_frames.size(); ++i) is_named_[i] = is_named_[i] && has_frames[i];
}

FunctionName ProfileView::function(std::size_t index) const {
  if (index >= symbols_->functions.size()) {
    const std::string_view name = pseudo_functions_[index - symbols_->functions.size()];
    return {.name = name, .system_name = name};
  }
  const FunctionSymbol& function = symbols_->functions[index];
  return {.name = function.name,
          .system_name = function.system_name,
          .file = function.file,
          .line = function.line};
}

SourceLine ProfileView::LineOf(std::uint32_t frame) const {
  SourceLine line{.function = functions_[frame]};
  if (symbols_->frames.empty() || profile_->frames[frame].is_pseudo()) return line;
  line.line = symbols_->frames[frame].line;
  line.column = symbols_->frames[frame].column;
  return line;
}

std::span<const SourceLine> ProfileView::InlinedAt(std::uint32_t frame) const {
  if (symbols_->frames.empty() || profile_->frames[frame].is_pseudo()) return {};
  const FrameSymbols& names = symbols_->frames[frame];
  return std::span(symbols_->inlined).subspan(names.inlined_begin, names.inlined_count);
}

std::uint32_t ProfileView::ModuleOf(std::uint32_t frame) const {
  const Frame& place = profile_->frames[frame];
  if (place.is_pseudo() || place.module == Frame::kNoModule) return kNone;
  const Module& module = profile_->modules[place.module];
  const bool is_inside = place.address >= module.start && place.address < module.limit;
  return is_inside ? place.module : kNone;
}

std::string ProfileView::FrameText(std::uint32_t frame) const {
  if (functions_[frame] != kNone) return ValidUtf8(function(functions_[frame]).name);
  const Address address = profile_->frames[frame].address;
  const std::uint32_t index = ModuleOf(frame);
  if (index == kNone) return Hex(address);
  const Module& module = profile_->modules[index];
  return absl::StrCat(ValidUtf8(BaseName(module)), "+", Hex(address - module.load_bias));
}

}  // namespace strobe
