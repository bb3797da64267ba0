#include "merge.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "profile_builder.h"
#include "strobe/base/amounts.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kUnknown = 0xFFFFFFFF;

class Merging {
 public:
  absl::Status Add(const LoadedProfile& loaded) {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(loaded.profile, loaded.symbols);
    if (!view.ok()) return view.status();
    if (absl::Status status = AddHead(loaded); !status.ok()) return status;
    source_ = &loaded;
    modules_.assign(loaded.profile.modules.size(), kUnknown);
    functions_.assign(loaded.symbols.functions.size(), kUnknown);
    frames_.assign(loaded.profile.frames.size(), kUnknown);
    NumberProgram();
    std::vector<std::uint32_t> rows(loaded.profile.samples.size());
    std::vector<std::uint32_t> stack;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      stack.clear();
      view->VisitStack(i, [&](std::uint32_t frame) { stack.push_back(FrameNumber(frame)); });
      rows[i] = builder_.AddRow(builder_.Stack(stack), builder_.Labels(loaded.profile.Labels(i)),
                                InOrder(loaded.profile.Values(i)));
      if (absl::Status status = builder_.status(); !status.ok()) return status;
    }
    for (std::size_t i = 0; i < loaded.profile.moments.size(); ++i) {
      const ProfileMoment& moment = loaded.profile.moments[i];
      builder_.AddMoment(rows[moment.sample], moment.time_ns,
                         InOrder(loaded.profile.MomentValues(i)));
    }
    return builder_.status();
  }

  LoadedProfile Finish() { return builder_.Finish(); }

 private:
  absl::Status AddHead(const LoadedProfile& loaded);
  void NumberProgram();
  std::uint32_t ModuleNumber(std::uint32_t module);
  std::uint32_t FunctionNumber(std::uint32_t function);
  std::uint32_t FrameNumber(std::uint32_t frame);

  std::span<const std::int64_t> InOrder(std::span<const std::int64_t> values) {
    ordered_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) ordered_[columns_[i]] = values[i];
    return ordered_;
  }

  ProfileBuilder builder_;
  bool is_first_ = true;
  absl::flat_hash_map<std::tuple<Address, Address, std::uint64_t, std::string, std::string>,
                      std::uint32_t>
      module_numbers_;
  absl::flat_hash_map<std::tuple<std::string, std::string, std::string, std::uint32_t>,
                      std::uint32_t>
      function_numbers_;
  // By module, address, and function, line and column of each line.
  absl::flat_hash_map<std::pair<std::pair<Address, std::uint32_t>, std::vector<std::uint32_t>>,
                      std::uint32_t>
      frame_numbers_;
  // Of the profile being added: its numbers in the sum.
  const LoadedProfile* source_ = nullptr;
  std::vector<std::uint32_t> modules_, functions_, frames_;
  std::vector<std::size_t> columns_;
  std::vector<std::int64_t> ordered_;
};

absl::Status Merging::AddHead(const LoadedProfile& loaded) {
  const Profile& source = loaded.profile;
  LoadedProfile& sum = builder_.loaded();
  Profile& profile = sum.profile;
  if (std::exchange(is_first_, false)) {
    for (const ValueType& type : source.value_types)
      profile.value_types.push_back(
          {sum.Keep(std::string(type.type)), sum.Keep(std::string(type.unit))});
    profile.default_value_type = source.default_value_type;
    profile.period_type = {sum.Keep(std::string(source.period_type.type)),
                           sum.Keep(std::string(source.period_type.unit))};
    profile.period = source.period;
    profile.time_ns = source.time_ns;
    profile.program = source.program;
    profile.machine = source.machine;
    profile.process_id = source.process_id;
    sum.format = loaded.format;
    sum.comments = loaded.comments;
  } else {
    profile.time_ns = std::min(profile.time_ns, source.time_ns);
    if (profile.period != source.period) profile.period = 0;
    if (profile.program != source.program) profile.program.clear();
    profile.machine = profile.machine.InCommonWith(source.machine);
    const double iterations = sum.Iterations(), more = loaded.Iterations();
    for (const std::string& comment : loaded.comments) {
      if (std::ranges::find(sum.comments, comment) == sum.comments.end())
        sum.comments.push_back(comment);
    }
    sum.SetIterations(iterations > 0 && more > 0 ? iterations + more : 0);
  }
  sum.number_units.insert(loaded.number_units.begin(), loaded.number_units.end());
  if (sum.drop_frames.empty()) sum.drop_frames = loaded.drop_frames;
  if (sum.keep_frames.empty()) sum.keep_frames = loaded.keep_frames;
  profile.duration_ns = SaturatedSum(profile.duration_ns, source.duration_ns);
  columns_.clear();
  for (const ValueType& type : source.value_types) {
    const auto place = std::ranges::find(profile.value_types, type);
    columns_.push_back(static_cast<std::size_t>(place - profile.value_types.begin()));
  }
  if (columns_.size() != profile.value_types.size() ||
      std::ranges::find(columns_, columns_.size()) != columns_.end())
    return absl::InvalidArgumentError("the profiles have different value types");
  return absl::OkStatus();
}

