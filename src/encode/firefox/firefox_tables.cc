#include "firefox_tables.h"

#include <algorithm>
#include <array>

#include "../row_texts.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/module_map.h"
#include "strobe/core/profile.h"

namespace strobe::internal {
namespace {

FirefoxCategory CategoryOf(const Module& module) {
  switch (module.kind) {
    case ModuleKind::kProgram: return FirefoxCategory::kProgram;
    case ModuleKind::kSharedLibrary: return FirefoxCategory::kLibrary;
    case ModuleKind::kVdso: return FirefoxCategory::kSystem;
    case ModuleKind::kGeneratedCode: return FirefoxCategory::kGenerated;
  }
  return FirefoxCategory::kOther;
}

// One column of a table: element(row) writes a value.
template <class Rows, class Element>
void Column(JsonWriter& json, std::string_view key, const Rows& rows, Element element) {
  json.Key(key);
  json.BeginArray();
  for (const auto& row : rows) element(row);
  json.EndArray();
}

void NumberOrNull(JsonWriter& json, std::int64_t value, std::int64_t null) {
  if (value == null) {
    json.Null();
  } else {
    json.Number(value);
  }
}

template <class Rows>
void Length(JsonWriter& json, const Rows& rows) {
  json.Member("length", static_cast<std::int64_t>(rows.size()));
}

}  // namespace

std::string BreakpadId(std::string_view build_id) {
  constexpr std::size_t kDigits = 32;
  const bool is_long_enough = build_id.size() >= kDigits;
  if (!is_long_enough || !std::ranges::all_of(build_id, absl::ascii_isxdigit))
    return std::string(build_id);
  // Where each of the 16 bytes of the GUID comes from.
  constexpr std::array<std::size_t, 16> kOrder{3, 2, 1,  0,  5,  4,  7,  6,
                                               8, 9, 10, 11, 12, 13, 14, 15};
  std::string id;
  for (const std::size_t byte : kOrder) id += build_id.substr(2 * byte, 2);
  return absl::AsciiStrToUpper(id) + "0";
}

FirefoxTables::FirefoxTables(const ProfileView& view)
    : view_(view),
      short_names_(ShortNames(view)),
      library_numbers_(view.profile().modules.size(), kNull) {
  const std::size_t frame_count = view.profile().frames.size();
  frame_ranges_.reserve(frame_count);
  for (std::uint32_t i = 0; i < frame_count; ++i) AddFrame(i);
  AddStacks();
}

std::int64_t FirefoxTables::LibraryOf(std::uint32_t module) {
  if (module == ProfileView::kNone) return kNull;
  if (library_numbers_[module] == kNull) {
    library_numbers_[module] = static_cast<std::int64_t>(libraries_.size());
    libraries_.push_back({.module = module, .name = texts_.Index(view_.BaseName(module))});
  }
  return library_numbers_[module];
}

// A function that is inlined in two libraries is two functions here.
std::uint32_t FirefoxTables::FunctionAt(std::uint32_t function, std::uint32_t module,
                                        std::int64_t library) {
  const auto [place, is_new] = func_numbers_.try_emplace(std::pair(function, module),
                                                         static_cast<std::uint32_t>(funcs_.size()));
  if (!is_new) return place->second;
  const FunctionName name = view_.function(function);
  Func& func = funcs_.emplace_back();
  func.name = texts_.Index(short_names_[function]);
  func.resource = library;
  func.line = name.line;
  if (!name.file.empty()) {
    const std::uint32_t text = texts_.Index(name.file);
    const auto next = static_cast<std::int64_t>(sources_.size());
    const auto [source, is_new_source] = source_numbers_.try_emplace(text, next);
    if (is_new_source) sources_.push_back(text);
    func.source = source->second;
  }
  return place->second;
}

// The viewer marks a function as inlined if it knows the symbol that it is inlined into.
std::int64_t FirefoxTables::SymbolAt(std::uint32_t func, std::int64_t library,
                                     std::int64_t address) {
  if (library == kNull) return kNull;
  const auto [place, is_new] =
      symbol_numbers_.try_emplace(func, static_cast<std::int64_t>(native_symbols_.size()));
  if (is_new)
    native_symbols_.push_back({.library = library, .address = address, .name = funcs_[func].name});
  std::int64_t& lowest = native_symbols_[static_cast<std::size_t>(place->second)].address;
  lowest = std::min(lowest, address);
  return place->second;
}

void FirefoxTables::AddFrame(std::uint32_t index) {
  const std::uint32_t module = view_.ModuleOf(index);
  const strobe::Frame& place = view_.profile().frames[index];
  const auto begin = static_cast<std::uint32_t>(frames_.size());
  Frame frame;
  const std::int64_t library = LibraryOf(module);
  if (module != ProfileView::kNone) {
    const Module& image = view_.profile().modules[module];
    frame.address = static_cast<std::int64_t>((place.address - image.load_bias) &
                                              0x1F'FFFF'FFFF'FFFF);  // 53 bits: a double's
    frame.category = CategoryOf(image);
  }
  view_.VisitLines(index, [&](const SourceLine& line) {
    frame.func = FunctionAt(line.function, module, library);
    frame.line = line.line;
    frame.column = line.column;
    frames_.push_back(frame);
  });
  if (frames_.size() == begin) {
    AddText(view_.FrameText(index), frame);
    funcs_.back().resource = library;
  }
  std::reverse(frames_.begin() + begin, frames_.end());
  const std::int64_t symbol = SymbolAt(frames_[begin].func, library, frame.address);
  for (std::uint32_t i = begin; i < frames_.size(); ++i) {
    frames_[i].inline_depth = i - begin;
    frames_[i].native_symbol = symbol;
  }
  frame_ranges_.push_back({begin, static_cast<std::uint32_t>(frames_.size())});
}

void FirefoxTables::AddText(std::string text, Frame frame) {
  frame.func = static_cast<std::uint32_t>(funcs_.size());
  funcs_.push_back({.name = texts_.IndexOwned(std::move(text))});
  frames_.push_back(frame);
}

void FirefoxTables::AddStacks() {
  const std::vector<StackNode>& nodes = view_.profile().stacks;
  stack_of_.assign(std::max<std::size_t>(nodes.size(), 1), kNull);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    std::int64_t prefix = stack_of_[nodes[i].parent];
    const Range range = frame_ranges_[nodes[i].frame];
    for (std::uint32_t frame = range.begin; frame < range.end; ++frame) {
      stacks_.emplace_back(prefix, frame);
      prefix = static_cast<std::int64_t>(stacks_.size()) - 1;
    }
    stack_of_[i] = prefix;
  }
  if (std::ranges::none_of(view_.profile().samples,
                           [](const ProfileSample& sample) { return sample.stack == 0; }))
    return;
  stack_of_[0] = static_cast<std::int64_t>(stacks_.size());
  stacks_.emplace_back(kNull, static_cast<std::uint32_t>(frames_.size()));
  AddText("[no stack]", {});
}

void FirefoxTables::WriteCategories(JsonWriter& json) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCategories{
      {{"Other", "grey"},
       {"Program", "yellow"},
       {"Library", "blue"},
       {"System", "orange"},
       {"Generated code", "green"}}};
  json.BeginArray();
  for (const auto& [name, color] : kCategories) {
    json.BeginObject();
    json.Member("name", name);
    json.Member("color", color);
    json.Key("subcategories");
    json.Raw(R"(["Other"])");
    json.EndObject();
  }
  json.EndArray();
}

