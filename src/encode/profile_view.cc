#include "strobe/encode/profile_view.h"

#include <algorithm>
#include <utility>

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

}  // namespace

absl::StatusOr<ProfileView> ProfileView::Make(const Profile& profile, const Symbols& symbols) {
  if (absl::Status status = CheckFrames(profile, symbols); !status.ok()) return status;
  if (absl::Status status = CheckSamples(profile); !status.ok()) return status;
  if (absl::Status status = CheckMoments(profile); !status.ok()) return status;
  return ProfileView(profile, symbols);
}

ProfileView::ProfileView(const Profile& profile, const Symbols& symbols)
    : profile_(&profile), symbols_(&symbols), module_functions_(profile.modules.size(), kNone) {
  functions_.reserve(profile.frames.size());
  for (std::uint32_t i = 0; i < profile.frames.size(); ++i) functions_.push_back(FindFunction(i));
  CheckModules();
}

std::uint32_t ProfileView::OwnFunction(std::string name) {
  const auto next = static_cast<std::uint32_t>(function_count());
  const auto [place, is_new] = own_numbers_.try_emplace(std::move(name), next);
  if (is_new) own_functions_.push_back(place->first);
  return place->second;
}

std::uint32_t ProfileView::FindFunction(std::uint32_t frame) {
  const Frame& place = profile_->frames[frame];
  if (place.is_pseudo()) return OwnFunction(std::string(profile_->PseudoName(place)));
  const std::uint32_t function =
      symbols_->frames.empty() ? kNone : symbols_->frames[frame].function;
  if (function == kNone || symbols_->functions[function].resolved) return function;
  const std::uint32_t module = ModuleOf(frame);
  if (module == kNone || profile_->modules[module].kind == ModuleKind::kGeneratedCode)
    return function;
  if (module_functions_[module] == kNone) {
    const std::string name(BaseName(module));
    module_functions_[module] =
        OwnFunction(name.starts_with('[') ? name : absl::StrCat("[", name, "]"));
  }
  return module_functions_[module];
}

void ProfileView::CheckModules() {
  std::vector<bool> has_frames(profile_->modules.size());
  module_symbols_.assign(profile_->modules.size(), {true, true, true});
  for (std::uint32_t i = 0; i < profile_->frames.size(); ++i) {
    const Frame& frame = profile_->frames[i];
    if (frame.is_pseudo() || frame.module == Frame::kNoModule) continue;
    has_frames[frame.module] = true;
    ModuleSymbols& symbols = module_symbols_[frame.module];
    const SourceLine line = LineOf(i);
    symbols.functions = symbols.functions && line.function != kNone;
    symbols.files =
        symbols.files && line.function != kNone && !function(line.function).file.empty();
    symbols.lines = symbols.lines && line.line != 0;
  }
  for (std::size_t i = 0; i < has_frames.size(); ++i) {
    if (!has_frames[i]) module_symbols_[i] = {};
  }
}

FunctionName ProfileView::function(std::size_t index) const {
  if (index >= symbols_->functions.size()) {
    const std::string_view name = own_functions_[index - symbols_->functions.size()];
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

// The name of generated code is not a path, and stays whole.
std::string_view ProfileView::BaseName(std::size_t module) const {
  const Module& place = profile_->modules[module];
  const std::string_view path = place.path;
  if (place.kind == ModuleKind::kGeneratedCode) return path;
  return path.substr(path.find_last_of(place.format == ImageFormat::kPe ? "/\\" : "/") + 1);
}

std::string ProfileView::FrameText(std::uint32_t frame) const {
  if (functions_[frame] != kNone) return ValidUtf8(function(functions_[frame]).name);
  const Address address = profile_->frames[frame].address;
  const std::uint32_t index = ModuleOf(frame);
  if (index == kNone) return absl::StrCat("0x", absl::Hex(address));
  return absl::StrCat(ValidUtf8(BaseName(index)), "+", "0x",
                      absl::Hex(address - profile_->modules[index].load_bias));
}

}  // namespace strobe