// A profile's first module is the program, also if no sample is in it.
void Merging::NumberProgram() {
  const std::vector<Module>& modules = source_->profile.modules;
  if (!modules.empty() && modules[0].kind == ModuleKind::kProgram) ModuleNumber(0);
}

std::uint32_t Merging::ModuleNumber(std::uint32_t module) {
  if (module == Frame::kNoModule || module == Frame::kPseudo) return module;
  std::uint32_t& number = modules_[module];
  if (number != kUnknown) return number;
  const Module& source = source_->profile.modules[module];
  std::vector<Module>& all = builder_.profile().modules;
  const auto [place, is_new] = module_numbers_.try_emplace(
      {source.start, source.limit, source.file_offset, source.path, source.build_id},
      static_cast<std::uint32_t>(all.size()));
  if (is_new) all.push_back(source);
  return number = place->second;
}

std::uint32_t Merging::FunctionNumber(std::uint32_t function) {
  std::uint32_t& number = functions_[function];
  if (number != kUnknown) return number;
  const FunctionSymbol& source = source_->symbols.functions[function];
  std::vector<FunctionSymbol>& all = builder_.symbols().functions;
  const auto [place, is_new] =
      function_numbers_.try_emplace({source.name, source.system_name, source.file, source.line},
                                    static_cast<std::uint32_t>(all.size()));
  if (is_new) {
    builder_.Take(4 * sizeof(FunctionSymbol) + 2 * (source.name.size() + source.file.size()));
    all.push_back(source);
  }
  return number = place->second;
}

std::uint32_t Merging::FrameNumber(std::uint32_t frame) {
  if (frames_[frame] != kUnknown) return frames_[frame];
  const Frame& source = source_->profile.frames[frame];
  Symbols& symbols = builder_.symbols();
  FrameSymbols names;
  std::vector<SourceLine> inlined;
  std::vector<std::uint32_t> lines;
  if (!source_->symbols.frames.empty() && !source.is_pseudo()) {
    names = source_->symbols.frames[frame];
    if (names.function != FrameSymbols::kNone) names.function = FunctionNumber(names.function);
    for (std::uint32_t i = 0; i < names.inlined_count; ++i) {
      SourceLine line = source_->symbols.inlined[names.inlined_begin + i];
      line.function = FunctionNumber(line.function);
      lines.insert(lines.end(), {line.function, line.line, line.column});
      inlined.push_back(line);
    }
    lines.insert(lines.end(), {names.function, names.line, names.column});
  }
  const Frame place_of_frame{source.address, ModuleNumber(source.module)};
  std::vector<Frame>& all = builder_.profile().frames;
  const auto [place, is_new] = frame_numbers_.try_emplace(
      {{source.address, place_of_frame.module}, lines}, static_cast<std::uint32_t>(all.size()));
  if (is_new) {
    names.inlined_begin = static_cast<std::uint32_t>(symbols.inlined.size());
    symbols.inlined.insert(symbols.inlined.end(), inlined.begin(), inlined.end());
    symbols.frames.push_back(names);
    all.push_back(place_of_frame);
    builder_.Take(4 * (sizeof(Frame) + sizeof(FrameSymbols)) + 2 * inlined.size() * 24);
  }
  return frames_[frame] = place->second;
}

}  // namespace

absl::StatusOr<LoadedProfile> MergeProfiles(std::span<const LoadedProfile> profiles) {
  Merging merging;
  for (const LoadedProfile& loaded : profiles) {
    if (absl::Status status = merging.Add(loaded); !status.ok()) return status;
  }
  return merging.Finish();
}

}  // namespace strobe::internal