void FirefoxTables::WriteLibraries(JsonWriter& json) const {
  json.BeginArray();
  for (const Library& library : libraries_) {
    const Module& module = view_.profile().modules[library.module];
    const std::string_view name = view_.BaseName(library.module);
    json.BeginObject();
    json.Member("arch", "");
    json.Member("name", name);
    json.Member("path", module.path);
    json.Member("debugName", name);
    json.Member("debugPath", module.path);
    // The build id of a PE image is a Breakpad id already.
    json.Member("breakpadId",
                module.format == ImageFormat::kPe ? module.build_id : BreakpadId(module.build_id));
    json.Key("codeId");
    if (module.format == ImageFormat::kPe || module.build_id.empty()) {
      json.Null();
    } else {
      json.String(module.build_id);
    }
    json.EndObject();
  }
  json.EndArray();
}

void FirefoxTables::WriteShared(JsonWriter& json) const {
  json.BeginObject();
  WriteStackTable(json);
  WriteFrameTable(json);
  WriteFuncTable(json);
  WriteResources(json);
  WriteNativeSymbols(json);
  WriteSources(json);
  Column(json, "stringArray", texts_.strings(), [&](std::string_view text) { json.String(text); });
  json.EndObject();
}

void FirefoxTables::WriteStackTable(JsonWriter& json) const {
  json.Key("stackTable");
  json.BeginObject();
  Column(json, "prefix", stacks_, [&](const auto& row) { NumberOrNull(json, row.first, kNull); });
  Column(json, "frame", stacks_, [&](const auto& row) { json.Number(row.second); });
  Length(json, stacks_);
  json.EndObject();
}

