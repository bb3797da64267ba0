// What tests ask of the operating system, once for each: the sources are in the folder of the system's name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace strobe::testing {

// A variable of this process's environment. Not while another thread looks at the environment.
void SetVariable(const char* name, const std::string& value);
void UnsetVariable(const char* name);

// The running machine's, not the build's: "x86_64", "aarch64" or another.
std::string ProcessorName();

// 0 where the system does not say.
std::size_t DataCacheLineBytes();

// A directory of one test's own, removed at the end with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace strobe::testing
