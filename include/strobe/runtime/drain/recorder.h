// Recorder: the recordings of a session. Each gets every record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strobe/aggregate/recording.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/recording_options.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The continuous recording always exists; others begin and end. If memory runs out in one of the
// others, that recording alone ends. If memory runs out in the continuous recording, a call throws
// std::bad_alloc, has added nothing to any recording, and can be repeated. Collector thread only.
class Recorder {
 public:
  // See Recording. Each recording has a memory limit of its own.
  Recorder(std::vector<std::size_t> columns, std::size_t memory_limit_bytes,
           const Recording::Time& begin)
      : memory_limit_bytes_(memory_limit_bytes),
        continuous_(std::move(columns), memory_limit_bytes, begin) {}

  [[nodiscard]] Recording& continuous() { return continuous_; }
  [[nodiscard]] const Recording& continuous() const { return continuous_; }

  // Begins a recording of these columns. Returns its place, valid until End(place). Returns nothing
  // if there are kMaxRecordings already, or memory runs out.
  std::optional<std::size_t> Begin(std::vector<std::size_t> columns, const Recording::Time& begin);
  // Begins one more, whose periods are kept for a later look, in kKeptPlace. Returns false if
  // memory runs out.
  bool BeginKept(std::vector<std::size_t> columns, const Recording::Time& begin);
  static constexpr std::size_t kKeptPlace = kMaxRecordings;
  // The recording in that place; nullptr if memory has run out in it.
  [[nodiscard]] Recording* At(std::size_t place) {
    return others_[place].recording ? &*others_[place].recording : nullptr;
  }
  void End(std::size_t place);

  // The functions below apply to each recording.

  void AddThread(std::uint32_t thread, std::uint64_t id, const std::string& name) {
    continuous_.AddThread(thread, id, name);
    ForEachOther([&](Recording& recording) { recording.AddThread(thread, id, name); });
  }
  void RemoveThread(std::uint32_t thread) {
    continuous_.RemoveThread(thread);
    ForEachOther([&](Recording& recording) { recording.RemoveThread(thread); });
  }
  void SetModules(std::uint32_t generation, const ModuleMap& map) {
    continuous_.SetModules(generation, map);
    ForEachOther([&](Recording& recording) { recording.SetModules(generation, map); });
  }
  // True if a recording has noted that this code is not loaded any more. The recording that has
  // lasted longest has noted most.
  [[nodiscard]] bool WasUnloaded(std::uint32_t generation, Address address) const;
  // False if a recording lacks the last stack, with which this one shares frames.
  bool Add(std::uint32_t thread, const StackDelta& stack, std::span<const std::int64_t> row,
           const SampleContext& context, std::int64_t time_ns = 0) {
    bool is_known = continuous_.Add(thread, stack, row, context, time_ns);
    ForEachOther([&](Recording& recording) {
      if (!recording.Add(thread, stack, row, context, time_ns)) is_known = false;
    });
    return is_known;
  }
  // Returns false if the continuous recording lacks the thread's last stack. If another recording
  // lacks it, that recording adds the row to [overflow].
  bool ExtendLast(std::uint32_t thread, std::span<const std::int64_t> row,
                  const SampleContext& context, std::int64_t time_ns = 0) {
    if (!continuous_.ExtendLast(thread, row, context, time_ns)) return false;
    ForEachOther([&](Recording& recording) {
      if (!recording.ExtendLast(thread, row, context, time_ns))
        recording.AddPseudo(thread, PseudoFrame::kOverflow, row);
    });
    return true;
  }
  void ForgetLast(std::uint32_t thread) {
    continuous_.ForgetLast(thread);
    ForEachOther([&](Recording& recording) { recording.ForgetLast(thread); });
  }
  void AddPseudo(std::uint32_t thread, PseudoFrame frame, std::span<const std::int64_t> row) {
    continuous_.AddPseudo(thread, frame, row);
    ForEachOther([&](Recording& recording) { recording.AddPseudo(thread, frame, row); });
  }
  void AddLife(std::uint32_t thread, const LifePart& part) {
    continuous_.AddLife(thread, part);
    ForEachOther([&](Recording& recording) { recording.AddLife(thread, part); });
  }

  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Place {
    bool is_taken = false;
    std::optional<Recording> recording;
  };

  bool BeginIn(Place& place, std::vector<std::size_t> columns, const Recording::Time& begin);

  template <class Body>
  void ForEachOther(const Body& body) {
    if (taken_ == 0) return;
    for (Place& place : others_) {
      if (place.recording && !HasMemoryFor([&] { body(*place.recording); }))
        place.recording.reset();
    }
  }

  const std::size_t memory_limit_bytes_;
  Recording continuous_;
  std::array<Place, kMaxRecordings + 1> others_;  // the last is kKeptPlace
  std::size_t taken_ = 0;
};

}  // namespace internal
}  // namespace strobe
