#include "strobe/runtime/drain/sample_intake.h"

#include <algorithm>

namespace strobe::internal {

std::uint32_t SampleIntake::AddThread(std::uint64_t id, const std::string& name) {
  if (free_.empty()) {
    const std::size_t count = thread_count_;
    // Reserves room for all numbers, so that RemoveThread needs no memory.
    if (free_.capacity() <= count) free_.reserve(std::max<std::size_t>(2 * count, 16));
    free_.push_back(thread_count_++);
  }
  const std::uint32_t thread = free_.back();
  recorder_.AddThread(thread, id, name);
  free_.pop_back();
  return thread;
}

void SampleIntake::RemoveThread(std::uint32_t thread) {
  recorder_.RemoveThread(thread);
  free_.push_back(thread);
}

SampleIntake::Values SampleIntake::AddStack(std::uint32_t thread, const StackDelta& stack,
                                            const Values& amounts, const SampleContext& context,
                                            std::int64_t time_ns) {
  const Values values = ValuesOf([&](std::size_t type) { return amounts[type]; });
  recorder_.Add(thread, stack, Row(values), context, time_ns);
  return values;
}

bool SampleIntake::ExtendLast(std::uint32_t thread, const Values& amounts,
                              const SampleContext& context, std::int64_t time_ns) {
  return recorder_.ExtendLast(thread, Row(amounts), context, time_ns);
}

}  // namespace strobe::internal
