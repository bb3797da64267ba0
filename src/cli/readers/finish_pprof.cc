#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "../../encode/proto_reader.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "pprof_reading.h"
#include "read_pprof.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/machine_tags.h"
#include "strobe/encode/short_name.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kTimeLabel = "end_timestamp_ns";
// Nothing of a file is lost in the next one.
constexpr LabelLimits kFileLabels{.labels = 4096,
                                  .key_bytes = kMaxPprofFieldBytes,
                                  .text_bytes = kMaxPprofFieldBytes,
                                  .keeps_values = true};

// The program of "strobe: program NAME, process 12", if all such comments name the same.
std::string ProgramIn(std::span<const std::string> comments) {
  std::string program;
  for (const std::string& comment : comments) {
    if (!comment.starts_with(kProgramComment)) continue;
    const std::size_t end = comment.find(", process ");
    if (end == std::string::npos) continue;
    const std::string name = comment.substr(kProgramComment.size(), end - kProgramComment.size());
    if (!program.empty() && program != name) return {};
    program = name;
  }
  return program;
}

// The tags that all comments with some have in common.
LabelSet MachineOf(std::span<const std::string> comments) {
  std::optional<LabelSet> machine;
  for (const std::string& comment : comments) {
    const LabelSet one = MachineIn(comment);
    if (!one.empty()) machine = machine ? machine->InCommonWith(one) : one;
  }
  return machine.value_or(LabelSet());
}

}  // namespace

ModuleKind KindOfModule(std::string_view path, bool is_first) {
  if (path.starts_with("[vdso")) return ModuleKind::kVdso;
  if (path.empty() || path[0] == '[' || path.starts_with("//")) return ModuleKind::kGeneratedCode;
  const bool is_library = path.ends_with(".dll") || path.ends_with(".so") ||
                          path.find(".so.") != std::string_view::npos;
  return is_first && !is_library ? ModuleKind::kProgram : ModuleKind::kSharedLibrary;
}

bool PprofReading::FinishTypes() {
  LoadedProfile& loaded = builder_.loaded();
  Profile& profile = loaded.profile;
  const auto type = [&](const RawType& raw) {
    return ValueType{loaded.Keep(ValidUtf8(String(raw.type))),
                     loaded.Keep(ValidUtf8(String(raw.unit)))};
  };
  for (const RawType& raw : types_) profile.value_types.push_back(type(raw));
  profile.period_type = type(period_type_);
  if (types_.empty() || (has_columns_ && columns_ != types_.size())) return false;
  // pprof's rule: the last, if the file names none.
  profile.default_value_type = types_.size() - 1;
  for (std::size_t i = 0; i < types_.size() && default_type_ != 0; ++i) {
    if (types_[i].type == default_type_) profile.default_value_type = i;
  }
  for (const std::uint64_t comment : comments_)
    loaded.comments.push_back(SanitizedText(String(comment), kMaxPprofFieldBytes));
  if (drop_frames_ != 0) loaded.drop_frames = ValidUtf8(String(drop_frames_));
  if (keep_frames_ != 0) loaded.keep_frames = ValidUtf8(String(keep_frames_));
  return true;
}

bool PprofReading::FinishModules() {
  Profile& profile = builder_.profile();
  if (raw_mappings_.size() < mappings_.size()) return false;
  // The file's first mapping is the program. Locations may have named others before.
  if (const std::uint32_t first = first_mapping_.value_or(0); first != 0) {
    std::swap(raw_mappings_[0], raw_mappings_[first]);
    for (Frame& frame : profile.frames) {
      if (frame.module == 0 || frame.module == first) frame.module = first - frame.module;
    }
  }
  for (RawMapping& raw : raw_mappings_) {
    Module module = std::move(raw.module);
    module.path = String(raw.path);
    module.build_id = String(raw.build_id);
    module.load_bias = module.start - module.file_offset;
    module.kind = KindOfModule(module.path, profile.modules.empty());
    if (module.path.ends_with(".exe") || module.path.ends_with(".dll")) {
      module.format = ImageFormat::kPe;
      module.load_bias = module.start;
    }
    if (!raw.is_defined) return false;
    profile.modules.push_back(std::move(module));
  }
  if (!profile.modules.empty()) {
    const std::string& path = profile.modules[0].path;
    profile.program = ValidUtf8(path.substr(path.find_last_of("/\\") + 1));
  }
  if (std::string program = ProgramIn(builder_.loaded().comments); !program.empty())
    profile.program = std::move(program);
  profile.machine = MachineOf(builder_.loaded().comments);
  return true;
}

