#include "strobe/runtime/code_registry.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// Whether a container of modules sorted by start has one that overlaps [start, limit). `after` is the first that starts at `start` or
// above.
template <class Iterator, class ModuleOf>
bool Overlaps(Iterator begin, Iterator after, Iterator end, Address start, Address limit, const ModuleOf& module_of) {
  return (after != end && module_of(*after).start < limit) || (after != begin && module_of(*std::prev(after)).limit > start);
}

}  // namespace

absl::Status CodeRegistry::Add(const GeneratedCode& code) {
  const auto start = reinterpret_cast<Address>(code.start);
  if (start == 0 || code.bytes == 0 || code.bytes > kMaxRangeBytes || start + code.bytes < start) {
    return absl::InvalidArgumentError(absl::StrCat("generated code cannot have ", code.bytes, " bytes from 0x", absl::Hex(start), " on"));
  }
  Module module{.start = start,
                .limit = start + code.bytes,
                .load_bias = start,
                .path = ValidUtf8(code.name.substr(0, kMaxNameBytes)),
                .build_id = {},
                .eh_frame_address = reinterpret_cast<Address>(code.eh_frame.data()),
                .eh_frame_bytes = code.eh_frame.size()};
  if (code.eh_frame.empty()) module.eh_frame_address = 0;
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.lower_bound(module.start);
  if (Overlaps(ranges_.begin(), after, ranges_.end(), module.start, module.limit,
               [](const auto& range) -> const Module& { return range.second; })) {
    return absl::AlreadyExistsError("generated code is registered there already");
  }
  if (ranges_.size() == kMaxRanges) {
    return absl::ResourceExhaustedError(absl::StrCat("no more than ", kMaxRanges, " ranges of generated code can be registered at a time"));
  }
  module.code_number = ++last_number_;
  ranges_.emplace_hint(after, start, std::move(module));
  version_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

void CodeRegistry::Remove(Address start) {
  if (is_parents_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  ranges_.erase(start);
  version_.fetch_add(1, std::memory_order_release);
}

std::vector<Module> CodeRegistry::Join(std::vector<Module> images) const {
  const ModuleMap sorted(images);
  const auto& loaded = sorted.modules();
  const std::lock_guard lock(mutex_);
  for (const auto& [start, module] : ranges_) {
    const auto after =
        std::lower_bound(loaded.begin(), loaded.end(), start, [](const Module& image, Address value) { return image.start < value; });
    const auto module_of = [](const Module& image) -> const Module& { return image; };
    if (!Overlaps(loaded.begin(), after, loaded.end(), start, module.limit, module_of)) images.push_back(module);
  }
  return images;
}

}  // namespace strobe::internal
