#include "module_files.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr char kOwnProgramPath[] = "/proc/self/exe";

bool IsBuildId(std::string_view text) {
  return text.size() > 2 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::optional<ElfFile> OpenFor(const Module& module, const ByteSource& source) {
  std::optional<ElfFile> file = ElfFile::Open(source);
  if (!file.has_value() || file->build_id() != module.build_id) return std::nullopt;
  if (module.build_id.empty() && !file->Maps(module.file_offset, module.start - module.load_bias))
    return std::nullopt;
  return file;
}

std::vector<std::string> PathsOf(const Module& module, const std::string& debug_directory) {
  std::vector<std::string> paths = {module.path};
  if (IsBuildId(module.build_id)) {
    if (!debug_directory.empty()) {
      paths.push_back(absl::StrCat(debug_directory, "/", module.build_id.substr(0, 2), "/",
                                   module.build_id.substr(2), ".debug"));
    }
    if (module.kind == ModuleKind::kProgram) paths.push_back(kOwnProgramPath);
  }
  return paths;
}

}  // namespace strobe::internal
