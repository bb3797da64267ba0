#include "jit_dumps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ui/terminal.h"

namespace strobe::internal {

std::uint32_t JitDumps::Of(std::uint32_t process, const std::shared_ptr<const ProcessCode>& code) {
  if (code == nullptr) return kNone;
  if (code == last_code_ && process == last_process_) return last_;
  last_code_ = code;
  last_process_ = process;
  last_ = kNone;
  for (const auto& module : code->modules()) {
    if (JitDump::IsPath(module->module.path)) last_ = Open(process, module->module.path);
  }
  return last_;
}

std::uint32_t JitDumps::Open(std::uint32_t process, const std::string& path) {
  const auto known = std::ranges::find_if(
      dumps_, [&](const Dump& dump) { return dump.process == process && dump.path == path; });
  if (known != dumps_.end()) return static_cast<std::uint32_t>(known - dumps_.begin());
  if (dumps_.size() == kMaxDumps) return kNone;
  // A process that has ended has no root.
  for (const std::string& root : {absl::StrCat("/proc/", process, "/root"), std::string()}) {
    std::unique_ptr<ByteSource> file = OpenFileOf(process, root + path);
    if (file == nullptr) continue;
    dumps_.push_back({.process = process, .path = path, .file = std::move(file)});
    return static_cast<std::uint32_t>(dumps_.size() - 1);
  }
  return kNone;
}

std::optional<std::string_view> JitDumps::Find(std::uint32_t number, Address address,
                                               TimeSpan times) {
  if (std::exchange(read_number_, number) != number) code_ = JitDump();
  code_.Read(*dumps_[number].file);
  return code_.Find(address, times);
}

}  // namespace strobe::internal
