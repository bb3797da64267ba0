// UnwindTables: a session's tables, built when a walk needs them, and published to the captures.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "strobe/aggregate/aggregator.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/stack.h"
#include "strobe/runtime/collector_counters.h"
#include "strobe/runtime/stack_slice.h"
#include "strobe/runtime/thread_registry.h"
#include "strobe/symbolize/debug_frame.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// The collector's, or, after it has ended, of the thread that ends the session. What is built stays
// in the arena, for the Profiler's next session.
template <class Traits>
class UnwindTables {
 public:
  // Whether the unwinder is made of tables, and whether it can do without some.
  static constexpr bool kIsUsed =
      std::constructible_from<typename Traits::Unwinder, const UnwindModules*>;
  static constexpr bool kIsLazy = ResumableUnwinder<typename Traits::Unwinder>;

  // Tables that have been replaced, and that a capture may still read.
  static constexpr std::size_t kMaxOld = 16;
  // How often a session reads again what could not be read, beside the times when the modules
  // change.
  static constexpr int kMaxRetries = 3;

  UnwindTables(ThreadRegistry<Traits>& registry, CollectorCounters& counters)
      : registry_(registry), counters_(counters) {
    old_->reserve(kMaxOld + 2);  // one more is left by an Update, and one by Withdraw
  }
  // The tables of a session that could not start are withdrawn here.
  ~UnwindTables() {
    if (published_ != nullptr) Withdraw();
  }
  UnwindTables(const UnwindTables&) = delete;
  UnwindTables& operator=(const UnwindTables&) = delete;

  // Takes over what is loaded now, and publishes what is built of it.
  void Update(const ModuleMap& map) {
    if constexpr (kIsUsed) {
      std::optional<CfiModules>& cfi = registry_.arena()->cfi;
      if (!cfi.has_value()) {
        cfi.emplace(kNativeCfi, &Traits::Platform::ReadMemory, [](const Module& module) {
          return ReadDebugFrame(module, Traits::Platform::Files());
        });
      }
      cfi->Update(map);
      if (!kIsLazy) cfi->BuildAll();
      current_ = cfi->Snapshot();
      Publish();
      // What captures have may be of code that is not there any more.
      if (published_ != current_ && published_ != none_) {
        if (none_ == nullptr)
          none_ = std::make_shared<const UnwindModules>(std::vector<UnwindModules::Entry>(),
                                                        /*is_complete=*/false);
        Show(none_);
      }
    }
  }

  // All that is built; nullptr before the first Update.
  [[nodiscard]] const UnwindModules* current() const { return current_.get(); }

  // Goes on with a walk that its capture had no table for, by current(): from `stack`, as the
  // record has it, to what it is, which stays as it is until the next call. False where a table is
  // still missing. It ends at code that has_gone(address): what is known of that address now is not
  // known of that code.
  template <class HasGone>
  bool Finish(std::span<const std::byte> slice, StackDelta& stack, const HasGone& has_gone) {
    if constexpr (kIsLazy) {
      const std::size_t recorded = std::max<std::size_t>(stack.leaf_first.size(), 1) - 1;
      frames_.assign(stack.leaf_first.begin(), stack.leaf_first.end());
      const typename Traits::Unwinder unwinder(current());
      const WalkResult walk = FinishWalk(
          unwinder, slice, frames_, registry_.arena()->max_frames.load(std::memory_order_relaxed));
      stack.end = walk.end;
      const auto last = std::find_if(frames_.begin() + static_cast<std::ptrdiff_t>(recorded),
                                     frames_.end(), has_gone);
      if (last != frames_.end()) {
        stack.end = StackEnd::kNoUnwindInfo;
        frames_.erase(last + 1, frames_.end());
      } else if (walk.is_pending) {
        missing_pc_ = walk.stop.is_exact ? walk.stop.pc : walk.stop.pc - 1;
        return false;
      }
      stack.shared = 0;
      stack.leaf_first = frames_;
    }
    return true;
  }

  // Builds what the last Finish missed.
  void BuildMissing() { Build(missing_pc_); }

  // Builds what is to be known of the code at `pc`, into current(). Always a new snapshot: for want
  // of memory the last call may have built the table and taken none.
  void Build(Address pc) {
    static_cast<void>(registry_.arena()->cfi->Build(pc));
    current_ = registry_.arena()->cfi->Snapshot();
  }

  // Whether an Update could help a module of which nothing could be read. That it does, it says
  // kMaxRetries times.
  bool ShouldRetry() {
    if constexpr (kIsUsed) {
      if (retries_ == kMaxRetries || registry_.arena()->cfi->unread().empty()) return false;
      ++retries_;
      return true;
    }
    return false;
  }

  // Shows current() to captures, and frees what no capture can read any more. A capture that stands
  // still keeps what has been shown since it began; where that is kMaxOld, captures go on by what
  // they have, or after an Update by nothing, and the collector finishes the walks that miss
  // something, until it goes on.
  void Publish() {
    FreeOld();
    if (published_ != current_ && old_->size() < kMaxOld) Show(current_);
    FreeOld();
  }

  // Takes all away from captures, of which none can begin any more: the end of these tables. Needs
  // no memory.
  void Withdraw() {
    current_ = nullptr;
    if (published_ != nullptr) Show(nullptr);
    FreeOld();
    // A thread that stands stopped in the middle of a capture may yet go on with it: such tables
    // are given up.
    if (!old_->empty()) static_cast<void>(old_.release());
  }

 private:
  void Show(std::shared_ptr<const UnwindModules> tables) {
    // A capture loads the pointer after it has said that it is under way: a slot that is seen at
    // rest after this store sees the new tables.
    registry_.arena()->unwind_modules.store(tables.get(), std::memory_order_seq_cst);
    if (published_ != nullptr) old_->push_back(std::move(published_));
    published_ = std::move(tables);
    if (published_ == nullptr) return;
    const CfiModules& cfi = *registry_.arena()->cfi;
    counters_.table_bytes.store(published_->memory_bytes() + cfi.memory_bytes(),
                                std::memory_order_relaxed);
    counters_.tables.store(cfi.built(), std::memory_order_relaxed);
    counters_.SetUnreadModule(cfi.unread());
  }

  void FreeOld() {
    if (old_->empty()) return;
    bool is_capturing = false;
    registry_.arena()->VisitAll([&](const ThreadSlot<Traits>& slot) {
      is_capturing |= slot.is_capturing.load(std::memory_order_seq_cst);
    });
    if (!is_capturing) old_->clear();
  }

  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  std::shared_ptr<const UnwindModules> current_;
  std::shared_ptr<const UnwindModules> none_;  // nothing is known of any code; once it was needed
  std::shared_ptr<const UnwindModules> published_;
  using Old = std::vector<std::shared_ptr<const UnwindModules>>;
  std::unique_ptr<Old> old_ = std::make_unique<Old>();
  std::vector<Address> frames_;  // scratch
  Address missing_pc_ = 0;
  int retries_ = 0;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
