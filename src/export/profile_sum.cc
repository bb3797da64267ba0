#include "strobe/export/profile_sum.h"

#include <algorithm>

#include "strobe/base/amounts.h"

namespace strobe {
namespace {

constexpr std::pair kOverflowFrame{static_cast<Address>(PseudoFrame::kOverflow), Frame::kPseudo};

// The number of `key`, which is new if the result's second member says so.
template <class Map>
std::pair<std::uint32_t, bool> NumberOf(Map& numbers, const typename Map::key_type& key,
                                        std::size_t next) {
  const auto [place, is_new] =
      numbers.try_emplace(key, static_cast<typename Map::mapped_type>(next));
  return {static_cast<std::uint32_t>(place->second), is_new};
}

}  // namespace

void ProfileSum::Add(const Profile& period, const Symbols& symbols) {
  AddHead(period);
  AddModules(period, symbols);
  AddFunctions(symbols);
  AddFrames(period, symbols);
  AddStacks(period);
  AddLabelSets(period);
  AddThreads(period);
  AddRows(period);
}

void ProfileSum::AddHead(const Profile& period) {
  if (profile_.value_types.empty()) {
    profile_.value_types = period.value_types;
    profile_.default_value_type = period.default_value_type;
    profile_.time_ns = period.time_ns;
    profile_.period_type = period.period_type;
    profile_.period = period.period;
    profile_.program = period.program;
    profile_.process_id = period.process_id;
    profile_.machine = period.machine;
    profile_.sequence = period.sequence;
  }
  profile_.duration_ns = SaturatedSum(profile_.duration_ns, period.duration_ns);
  profile_.stats = period.stats;
  ForgetLevels();
}

void ProfileSum::ForgetLevels() {
  const std::size_t columns = profile_.value_types.size();
  for (std::size_t column = 0; column < columns; ++column) {
    const std::string_view name = profile_.value_types[column].type;
    if (std::ranges::find(levels_, name) == levels_.end()) continue;
    profile_.default_value_type = column;
    for (std::size_t i = column; i < profile_.values.size(); i += columns) profile_.values[i] = 0;
  }
}

void ProfileSum::AddModules(const Profile& period, const Symbols& symbols) {
  modules_.clear();
  std::vector<Module>& all = profile_.modules;
  for (std::size_t i = 0; i < period.modules.size(); ++i) {
    const auto place = std::ranges::find(all, period.modules[i]);
    const auto number = static_cast<std::uint32_t>(place - all.begin());
    if (place == all.end()) {
      all.push_back(period.modules[i]);
      symbols_.modules.push_back(SymbolDetail::kNone);
    }
    if (i < symbols.modules.size())
      symbols_.modules[number] = std::max(symbols_.modules[number], symbols.modules[i]);
    modules_.push_back(number);
  }
  if (!symbols.partly_named.empty()) symbols_.partly_named = symbols.partly_named;
}

void ProfileSum::AddFunctions(const Symbols& symbols) {
  functions_.clear();
  for (const FunctionSymbol& function : symbols.functions) {
    const auto [number, is_new] =
        NumberOf(function_numbers_, {function.name + '\0' + function.system_name, function.file},
                 symbols_.functions.size());
    if (is_new) symbols_.functions.push_back(function);
    functions_.push_back(number);
  }
}

void ProfileSum::AddFrames(const Profile& period, const Symbols& symbols) {
  frames_.clear();
  for (std::size_t i = 0; i < period.frames.size(); ++i) {
    Frame frame = period.frames[i];
    if (frame.is_zone()) {
      frame.address = Frame::kFirstZone + NumberOfZone(std::string(period.PseudoName(frame)));
    } else if (frame.module < modules_.size()) {
      frame.module = modules_[frame.module];
    }
    const auto [number, is_new] =
        NumberOf(frame_numbers_, {frame.address, frame.module}, profile_.frames.size());
    if (is_new) {
      profile_.frames.push_back(frame);
      symbols_.frames.emplace_back();
    }
    // Each period's symbolizer may have found more than those before.
    if (i < symbols.frames.size() && symbols_.frames[number].line == 0)
      symbols_.frames[number] = Renumbered(symbols.frames[i], symbols);
    frames_.push_back(number);
  }
}

FrameSymbols ProfileSum::Renumbered(const FrameSymbols& frame, const Symbols& symbols) {
  FrameSymbols renumbered = frame;
  if (frame.function != FrameSymbols::kNone) renumbered.function = functions_[frame.function];
  renumbered.inlined_begin = static_cast<std::uint32_t>(symbols_.inlined.size());
  for (std::uint32_t k = 0; k < frame.inlined_count; ++k) {
    SourceLine line = symbols.inlined[frame.inlined_begin + k];
    line.function = functions_[line.function];
    symbols_.inlined.push_back(line);
  }
  return renumbered;
}

std::uint32_t ProfileSum::NumberOfZone(const std::string& name) {
  const auto place = std::ranges::find(profile_.zones, name);
  const auto number = static_cast<std::uint32_t>(place - profile_.zones.begin());
  if (place == profile_.zones.end()) profile_.zones.push_back(name);
  return number;
}

void ProfileSum::AddStacks(const Profile& period) {
  stacks_.clear();
  if (profile_.stacks.empty()) profile_.stacks.emplace_back();
  for (std::size_t i = 0; i < period.stacks.size(); ++i) {
    if (i == 0) {
      stacks_.push_back(0);
      continue;
    }
    const std::uint32_t parent = stacks_[period.stacks[i].parent];
    const std::uint32_t frame = frames_[period.stacks[i].frame];
    std::uint32_t node = tables_.FindNode(profile_, parent, frame);
    if (node == ProfileTables::kNone) {
      node = profile_.stacks.size() < kMaxStackNodes ? tables_.Node(profile_, parent, frame)
                                                     : OverflowStack();
    }
    stacks_.push_back(node);
  }
}

std::uint32_t ProfileSum::OverflowStack() {
  const auto [frame, is_new_frame] =
      NumberOf(frame_numbers_, kOverflowFrame, profile_.frames.size());
  if (is_new_frame) {
    profile_.frames.push_back({kOverflowFrame.first, kOverflowFrame.second});
    symbols_.frames.emplace_back();
  }
  return tables_.Node(profile_, 0, frame);
}

void ProfileSum::AddLabelSets(const Profile& period) {
  label_sets_.clear();
  for (const LabelSet& set : period.label_sets)
    label_sets_.push_back(tables_.Labels(profile_, set));
}

void ProfileSum::AddThreads(const Profile& period) {
  for (const ProfileThread& thread : period.threads) {
    const auto [number, is_new] =
        NumberOf(thread_numbers_, {thread.id, thread.begin_ns}, profile_.threads.size());
    if (is_new && profile_.threads.size() == kMaxThreads) {
      thread_numbers_.erase({thread.id, thread.begin_ns});
      continue;
    }
    if (is_new) {
      profile_.threads.push_back(thread);
      continue;
    }
    ProfileThread& sum = profile_.threads[number];
    sum.name = thread.name;
    sum.end_ns = thread.end_ns;
    sum.samples += thread.samples;
    sum.cpu_ns = sum.cpu_ns < 0 || thread.cpu_ns < 0 ? -1 : SaturatedSum(sum.cpu_ns, thread.cpu_ns);
  }
}

void ProfileSum::AddRows(const Profile& period) {
  for (std::size_t i = 0; i < period.samples.size(); ++i) {
    std::uint32_t stack = stacks_[period.samples[i].stack];
    std::uint32_t labels = label_sets_[period.samples[i].labels];
    if (profile_.samples.size() >= kMaxRows &&
        tables_.FindRow(profile_, stack, labels) == ProfileTables::kNone) {
      stack = OverflowStack();
      labels = 0;
    }
    tables_.AddRow(profile_, stack, labels, period.Values(i));
  }
}

}  // namespace strobe
