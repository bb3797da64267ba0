#include "strobe/symbolize/symbol_search.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace strobe {
namespace {

constexpr char kOwnProgramPath[] = "/proc/self/exe";
constexpr char kOwnMappingPath[] = "/proc/self/map_files/";

bool IsBuildId(std::string_view text) {
  return text.size() > 2 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string FileNameOf(const std::string& path, const char* separators) {
  return path.substr(path.find_last_of(separators) + 1);
}
// Ends in '/', or is empty.
std::string DirectoryOf(const std::string& path) {
  return path.substr(0, path.find_last_of('/') + 1);
}

bool IsDriveLetter(std::string_view element, std::string_view rest) {
  return element.size() == 1 && std::string_view("/\\").find(rest.front()) != std::string::npos;
}

}  // namespace

std::vector<std::string> ImagePaths(const Module& module, const SymbolSearch& search) {
  std::vector<std::string> paths = {module.path};
  const bool is_elf = module.format == ImageFormat::kElf;
  const std::string name = FileNameOf(module.path, is_elf ? "/" : "/\\");
  for (const std::string& directory : search.image_directories) {
    paths.push_back(absl::StrCat(directory, "/", module.path));
    if (IsBuildId(module.build_id))
      paths.push_back(absl::StrCat(directory, "/", module.build_id, "/", name));
    paths.push_back(absl::StrCat(directory, "/", name));
  }
  if (IsBuildId(module.build_id)) {
    for (const std::string& cache : search.debuginfod_caches)
      paths.push_back(absl::StrCat(cache, "/", module.build_id, "/executable"));
    if (is_elf && module.kind == ModuleKind::kProgram) {
      paths.emplace_back(kOwnProgramPath);
    } else if (is_elf && module.start < module.limit) {
      paths.push_back(
          absl::StrCat(kOwnMappingPath, absl::Hex(module.start), "-", absl::Hex(module.limit)));
    }
  }
  return paths;
}

std::vector<std::string> DebugPaths(const Module& module, const std::string& image_path,
                                    const std::string& link, const SymbolSearch& search) {
  std::vector<std::string> paths;
  if (IsBuildId(module.build_id)) {
    for (const std::string& directory : search.debug_directories) {
      paths.push_back(absl::StrCat(directory, "/.build-id/", module.build_id.substr(0, 2), "/",
                                   module.build_id.substr(2), ".debug"));
    }
  }
  if (!link.empty() && link.find('/') == std::string::npos) {
    const std::string own = DirectoryOf(image_path);
    paths.push_back(absl::StrCat(own, link));
    paths.push_back(absl::StrCat(own, ".debug/", link));
    for (const std::string& directory : search.debug_directories)
      paths.push_back(absl::StrCat(directory, "/", own, link));
  }
  if (IsBuildId(module.build_id)) {
    for (const std::string& cache : search.debuginfod_caches)
      paths.push_back(absl::StrCat(cache, "/", module.build_id, "/debuginfo"));
  }
  return paths;
}

std::string FetchedPath(const Module& module, const SymbolSearch& search) {
  return search.fetch && IsBuildId(module.build_id) ? search.fetch(module.build_id) : "";
}

std::vector<std::string> ParsePathList(std::string_view list) {
  std::vector<std::string> paths;
  std::string path;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool separates =
        list[i] == ';' ||
        (list[i] == ':' && !(i + 1 < list.size() && IsDriveLetter(path, list.substr(i + 1))));
    if (!separates) {
      path += list[i];
      continue;
    }
    if (!path.empty()) paths.push_back(path);
    path.clear();
  }
  if (!path.empty()) paths.push_back(path);
  return paths;
}

std::string DebuginfodCache(
    const std::function<std::optional<std::string>(const char* name)>& environment) {
  const auto value = [&](const char* name) { return environment(name).value_or(""); };
  if (const std::string path = value("DEBUGINFOD_CACHE_PATH"); !path.empty()) return path;
  if (const std::string path = value("XDG_CACHE_HOME"); !path.empty())
    return absl::StrCat(path, "/debuginfod_client");
  if (const std::string path = value("HOME"); !path.empty())
    return absl::StrCat(path, "/.cache/debuginfod_client");
  return "";
}

}  // namespace strobe
