#include "strobe/worker/serve/worker_code.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"

namespace strobe::internal {

void WorkerCode::Update(const SharedRanges& ranges, CodeRegistry& registry) {
  const std::uint64_t version = ranges.version();
  if (version == version_) return;
  std::vector<SharedRanges::Range> now = ranges.Copy();
  std::ranges::sort(now, {}, &SharedRanges::Range::number);
  std::erase_if(known_, [&](const auto& known) {
    if (std::ranges::binary_search(now, known.first, {}, &SharedRanges::Range::number))
      return false;
    if (known.second != 0) registry.Remove(known.second);
    return true;
  });
  for (const SharedRanges::Range& range : now) {
    Address& start = known_[range.number];
    if (start != 0) continue;
    const absl::Status status =
        registry.Add({.name = range.name,
                      .start = reinterpret_cast<const void*>(range.start),
                      .bytes = range.bytes,
                      .eh_frame = {reinterpret_cast<const std::byte*>(range.eh_frame_address),
                                   static_cast<std::size_t>(range.eh_frame_bytes)}});
    if (status.ok()) start = range.start;
  }
  version_ = version;
}

}  // namespace strobe::internal
