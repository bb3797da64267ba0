#include "strobe/runtime/sample_intake.h"

#include <utility>

namespace strobe::internal {

std::uint32_t SampleIntake::AddThread(std::uint64_t id, std::string name,
                                      std::span<const std::int64_t> scales) {
  if (free_.empty()) {
    const std::size_t count = threads_.size();
    // Room for all threads, so that no end of a thread needs any.
    if (free_.capacity() <= count) free_.reserve(std::max<std::size_t>(2 * count, 16));
    scales_.resize((count + 1) * layout_.value_count);
    threads_.push_back(0);
    free_.push_back(static_cast<std::uint32_t>(count));
  }
  const std::uint32_t thread = free_.back();
  threads_[thread] = recording_.AddThread(id, std::move(name));
  free_.pop_back();
  std::copy_n(scales.begin(), layout_.value_count,
              scales_.begin() + static_cast<std::ptrdiff_t>(thread * layout_.value_count));
  return thread;
}

void SampleIntake::RemoveThread(std::uint32_t thread) {
  recording_.RemoveThread(threads_[thread]);
  free_.push_back(thread);
}

bool SampleIntake::ExtendLast(std::uint32_t thread, std::size_t value_type, std::int64_t amount,
                              std::uint64_t context, Values& values) {
  values = ValuesOf(thread, [&](std::size_t type) { return type == value_type ? amount : 0; });
  return recording_.ExtendLast(threads_[thread], Row(values), context);
}

}  // namespace strobe::internal