void FirefoxTables::WriteFrameTable(JsonWriter& json) const {
  json.Key("frameTable");
  json.BeginObject();
  Column(json, "address", frames_, [&](const Frame& row) { json.Number(row.address); });
  Column(json, "inlineDepth", frames_, [&](const Frame& row) { json.Number(row.inline_depth); });
  Column(json, "category", frames_,
         [&](const Frame& row) { json.Number(static_cast<std::int64_t>(row.category)); });
  Column(json, "subcategory", frames_, [&](const Frame&) { json.Number(0); });
  Column(json, "func", frames_, [&](const Frame& row) { json.Number(row.func); });
  Column(json, "nativeSymbol", frames_,
         [&](const Frame& row) { NumberOrNull(json, row.native_symbol, kNull); });
  Column(json, "innerWindowID", frames_, [&](const Frame&) { json.Number(0); });
  Column(json, "line", frames_, [&](const Frame& row) { NumberOrNull(json, row.line, 0); });
  Column(json, "column", frames_, [&](const Frame& row) { NumberOrNull(json, row.column, 0); });
  Length(json, frames_);
  json.EndObject();
}

void FirefoxTables::WriteFuncTable(JsonWriter& json) const {
  json.Key("funcTable");
  json.BeginObject();
  Column(json, "name", funcs_, [&](const Func& row) { json.Number(row.name); });
  Column(json, "isJS", funcs_, [&](const Func&) { json.Bool(false); });
  Column(json, "relevantForJS", funcs_, [&](const Func&) { json.Bool(false); });
  Column(json, "resource", funcs_, [&](const Func& row) { json.Number(row.resource); });
  Column(json, "source", funcs_, [&](const Func& row) { NumberOrNull(json, row.source, kNull); });
  Column(json, "lineNumber", funcs_, [&](const Func& row) { NumberOrNull(json, row.line, 0); });
  Column(json, "columnNumber", funcs_, [&](const Func&) { json.Null(); });
  Length(json, funcs_);
  json.EndObject();
}

// A resource for each library.
void FirefoxTables::WriteResources(JsonWriter& json) const {
  constexpr std::int64_t kLibrary = 1;  // the format's ResourceType
  json.Key("resourceTable");
  json.BeginObject();
  std::int64_t next = 0;
  Column(json, "lib", libraries_, [&](const Library&) { json.Number(next++); });
  Column(json, "name", libraries_, [&](const Library& row) { json.Number(row.name); });
  Column(json, "host", libraries_, [&](const Library&) { json.Null(); });
  Column(json, "type", libraries_, [&](const Library&) { json.Number(kLibrary); });
  Length(json, libraries_);
  json.EndObject();
}

void FirefoxTables::WriteNativeSymbols(JsonWriter& json) const {
  json.Key("nativeSymbols");
  json.BeginObject();
  Column(json, "libIndex", native_symbols_,
         [&](const NativeSymbol& row) { json.Number(row.library); });
  Column(json, "address", native_symbols_,
         [&](const NativeSymbol& row) { json.Number(row.address); });
  Column(json, "name", native_symbols_, [&](const NativeSymbol& row) { json.Number(row.name); });
  Column(json, "functionSize", native_symbols_, [&](const NativeSymbol&) { json.Null(); });
  Length(json, native_symbols_);
  json.EndObject();
}

void FirefoxTables::WriteSources(JsonWriter& json) const {
  json.Key("sources");
  json.BeginObject();
  Column(json, "id", sources_, [&](std::uint32_t) { json.Null(); });
  Column(json, "filename", sources_, [&](std::uint32_t text) { json.Number(text); });
  Column(json, "startLine", sources_, [&](std::uint32_t) { json.Number(1); });
  Column(json, "startColumn", sources_, [&](std::uint32_t) { json.Number(1); });
  Column(json, "sourceMapURL", sources_, [&](std::uint32_t) { json.Null(); });
  Length(json, sources_);
  json.EndObject();
}

}  // namespace strobe::internal
