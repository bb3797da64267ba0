#include "strobe/worker/shared_ranges.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "strobe/worker/client_platform.h"

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

std::uint64_t ClientCode::ForkCount() { return ClientPlatform::ForkCount(); }

absl::Status ClientCode::Add(const GeneratedCode& code) {
  if (absl::Status status = checked_.Add(code); !status.ok()) return status;
  if (!ClientPlatform::Area().Ranges().Add(code)) {
    checked_.Remove(reinterpret_cast<Address>(code.start));
    return absl::ResourceExhaustedError(
        "the profilers of this process have as much generated code as a worker can be told of");
  }
  ClientPlatform::Area().NoteChange();
  return absl::OkStatus();
}

void ClientCode::Remove(Address start) {
  if (ForkCount() != fork_count_) return;  // the area is another one
  checked_.Remove(start);
  ClientPlatform::Area().Ranges().Remove(start);
  ClientPlatform::Area().NoteChange();
}

void ServedCode::Update(const SharedRanges& ranges, CodeRegistry& registry) {
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
