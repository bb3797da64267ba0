// SampleIntake: turns the records of threads into the rows of recordings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/record.h"
#include "strobe/runtime/drain/recorder.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Depends on no platform, provider or thread. It gets as data: the threads' names, and the modules
// that their addresses belong to. Collector thread only. A call that
// throws std::bad_alloc has added nothing, and can be repeated.
class SampleIntake {
 public:
  using Values = std::array<std::int64_t, kMaxValueTypes>;

  enum class Outcome : std::uint8_t {
    kAdded,
    kOverflow,      // added to the thread's [overflow]: the next record must share nothing with it
    kUnreadable,    // no capture can have written it; nothing was added; the next shares nothing
    kMissingTable,  // its walk lacks the table of `missing_pc`, and nothing was added
  };
  struct Result {
    Outcome outcome = Outcome::kUnreadable;
    RecordView record{};  // valid as long as the record's bytes; unless kUnreadable
    StackEnd end{};       // of the whole stack
    Values values{};      // of kAdded and kOverflow: the row
    std::optional<Address> missing_pc{};
  };

  // `columns` are those of the continuous recording; see Recorder.
  SampleIntake(const ValueLayout& layout, std::vector<std::size_t> columns,
               std::size_t memory_limit_bytes, const Recording::Time& begin)
      : layout_(layout), recorder_(std::move(columns), memory_limit_bytes, begin) {}

  // Returns a number for a thread.
  std::uint32_t AddThread(std::uint64_t id, const std::string& name);
  // Frees the number. Allocates no memory.
  void RemoveThread(std::uint32_t thread);

  // The modules that records with `generation` refer to; see ModuleHistory::Add.
  void SetModules(std::uint32_t generation, const ModuleMap& map) {
    recorder_.SetModules(generation, map);
  }

  // Adds a record of the thread, aligned to 8 bytes. If the capture lacked a table for the rest of
  // its walk, finish(slice, stack) finishes the walk, or returns the address of code whose table is
  // missing.
  template <class Finish>
  Result Add(std::uint32_t thread, std::span<const std::byte> bytes, Finish&& finish) {
    Result result;
    const RecordView& record = result.record;
    if (!ReadRecord(bytes, layout_.recorded, result.record)) {
      ForgetLast(thread);
      return result;
    }
    StackDelta stack{record.header.module_generation, record.header.end, record.header.shared_count,
                     record.frames, record.skip};
    if (!record.slice.empty()) {
      result.outcome = Outcome::kMissingTable;
      if (result.missing_pc = finish(record.slice, stack); result.missing_pc) return result;
    }
    result.end = stack.end;
    result.values = ValuesOf([&](std::size_t value_type) { return record.Amount(value_type); });
    const bool is_known =
        recorder_.Add(thread, stack, Row(result.values), record.context, record.time_ns);
    result.outcome = is_known ? Outcome::kAdded : Outcome::kOverflow;
    return result;
  }

  // Adds amounts, by value type, to a stack that no record has brought. Returns the added row. The
  // thread's next record must share nothing. For `time_ns` see Aggregator.
  Values AddStack(std::uint32_t thread, const StackDelta& stack, const Values& amounts,
                  const SampleContext& context, std::int64_t time_ns);
  // Adds amounts, by value type, to the thread's last stack, and counts no sample. Returns false,
  // and adds nothing, if there is no such stack, or if it had another context.
  bool ExtendLast(std::uint32_t thread, const Values& amounts, const SampleContext& context,
                  std::int64_t time_ns);
  // Forgets the thread's last stack, because a later stack could not be read: the next record
  // shares nothing with the forgotten one.
  void ForgetLast(std::uint32_t thread) { recorder_.ForgetLast(thread); }
  // See Aggregator.
  void AddPseudo(std::uint32_t thread, PseudoFrame frame, std::span<const std::int64_t> values) {
    recorder_.AddPseudo(thread, frame, values);
  }
  // See Recording.
  void AddLife(std::uint32_t thread, const LifePart& part) { recorder_.AddLife(thread, part); }

  // The recordings that the records are added to.
  [[nodiscard]] Recorder& recorder() { return recorder_; }

 private:
  [[nodiscard]] std::span<const std::int64_t> Row(const Values& values) const {
    return std::span(values).first(layout_.value_count);
  }

  // The row of a sample with amount_of(value type).
  template <class AmountOf>
  [[nodiscard]] Values ValuesOf(const AmountOf& amount_of) const {
    Values values{};
    for (std::size_t i = 0; i < layout_.value_count; ++i) {
      const std::int64_t amount = amount_of(layout_.sources[i]);
      values[i] = layout_.is_count[i] ? static_cast<std::int64_t>(amount != 0) : amount;
    }
    return values;
  }

  const ValueLayout layout_;
  Recorder recorder_;
  std::uint32_t thread_count_ = 0;   // numbers in use or free
  std::vector<std::uint32_t> free_;  // numbers not in use
};

}  // namespace internal
}  // namespace strobe
