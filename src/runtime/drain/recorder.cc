#include "strobe/runtime/drain/recorder.h"

#include <algorithm>

namespace strobe::internal {

std::optional<std::size_t> Recorder::Begin(std::vector<std::size_t> columns,
                                           const Recording::Time& begin) {
  const std::span<Place> places = std::span(others_).first(kMaxRecordings);
  const auto place = std::ranges::find(places, false, &Place::is_taken);
  if (place == places.end() || !BeginIn(*place, std::move(columns), begin)) return std::nullopt;
  return static_cast<std::size_t>(place - places.begin());
}

bool Recorder::BeginKept(std::vector<std::size_t> columns, const Recording::Time& begin) {
  if (others_[kKeptPlace].is_taken) End(kKeptPlace);
  return BeginIn(others_[kKeptPlace], std::move(columns), begin);
}

bool Recorder::BeginIn(Place& place, std::vector<std::size_t> columns,
                       const Recording::Time& begin) {
  const bool has_begun = HasMemoryFor([&] {
    place.recording.emplace(std::move(columns), memory_limit_bytes_, begin);
    place.recording->Join(continuous_);
  });
  if (!has_begun) {
    place.recording.reset();
    return false;
  }
  place.is_taken = true;
  ++taken_;
  return true;
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
