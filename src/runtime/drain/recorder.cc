#include "strobe/runtime/drain/recorder.h"

#include <algorithm>

namespace strobe::internal {

std::optional<std::size_t> Recorder::Begin(std::vector<std::size_t> columns,
                                           const Recording::Time& begin) {
  const auto place = std::ranges::find(others_, false, &Place::is_taken);
  if (place == others_.end()) return std::nullopt;
  const bool has_begun = HasMemoryFor([&] {
    place->recording.emplace(std::move(columns), memory_limit_bytes_, begin);
    place->recording->Join(continuous_);
  });
  if (!has_begun) {
    place->recording.reset();
    return std::nullopt;
  }
  place->is_taken = true;
  ++taken_;
  return static_cast<std::size_t>(place - others_.begin());
}

void Recorder::End(std::size_t place) {
  others_[place].recording.reset();
  others_[place].is_taken = false;
  --taken_;
}

bool Recorder::WasUnloaded(std::uint32_t generation, Address address) const {
  return continuous_.WasUnloaded(generation, address) ||
         std::ranges::any_of(others_, [&](const Place& place) {
           return place.recording && place.recording->WasUnloaded(generation, address);
         });
}

std::size_t Recorder::memory_bytes() const {
  std::size_t bytes = continuous_.memory_bytes();
  for (const Place& place : others_) bytes += place.recording ? place.recording->memory_bytes() : 0;
  return bytes;
}

}  // namespace strobe::internal
