// Mapping: a range of a process's address space that has code, as an mmap event or
// /proc/PID/maps says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/address.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {

struct Mapping {
  Address start = 0;
  Address limit = 0;              // one past its end
  std::uint64_t file_offset = 0;  // where `start` lies in the file
  // As the process has it: an absolute path, "[vdso]", or any other name of code without a file.
  // The kernel adds " (deleted)" to the path of a file that has been removed or replaced.
  std::string path;
  std::string build_id{};   // lower-case hexadecimal; empty if the event does not say it
  std::uint64_t inode = 0;  // the number of its file; 0 if the event does not say it

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// The executable mappings in a text in the format of /proc/PID/maps, in its order. Leaves out lines
// that are none.
std::vector<Mapping> ParseMaps(std::string_view maps);

// Those of a process of this machine: by its id, or of the calling process by "self". NotFound if
// there is no such process, or no /proc; PermissionDenied if its mappings may not be read. With
// `files`, code that the process has moved from a file to other memory at the same addresses, as to
// huge pages, has that file and the offset there, if the memory may be read and has the file's
// bytes.
absl::StatusOr<std::vector<Mapping>> ReadMaps(const std::string& process,
                                              const SymbolFiles* files = nullptr);

// NotFound, with the reason why /proc shows no such process: there is none, or no /proc.
absl::Status NoProcessError(const std::string& process);

// The links of /proc that lead to the file of a mapping while the process has it mapped, whatever
// has become of the file's path; best first. To follow the link to a library needs root's rights.
std::vector<std::string> LinksTo(const Mapping& mapping, const std::string& process);

}  // namespace strobe
