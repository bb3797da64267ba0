// Which mapped image an address belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/address.h"

namespace strobe {

// One executable mapping of an ELF or PE image, or a range of generated code: what pprof calls a
// mapping.
struct Module {
  Address start = 0;              // of the executable segment in memory
  Address limit = 0;              // one past its end
  std::uint64_t file_offset = 0;  // of `start` in the file
  Address load_bias =
      // What is added to the file's own virtual addresses; of a Windows image, where it begins in
      // memory.
      0;
  std::string path;  // absolute where known; "[vdso]" for the kernel's; of generated code, its name
  std::string build_id;  // lower-case hexadecimal; empty where the image has none
  Address unwind_address =
      0;  // in memory, of its index of frame information (.eh_frame_hdr); 0 where it has none
  Address eh_frame_address =
      // In memory, of that information itself (.eh_frame), where there is no index; 0 where that is
      // not known.
      0;
  std::uint64_t eh_frame_bytes = 0;  // its length; 0 where it has its end marked
  Address pdata_address =
      // In memory, of a Windows image's frame information (.pdata), which counts all from
      // load_bias; 0 elsewhere.
      0;
  std::uint32_t pdata_bytes = 0;  // its length
  Address stack_end =
      0;  // where the first function of a coroutine returns to; 0 where that is not in this module
  std::uint64_t file_version =
      // Of an image without a build id: another when its file has been written anew. 0 where that
      // is not known.
      0;
  std::uint64_t code_number =
      0;  // of generated code, which no file holds: another for each registration. 0 for an image

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
