#include "strobe/worker/shared/shared_ranges.h"

#include <cstring>
#include <string_view>

namespace strobe::internal {

void SharedRanges::Fill(Place& place, const GeneratedCode& code) noexcept {
  place.start.store(reinterpret_cast<Address>(code.start), std::memory_order_relaxed);
  place.bytes.store(code.bytes, std::memory_order_relaxed);
  place.eh_frame_address.store(reinterpret_cast<Address>(code.eh_frame.data()),
                               std::memory_order_relaxed);
  place.eh_frame_bytes.store(code.eh_frame.size(), std::memory_order_relaxed);
  const std::string_view name = code.name.substr(0, GeneratedCode::kMaxNameBytes);
  place.name_bytes.store(name.size(), std::memory_order_relaxed);
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < name.size(); ++i) {
    std::uint64_t word = 0;
    const std::string_view part = name.substr(i * sizeof(word), sizeof(word));
    std::memcpy(&word, part.data(), part.size());
    place.name[i].store(word, std::memory_order_relaxed);
  }
}

// A reader that sees a word of the new range also sees that the number has changed.
bool SharedRanges::Add(const GeneratedCode& code) noexcept {
  for (Place& place : places_) {
    std::uint64_t number = kFree;
    if (place.number.load(std::memory_order_relaxed) != kFree ||
        !place.number.compare_exchange_strong(number, kInWork, std::memory_order_seq_cst))
      continue;
    std::atomic_thread_fence(std::memory_order_release);
    Fill(place, code);
    place.number.store(last_number_.fetch_add(1, std::memory_order_relaxed) + 1,
                       std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

void SharedRanges::Remove(Address start) noexcept {
  for (Place& place : places_) {
    std::uint64_t number = place.number.load(std::memory_order_acquire);
    if (number == kFree || number == kInWork ||
        place.start.load(std::memory_order_relaxed) != start ||
        !place.number.compare_exchange_strong(number, kFree, std::memory_order_seq_cst))
      continue;
    version_.fetch_add(1, std::memory_order_release);
    return;
  }
}

SharedRanges::Range SharedRanges::Read(const Place& place) {
  Range range{.start = place.start.load(std::memory_order_relaxed),
              .bytes = place.bytes.load(std::memory_order_relaxed),
              .eh_frame_address = place.eh_frame_address.load(std::memory_order_relaxed),
              .eh_frame_bytes = place.eh_frame_bytes.load(std::memory_order_relaxed),
              .name = {}};
  std::array<std::uint64_t, kNameWords> name{};
  for (std::size_t i = 0; i < kNameWords; ++i)
    name[i] = place.name[i].load(std::memory_order_relaxed);
  range.name.assign(reinterpret_cast<const char*>(name.data()),
                    std::min<std::uint64_t>(place.name_bytes.load(std::memory_order_relaxed),
                                            GeneratedCode::kMaxNameBytes));
  return range;
}

std::vector<SharedRanges::Range> SharedRanges::Copy() const {
  std::vector<Range> ranges;
  for (const Place& place : places_) {
    const std::uint64_t number = place.number.load(std::memory_order_acquire);
    if (number == kFree || number == kInWork) continue;
    Range range = Read(place);
    range.number = number;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (place.number.load(std::memory_order_relaxed) == number) ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace strobe::internal
