#include "strobe/runtime/sample_intake.h"

#include <algorithm>

namespace strobe::internal {

std::uint32_t SampleIntake::AddThread(std::uint64_t id, const std::string& name,
                                      std::span<const std::int64_t> scales) {
  if (free_.empty()) {
    const std::size_t count = thread_count_;
    // Reserves room for all numbers, so that RemoveThread needs no memory.
    if (free_.capacity() <= count) free_.reserve(std::max<std::size_t>(2 * count, 16));
    scales_.resize((count + 1) * layout_.value_count);
    free_.push_back(thread_count_++);
  }
  const std::uint32_t thread = free_.back();
  recorder_.AddThread(thread, id, name);
  free_.pop_back();
  std::copy_n(scales.begin(), layout_.value_count,
              scales_.begin() + static_cast<std::ptrdiff_t>(thread * layout_.value_count));
  return thread;
}

void SampleIntake::RemoveThread(std::uint32_t thread) {
  recorder_.RemoveThread(thread);
  free_.push_back(thread);
}

bool SampleIntake::ExtendLast(std::uint32_t thread, std::size_t value_type, std::int64_t amount,
                              std::uint64_t context, Values& values) {
  values = ValuesOf(thread, [&](std::size_t type) { return type == value_type ? amount : 0; });
  return recorder_.ExtendLast(thread, Row(values), context);
}

}  // namespace strobe::internal
