// The files of mappings, of code that a process has moved away from its file, too.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "strobe/base/visibility.h"
#include "strobe/process/mapping.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// True for a path that leads to a file, or led to one: not "[vdso]", and not memory that has a name
// as a file has, such as huge pages.
bool IsFile(std::string_view path);

// Calls open(path) with the paths that may lead to the file of a mapping, until one returns no
// nullptr, and returns that. If `process` is the id of a process that lives, the path below its
// root directory comes before `paths`, and the links of LinksTo come behind them. If it is empty,
// there are only `paths`.
template <class Open>
auto OpenFirst(const Mapping& mapping, const std::string& process,
               std::span<const std::string> paths, const Open& open) {
  decltype(open(mapping.path)) opened = nullptr;
  if (!process.empty()) opened = open(absl::StrCat("/proc/", process, "/root", mapping.path));
  for (const std::string& path : paths) {
    if (opened != nullptr) return opened;
    opened = open(path);
  }
  if (opened != nullptr || process.empty()) return opened;
  for (const std::string& link : LinksTo(mapping, process)) {
    opened = open(link);
    if (opened != nullptr) break;
  }
  return opened;
}

// Opens the file of a mapping of a process that lives, by OpenFirst with the mapping's own path.
std::shared_ptr<FileSource> OpenMapped(const Mapping& mapping, const std::string& process,
                                       const SymbolFiles& files);

// A program may move its code to memory without a file, at the same addresses: to huge pages, as
// node, Chromium and MySQL can. Returns `moved`, a mapping of such memory, as that of the file that
// its bytes are from: the file of one of `beside`, other mappings of the process, nearest first.
// Nothing if it lies in no segment of code of these files, or if what it has differs there.
std::optional<Mapping> FileOfMoved(const Mapping& moved, std::span<const Mapping> beside,
                                   const std::string& process, const SymbolFiles& files);

}  // namespace internal
}  // namespace strobe
