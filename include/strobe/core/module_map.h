// Which mapped image an address belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/address.h"

namespace strobe {

// A program and a shared library are images with a file. The vdso is an image that the kernel maps,
// without a file. Generated code is neither: the program registers its ranges.
enum class ModuleKind : std::uint8_t { kProgram, kSharedLibrary, kVdso, kGeneratedCode };

// Of an image.
enum class ImageFormat : std::uint8_t { kElf, kPe };

// One executable mapping of an ELF or PE image, or a range of generated code: what pprof calls a
// mapping.
struct Module {
  Address start = 0;              // of the executable segment in memory
  Address limit = 0;              // one past its end
  std::uint64_t file_offset = 0;  // of `start` in the file
  // What is added to the file's own virtual addresses; of a Windows image, where it begins in
  // memory.
  Address load_bias = 0;
  // UTF-8 or the system's bytes; absolute where known. For display only, where the kind has no
  // file: "[vdso]", or the name of generated code.
  std::string path;
  std::string build_id;  // lower-case hexadecimal; empty where the image has none
  ModuleKind kind = ModuleKind::kSharedLibrary;
  ImageFormat format = ImageFormat::kElf;
  // In memory, of its index of frame information (.eh_frame_hdr); 0 where it has none.
  Address unwind_address = 0;
  // In memory, of that information itself (.eh_frame), where there is no index; 0 where that is not
  // known.
  Address eh_frame_address = 0;
  std::uint64_t eh_frame_bytes = 0;  // its length; 0 where it has its end marked
  // In memory, of a Windows image's frame information (.pdata), which counts all from load_bias; 0
  // elsewhere.
  Address pdata_address = 0;
  std::uint32_t pdata_bytes = 0;  // its length
  // Where the first function of a coroutine returns to; 0 where that is not in this module.
  Address stack_end = 0;
  // Of an image without a build id: another when its file has been written anew. 0 where that is
  // not known.
  std::uint64_t file_version = 0;
  // Of generated code: another for each registration, so that a new one at the same place is
  // another module. 0 for an image.
  std::uint64_t code_number = 0;

  [[nodiscard]] bool has_file() const {
    return kind == ModuleKind::kProgram || kind == ModuleKind::kSharedLibrary;
  }

  friend bool operator==(const Module&, const Module&) = default;
};

// Whether one of `modules`, sorted by start and none overlapping, has a byte in [start, limit).
[[nodiscard]] bool Overlaps(std::span<const Module> modules, Address start, Address limit);

// A set of modules sorted by start, none overlapping.
class ModuleMap {
 public:
  ModuleMap() = default;
  // Sorts; leaves out empty ones and, of two that overlap, the one that starts later.
  explicit ModuleMap(std::vector<Module> modules);

  // Takes all generated code out, and puts `code` in, which is sorted by start and does not
  // overlap, but for what overlaps an image.
  void ReplaceGenerated(std::span<const Module> code);

  // Index into modules() of the module that holds `address`.
  [[nodiscard]] std::optional<std::uint32_t> Find(Address address) const;

  [[nodiscard]] const std::vector<Module>& modules() const { return modules_; }

  friend bool operator==(const ModuleMap&, const ModuleMap&) = default;

 private:
  std::vector<Module> modules_;
};

}  // namespace strobe
