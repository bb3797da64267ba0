#include "ui/output_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

bool Write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << bytes).flush()) return false;
  file.close();
  return !file.fail();
}

}  // namespace

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  const std::filesystem::path place(std::u8string(path.begin(), path.end()));
  std::error_code error;
  if (std::filesystem::exists(place, error) && !std::filesystem::is_regular_file(place, error)) {
    if (Write(place, bytes)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  std::filesystem::path temporary = place;
  temporary += ".new";
  if (Write(temporary, bytes)) {
    std::filesystem::rename(temporary, place, error);
    if (!error) return absl::OkStatus();
  }
  const std::string reason = error ? absl::StrCat(": ", error.message()) : std::string();
  std::filesystem::remove(temporary, error);
  return absl::UnavailableError(absl::StrCat("cannot write ", path, reason));
}

absl::Status CheckOutput(const std::string& path) {
  std::filesystem::path temporary(std::u8string(path.begin(), path.end()));
  std::error_code error;
  if (std::filesystem::exists(temporary, error) && !std::filesystem::is_directory(temporary, error))
    return absl::OkStatus();
  temporary += ".new";
  const bool is_directory = std::filesystem::is_directory(path, error);
  if (is_directory || !Write(temporary, ""))
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  std::filesystem::remove(temporary, error);
  return absl::OkStatus();
}

}  // namespace strobe::internal
