#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "quickstart_workload.h"

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 4 << 20;

// Appends the file if it can be read and is not empty; special files and what does not fit are
// passed over.
void AddFile(const fs::path& path, std::size_t max_bytes, std::size_t& total,
             std::vector<InputFile>& files) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size == 0 || size > kMaxFileBytes || total + size > max_bytes) return;
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (bytes.empty()) return;
  total += bytes.size();
  files.push_back({path.string(), std::move(bytes)});
}

}  // namespace

std::vector<InputFile> ReadTextFiles(std::size_t max_bytes) {
  std::vector<InputFile> files;
  std::size_t total = 0;
  for (const char* root : {"/var/lib/dpkg", "/usr/share/dict", "/usr/share/common-licenses",
                           "/usr/include", "/etc", "/usr/share/doc"}) {
    std::error_code error;
    std::vector<fs::path> paths;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(root, options, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_regular_file(ignored)) paths.push_back(entry->path());
    }
    std::sort(paths.begin(), paths.end());  // the same work on every run
    for (const fs::path& path : paths) AddFile(path, max_bytes, total, files);
  }
  return files;
}

std::vector<InputFile> ReadMappedFiles(std::size_t max_bytes) {
  std::set<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos) paths.insert(line.substr(path));
  }
  std::vector<InputFile> files;
  std::size_t total = 0;
  for (const std::string& path : paths) AddFile(path, max_bytes, total, files);
  return files;
}
