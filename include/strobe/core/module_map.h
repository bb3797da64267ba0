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

// The file format of an image.
enum class ImageFormat : std::uint8_t { kElf, kPe };

// One executable mapping of an ELF or PE image, or a range of generated code: what pprof calls a
// mapping.
struct Module {
  Address start = 0;              // where the executable segment begins in memory
  Address limit = 0;              // one past its end
  std::uint64_t file_offset = 0;  // where `start` lies in the file
  // ELF: the difference between an address in memory and the file's own virtual address. PE: the
  // address where the image begins in memory.
  Address load_bias = 0;
  // UTF-8 or the system's bytes; absolute if known. If the kind has no file, a name for display
  // only: "[vdso]", or the name of the generated code.
  std::string path;
  std::string build_id;  // lower-case hexadecimal; empty if the image has none
  ModuleKind kind = ModuleKind::kSharedLibrary;
  ImageFormat format = ImageFormat::kElf;
  // Where the index of frame information (.eh_frame_hdr) is in memory; 0 if the image has none.
  Address unwind_address = 0;
  // Where the frame information itself (.eh_frame) is in memory, if there is no index; 0 if
  // unknown.
  Address eh_frame_address = 0;
  std::uint64_t eh_frame_bytes = 0;  // its length; 0 if a terminator marks its end
  // Where the frame information of a PE image (.pdata) is in memory; 0 for other images. Its
  // addresses count from load_bias.
  Address pdata_address = 0;
  std::uint32_t pdata_bytes = 0;  // its length
  // The address that the first function of a coroutine returns to; 0 if not in this module.
  Address stack_end = 0;
  // For an image without a build id: changes when its file has been written anew. 0 if unknown.
  std::uint64_t file_version = 0;
  // For generated code: different for each registration, so that new code at the same address is a
  // different module. 0 for an image.
  std::uint64_t code_number = 0;

  [[nodiscard]] bool has_file() const {
    return kind == ModuleKind::kProgram || kind == ModuleKind::kSharedLibrary;
  }

  friend bool operator==(const Module&, const Module&) = default;
};

// True if one of `modules` has a byte in [start, limit). They must be sorted by start and must not
// overlap.
[[nodiscard]] bool Overlaps(std::span<const Module> modules, Address start, Address limit);

// A set of modules that do not overlap, sorted by start.
class ModuleMap {
 public:
  ModuleMap() = default;
  // Sorts `modules`. Leaves out empty ones and, of two that overlap, the one that starts later.
  explicit ModuleMap(std::vector<Module> modules);

  // Replaces all generated code by `code`, which must be sorted by start and must not overlap.
  // Leaves out ranges that overlap an image.
  void ReplaceGenerated(std::span<const Module> code);

  // Index into modules() of the module that holds `address`.
  [[nodiscard]] std::optional<std::uint32_t> Find(Address address) const;

  [[nodiscard]] const std::vector<Module>& modules() const { return modules_; }

  friend bool operator==(const ModuleMap&, const ModuleMap&) = default;

 private:
  std::vector<Module> modules_;
};

}  // namespace strobe
