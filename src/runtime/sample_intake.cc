#include "strobe/runtime/sample_intake.h"

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

void SampleIntake::AddStack(std::uint32_t thread, const StackDelta& stack, std::size_t value_type,
                            std::int64_t amount, const SampleContext& context, std::int64_t time_ns,
                            Values& values) {
  values = ValuesOf([&](std::size_t type) { return type == value_type ? amount : 0; });
  recorder_.Add(thread, stack, Row(values), context, time_ns);
}

bool SampleIntake::ExtendLast(std::uint32_t thread, std::size_t value_type, std::int64_t amount,
                              const SampleContext& context, std::int64_t time_ns, Values& values) {
  values = {};
  values[value_type] = amount;
  return recorder_.ExtendLast(thread, Row(values), context, time_ns);
}

}  // namespace strobe::internal
