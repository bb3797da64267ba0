#include "platform/test_system.h"

#include <windows.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strobe::testing {

void SetVariable(const char* name, const std::string& value) { _putenv_s(name, value.c_str()); }
void UnsetVariable(const char* name) { _putenv_s(name, ""); }

std::string ProcessorName() {
  SYSTEM_INFO info;
  GetNativeSystemInfo(&info);
  switch (info.wProcessorArchitecture) {
    case PROCESSOR_ARCHITECTURE_AMD64: return "x86_64";
    case PROCESSOR_ARCHITECTURE_ARM64: return "aarch64";
    default: return "another";
  }
}

std::size_t DataCacheLineBytes() {
  DWORD bytes = 0;
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> entries(bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  if (GetLogicalProcessorInformation(entries.data(), &bytes) == 0) return 0;
  for (const auto& entry : entries) {
    if (entry.Relationship == RelationCache && entry.Cache.Level == 1 && entry.Cache.Type != CacheInstruction) return entry.Cache.LineSize;
  }
  return 0;
}

TemporaryDirectory::TemporaryDirectory() {
  // Fails where the name is taken, and a later count gives the next one.
  do {
    path_ = std::filesystem::temp_directory_path() / absl::StrCat("strobe_test_", GetCurrentProcessId(), "_", GetTickCount64());
  } while (!std::filesystem::create_directory(path_));
}

}  // namespace strobe::testing
