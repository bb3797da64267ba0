// What the tests of the file exporter share, those for every system and those for one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/platform/file_exporter.h"

namespace strobe::testing {

namespace fs = std::filesystem;

inline std::vector<std::string> List(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const fs::path& path, std::string_view text = "x") {
  std::ofstream(path, std::ios::binary) << text;
}

class FileExporterTest : public ::testing::Test {
 protected:
  [[nodiscard]] ExporterOptions Options(std::int64_t max_files = 100,
                                        std::int64_t max_bytes = 1 << 20) const {
    return {.directory = directory_.string(), .max_files = max_files, .max_bytes = max_bytes};
  }

  static absl::StatusOr<std::string> Export(FileExporter& exporter, std::uint64_t sequence,
                                            std::string_view bytes = "bytes",
                                            std::string program = "server",
                                            std::uint64_t process_id = 77,
                                            std::string_view suffix = ".pb.gz") {
    Profile profile;
    profile.program = std::move(program);
    profile.process_id = process_id;
    profile.sequence = sequence;
    return exporter.Export(ExportRequest{bytes, suffix, "application/octet-stream", profile, {}});
  }

  // Sets when a file was last modified, in hours before now.
  void MakeOlder(const std::string& name, int hours) const {
    fs::last_write_time(directory_ / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  TemporaryDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

}  // namespace strobe::testing
