#include "strobe/runtime/code/code_registry.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// The first module that starts at `start` or above. `modules` are sorted by start.
std::vector<Module>::const_iterator FirstFrom(const std::vector<Module>& modules, Address start) {
  return std::lower_bound(modules.begin(), modules.end(), start,
                          [](const Module& module, Address value) { return module.start < value; });
}

}  // namespace

absl::Status CodeRegistry::Add(const GeneratedCode& code) {
  const auto start = reinterpret_cast<Address>(code.start);
  if (start == 0 || code.bytes == 0 || code.bytes > kMaxRangeBytes || start + code.bytes < start) {
    return absl::InvalidArgumentError(absl::StrCat("generated code cannot have ", code.bytes,
                                                   " bytes from 0x", absl::Hex(start), " on"));
  }
  Module module{.start = start,
                .limit = start + code.bytes,
                .load_bias = start,
                .path = ValidUtf8(code.name.substr(0, GeneratedCode::kMaxNameBytes)),
                .build_id = {},
                .kind = ModuleKind::kGeneratedCode,
                .eh_frame_address = reinterpret_cast<Address>(code.eh_frame.data()),
                .eh_frame_bytes = code.eh_frame.size()};
  if (code.eh_frame.empty()) module.eh_frame_address = 0;
  const std::lock_guard lock(mutex_);
  if (Overlaps(ranges_, module.start, module.limit)) {
    return absl::AlreadyExistsError("generated code is registered there already");
  }
  if (ranges_.size() == kMaxRanges) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no more than ", kMaxRanges, " ranges of generated code can be registered at a time"));
  }
  module.code_number = ++last_number_;
  ranges_.insert(FirstFrom(ranges_, start), std::move(module));
  version_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

void CodeRegistry::Remove(Address start) {
  if (fork_count_() != own_fork_count_) return;
  const std::lock_guard lock(mutex_);
  ranges_.erase(FirstFrom(ranges_, start));
  version_.fetch_add(1, std::memory_order_release);
}

void CodeRegistry::Join(ModuleMap& map) const {
  const std::lock_guard lock(mutex_);
  map.ReplaceGenerated(ranges_);
}

}  // namespace strobe::internal
