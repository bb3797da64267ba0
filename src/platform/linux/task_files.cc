#include "task_files.h"

#include <dirent.h>

#include <charconv>
#include <memory>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "files/small_file.h"

namespace strobe::internal {

std::vector<std::uint64_t> ThreadsIn(const std::string& task_directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(task_directory.c_str()), &closedir);
  std::vector<std::uint64_t> threads;
  while (directory != nullptr && threads.size() < kMaxListedThreads) {
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    std::uint64_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc())
      threads.push_back(id);
  }
  return threads;
}

bool IsAnyRunnable(const std::string& task_directory) {
  for (const std::uint64_t id : ThreadsIn(task_directory)) {
    const std::string text = ReadStart(absl::StrCat(task_directory, "/", id, "/stat"));
    // The state follows the name, which may hold anything.
    const std::size_t name_end = text.rfind(") ");
    if (name_end != std::string::npos && text[name_end + 2] == 'R') return true;
  }
  return false;
}

std::string ThreadNameIn(const std::string& task_directory, std::uint64_t thread_id) {
  const std::string text = ReadStart(absl::StrCat(task_directory, "/", thread_id, "/comm"));
  return text.substr(0, text.find('\n'));
}

}  // namespace strobe::internal
