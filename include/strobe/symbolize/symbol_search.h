// SymbolSearch: where the files of a profile's images are looked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/module_map.h"

namespace strobe {

// A file counts only if it has the module's build id. So a directory may hold anything, and the
// order of the lists decides nothing but the time. The debug information of a PE image is looked
// for in the image only.
struct SymbolSearch {
  // Directories of images that are not at their own paths, such as those of another machine. Below
  // each: the module's whole path, <build id>/<file name> as pprof has it, and <file name>.
  std::vector<std::string> image_directories{};
  // Directories of separate debug information, as GDB has them. Below each:
  // .build-id/ab/cdef.debug, and the image's own directory, for the name that the image's section
  // .gnu_debuglink gives. That name is also looked for beside the image, and there in ".debug".
  std::vector<std::string> debug_directories = {"/usr/lib/debug"};
  // Directories in which debuginfod's client keeps what it has fetched:
  // <build id>/debuginfo and <build id>/executable.
  std::vector<std::string> debuginfod_caches{};
  // Fetches the debug information with a build id from another machine, and returns its path; empty
  // if no machine has it. The symbolizer calls it for an ELF image whose files on this machine have
  // no debug information, and may call it several times. nullptr: nothing is fetched.
  std::function<std::string(const std::string& build_id)> fetch{};
};

// The paths that the module's image may have, its own first. Those of a running program also have
// the kernel's links to them, which stay valid after the file is deleted or replaced; to follow the
// link to a library needs root's rights.
std::vector<std::string> ImagePaths(const Module& module, const SymbolSearch& search);

// The paths that the separate debug information of an image at `image_path` may have. `link` is the
// name in its section .gnu_debuglink; empty if it has none.
std::vector<std::string> DebugPaths(const Module& module, const std::string& image_path,
                                    const std::string& link, const SymbolSearch& search);

// The path of the module's debug information that `search.fetch` has fetched; empty if there is
// none.
std::string FetchedPath(const Module& module, const SymbolSearch& search);

// The paths of a list as an environment variable has it: separated by ':' or ';', where a ':' after
// a drive's letter separates nothing.
std::vector<std::string> ParsePathList(std::string_view list);

// The directory in which debuginfod's client keeps what it has fetched for this user. Empty if the
// environment names none.
std::string DebuginfodCache(
    const std::function<std::optional<std::string>(const char* name)>& environment);

}  // namespace strobe
