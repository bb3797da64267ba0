// FirefoxTables: the tables of the Firefox Profiler's format that all threads share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../json_writer.h"
#include "../string_table.h"
#include "absl/container/flat_hash_map.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {

// Kinds of code, in the order of meta.categories.
enum class FirefoxCategory : std::uint8_t { kOther, kProgram, kLibrary, kSystem, kGenerated };

class FirefoxTables {
 public:
  // The view must outlive the tables.
  explicit FirefoxTables(const ProfileView& view);

  static void WriteCategories(JsonWriter& json);
  // The value of "libs".
  void WriteLibraries(JsonWriter& json) const;
  // The value of "shared". Call it last: it writes the texts that Text has numbered.
  void WriteShared(JsonWriter& json) const;

  // Index into the stack table of a node of Profile::stacks; of the root, that of "[no stack]".
  [[nodiscard]] std::int64_t StackOf(std::uint32_t node) const { return stack_of_[node]; }

  // Index of a text in stringArray.
  std::uint32_t Text(std::string text) { return texts_.IndexOwned(std::move(text)); }

 private:
  static constexpr std::int64_t kNull = -1;

  struct Frame {
    std::uint32_t func = 0;
    std::int64_t address = kNull;  // in the library
    std::uint32_t inline_depth = 0;
    FirefoxCategory category = FirefoxCategory::kOther;
    std::int64_t native_symbol = kNull;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
  };
  struct Func {
    std::uint32_t name = 0;
    std::int64_t resource = kNull;  // also the library's number
    std::int64_t source = kNull;
    std::uint32_t line = 0;
  };
  struct NativeSymbol {
    std::int64_t library = 0;
    std::int64_t address = 0;  // the lowest that was sampled
    std::uint32_t name = 0;
  };
  struct Library {
    std::uint32_t module = 0;
    std::uint32_t name = 0;
  };
  struct Range {
    std::uint32_t begin = 0, end = 0;
  };

  void AddFrame(std::uint32_t index);
  // A frame with a function of its own.
  void AddText(std::string text, Frame frame);
  void AddStacks();
  std::int64_t LibraryOf(std::uint32_t module);
  std::uint32_t FunctionAt(std::uint32_t function, std::uint32_t module, std::int64_t library);
  std::int64_t SymbolAt(std::uint32_t func, std::int64_t library, std::int64_t address);
  void WriteStackTable(JsonWriter& json) const;
  void WriteFrameTable(JsonWriter& json) const;
  void WriteFuncTable(JsonWriter& json) const;
  void WriteResources(JsonWriter& json) const;
  void WriteNativeSymbols(JsonWriter& json) const;
  void WriteSources(JsonWriter& json) const;

  const ProfileView& view_;
  std::vector<std::string> short_names_;
  StringTable texts_;
  std::vector<Frame> frames_;
  std::vector<Range> frame_ranges_;  // of each frame of the profile: from the outermost function
  std::vector<Func> funcs_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> func_numbers_;
  std::vector<NativeSymbol> native_symbols_;
  absl::flat_hash_map<std::uint32_t, std::int64_t> symbol_numbers_;  // by func
  std::vector<Library> libraries_;
  std::vector<std::int64_t> library_numbers_;                   // of each module
  std::map<std::uint32_t, std::int64_t> source_numbers_;        // by text
  std::vector<std::uint32_t> sources_;                          // their texts
  std::vector<std::pair<std::int64_t, std::uint32_t>> stacks_;  // prefix, frame
  std::vector<std::int64_t> stack_of_;                          // of each node
};

// An ELF build id as Breakpad's id of a file: its first 16 bytes as a GUID, with the byte order of
// its first three numbers reversed, and an age of 0. A build id of another form is left as it is.
std::string BreakpadId(std::string_view build_id);

}  // namespace strobe::internal
