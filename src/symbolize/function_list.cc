#include "function_list.h"

#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

std::string KeyOf(std::string_view name, std::string_view file) {
  std::string key(name);
  key.push_back('\0');
  return key.append(file);
}

}  // namespace

std::uint32_t FunctionList::Resolved(std::string_view system_name, std::string_view file,
                                     std::uint32_t line) {
  const auto [place, is_new] = resolved_.try_emplace(KeyOf(system_name, file),
                                                     static_cast<std::uint32_t>(functions_.size()));
  if (is_new) {
    name_bytes_ += system_name.size() + file.size();
    functions_.push_back({.name = demangler_.Demangle(system_name),
                          .system_name = ValidUtf8(system_name),
                          .file = ValidUtf8(file)});
  }
  std::uint32_t& known_line = functions_[place->second].line;
  if (known_line == 0) known_line = line;
  return place->second;
}

std::uint32_t FunctionList::Unresolved(const std::string& name, std::string_view file) {
  const auto [place, is_new] =
      unresolved_.try_emplace(KeyOf(name, file), static_cast<std::uint32_t>(functions_.size()));
  if (is_new) {
    functions_.push_back(
        {.name = name, .system_name = name, .resolved = false, .file = ValidUtf8(file)});
  }
  return place->second;
}

}  // namespace strobe::internal