bool PprofReading::FinishFunctions() {
  if (raw_functions_.size() < functions_.size()) return false;
  for (const RawFunction& raw : raw_functions_) {
    if (!raw.is_defined) return false;
    FunctionSymbol symbol;
    symbol.name = ValidUtf8(String(raw.name));
    symbol.system_name = ValidUtf8(String(raw.system_name));
    if (symbol.name.empty()) symbol.name = symbol.system_name;
    if (symbol.name != symbol.system_name && ShortFunctionName(symbol.system_name) == symbol.name)
      symbol.name = symbol.system_name;
    if (symbol.name.empty()) symbol.name = "[no name]";
    symbol.file = ValidUtf8(String(raw.file));
    symbol.line = static_cast<std::uint32_t>(raw.line);
    builder_.Take(symbol.name.size() + symbol.system_name.size() + symbol.file.size());
    builder_.symbols().functions.push_back(std::move(symbol));
  }
  return true;
}

// Turns frames that are none of code back into what they were.
bool PprofReading::FinishFrames() {
  Profile& profile = builder_.profile();
  Symbols& symbols = builder_.symbols();
  if (is_frame_defined_.size() < locations_.size()) return false;
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    Frame& frame = profile.frames[i];
    if (!is_frame_defined_[i]) return false;
    const std::uint32_t function = symbols.frames[i].function;
    if (function == FrameSymbols::kNone) continue;
    FunctionSymbol& symbol = symbols.functions[function];
    if (!symbol.name.starts_with('[')) continue;
    if (frame.module != Frame::kNoModule) {
      // "[libz.so.1]" stands for all code of the library that has no name.
      std::string_view base = profile.modules[frame.module].path;
      base = base.substr(base.find_last_of('/') + 1);
      if (symbol.name == absl::StrCat("[", ValidUtf8(base), "]")) symbol.resolved = false;
      continue;
    }
    for (std::size_t kind = 0; kind < kPseudoFrameCount && frame.address == 0; ++kind) {
      if (symbol.name != PseudoFrameName(static_cast<PseudoFrame>(kind))) continue;
      frame = {.address = kind, .module = Frame::kPseudo};
      symbols.frames[i] = {};
      break;
    }
  }
  return true;
}

bool PprofReading::ReadLabels(std::string_view bytes, RowLabels& labels) {
  std::vector<Label> set;
  ProtoReader reader(bytes);
  while (reader.Next()) {
    ProtoReader label(reader.content());
    std::uint64_t key_index = 0;
    std::uint64_t text = 0;
    std::uint64_t unit = 0;
    std::int64_t number = 0;
    while (label.Next()) {
      if (label.field() == 1) key_index = label.number();
      if (label.field() == 2) text = label.number();
      if (label.field() == 3) number = static_cast<std::int64_t>(label.number());
      if (label.field() == 4) unit = label.number();
    }
    if (!label.ok()) return false;
    std::string key(String(key_index));
    if (key == kTimeLabel) {
      labels.time_ns = number;
      continue;
    }
    if (key == "thread_name") key = kThreadNameLabel;
    if (key == "thread_id") key = kThreadIdLabel;
    std::string value(String(text));
    if (key == kThreadIdLabel && text != 0 && absl::SimpleAtoi(value, &number)) text = 0;
    if (text != 0) {
      set.push_back({std::move(key), std::move(value)});
    } else {
      if (unit != 0) builder_.loaded().number_units.emplace(key, ValidUtf8(String(unit)));
      set.push_back({std::move(key), number});
    }
  }
  labels.set = builder_.Labels(LabelSet(std::move(set), kFileLabels));
  return reader.ok();
}

// The rows so far have the labels as the file has them. Now equal ones become equal, and rows with
// a time become moments of rows without.
bool PprofReading::FinishRows() {
  for (const auto& [bytes, number] : label_numbers_) raw_labels_[number] = bytes;
  std::vector<RowLabels> labels(raw_labels_.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!ReadLabels(raw_labels_[i], labels[i])) return false;
  }
  Profile& profile = builder_.profile();
  const bool is_same =
      profile.label_sets.size() == labels.size() &&
      std::ranges::all_of(labels, [](const RowLabels& row) { return row.time_ns == 0; });
  if (is_same) return true;  // then the numbers are the same, too
  const std::vector<ProfileSample> rows = std::exchange(profile.samples, {});
  const std::vector<std::int64_t> values = std::exchange(profile.values, {});
  builder_.ForgetRows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowLabels& row = labels[rows[i].labels];
    const auto row_values = std::span(values).subspan(i * columns_, columns_);
    const std::uint32_t number = builder_.AddRow(rows[i].stack, row.set, row_values);
    if (row.time_ns != 0) builder_.AddMoment(number, row.time_ns, row_values);
  }
  return true;
}

absl::StatusOr<LoadedProfile> PprofReading::Finish() {
  if (!FinishTypes()) return Damaged("its samples have other values than it says");
  if (!FinishModules()) return Damaged("a mapping is missing or there twice");
  if (!FinishFunctions()) return Damaged("a function is missing or there twice");
  if (!FinishFrames()) return Damaged("a location is missing or there twice");
  if (!FinishRows()) return Damaged("a label");
  if (!has_strings_) return Damaged("a string is missing");
  if (absl::Status status = builder_.status(); !status.ok()) return status;
  LoadedProfile loaded = builder_.Finish();
  loaded.format = "pprof";
  return loaded;
}

}  // namespace strobe::internal
