// LoadedCode: the one owner of the loaded code: its modules, their generation, their unwind tables,
// and what captures see of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"
#include "strobe/runtime/code/code_counters.h"
#include "strobe/runtime/code/code_registry.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/runtime/code/table_publisher.h"
#include "strobe/symbolize/debug_frame.h"
#include "strobe/symbolize/image_reader.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Outlives sessions, so that the next session need not compile again the tables of code that is
// still loaded. Depends on neither threads nor threads. Used by one thread at a time: the one that
// starts a session, then the collector, then the one that ends the session. A call that throws
// std::bad_alloc can be repeated.
template <class Traits>
class LoadedCode {
 public:
  using Platform = typename Traits::Platform;
  // Whether the unwinder uses tables, and whether it works while some are missing.
  static constexpr bool kHasTables =
      std::constructible_from<typename Traits::Unwinder, const UnwindModules*>;
  static constexpr bool kIsLazy = ResumableUnwinder<typename Traits::Unwinder>;
  // How often a session retries to read unreadable modules, in addition to each change of the
  // modules.
  static constexpr int kMaxRetries = 3;

  // Both arguments must outlive this object.
  LoadedCode(const CodeRegistry& generated, CodeCounters& counters)
      : generated_(generated), counters_(counters) {}

  // Begins a session; its intake has no modules yet. Call it before all other functions. `place`
  // must outlive this object, and be the same each time.
  template <class Intake>
  void Begin(PublishedCode& place, TablePublisher::IsCapturing is_capturing, Intake& intake) {
    place_ = &place;
    if constexpr (kHasTables) {
      TablePublisher::Expose expose;
      if constexpr (AdoptsChannels<Platform>) expose = &Platform::ExposeTables;
      publisher_.Begin(place.tables, std::move(is_capturing), std::move(expose));
    }
    retries_ = 0;
    Refresh(intake);
  }

  // Reads the loaded modules if they have changed since the last call, and publishes the tables
  // that are built. Calls intake.SetModules(generation, modules) before any capture carries that
  // generation.
  template <class Intake>
  void RefreshIfChanged(Intake& intake) {
    if (Version() != version_) Refresh(intake);
  }

  // Makes the next RefreshIfChanged read an unreadable module again. Does nothing after kMaxRetries
  // retries in a session.
  void RetryUnread() {
    if constexpr (kHasTables) {
      if (retries_ == kMaxRetries || cfi_->unread().empty()) return;
      ++retries_;
      version_ = kNoVersion;
    }
  }

  [[nodiscard]] const ModuleMap& modules() const { return modules_; }
  // Grows with each change; 0 before the first Begin.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }
  // All tables that are built; nullptr before the first Begin, and for an unwinder without tables.
  [[nodiscard]] const UnwindModules* tables() const { return tables_.get(); }

  // Builds the table of the code at `pc`, into tables(). Always takes a new snapshot: the last call
  // may have built the table and then have had no memory for the snapshot.
  void Build(Address pc) {
    static_cast<void>(cfi_->Build(pc));
    tables_ = cfi_->Snapshot();
  }
  // Builds the tables of the code that a waiting thread's stack leads through, and publishes them:
  // what the thread does next has most of this stack. Does nothing off `stack`.
  void BuildFor(const NativeRegisters& registers, const StackBounds& stack) {
    if constexpr (kIsLazy) {
      if (!stack.Holds(registers.sp)) return;
      const LiveStackMemory memory(registers.sp, stack.high);
      std::vector<Address> frames(kMaxFramesLimit);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const WalkResult walk =
            typename Traits::Unwinder(tables_.get()).Unwind(registers, memory, frames);
        if (!walk.is_pending) break;
        Build(walk.stop.is_exact ? walk.stop.pc : walk.stop.pc - 1);
      }
      Publish();
    }
  }
  // Code of an earlier generation, part of which has been unloaded since: see CfiModules.
  [[nodiscard]] bool HasUnloaded(std::uint32_t generation) const {
    return generation != generation_ && cfi_->HasUnloaded(generation);
  }
  [[nodiscard]] bool HasUnloadedAt(std::uint32_t generation, Address pc) const {
    return cfi_->HasUnloadedAt(generation, pc);
  }
  [[nodiscard]] std::shared_ptr<const UnwindModules> TablesOf(std::uint32_t generation) const {
    return cfi_->SnapshotOf(generation);
  }
  void BuildOf(std::uint32_t generation, Address pc) { cfi_->BuildOf(generation, pc); }

  // Builds the tables of all loaded code.
  void BuildAll() {
    cfi_->BuildAll();
    tables_ = cfi_->Snapshot();
  }

  // Publishes tables() to captures, and frees tables that no capture can read any more. If
  // suspended captures keep too many tables (see TablePublisher), the collector finishes the walks
  // that lack a table.
  void Publish() {
    if constexpr (kHasTables) {
      if (publisher_.Publish(tables_)) CountTables();
    }
  }

 private:
  static constexpr std::uint64_t kNoVersion = ~std::uint64_t{0};

  // Both versions only grow.
  [[nodiscard]] std::uint64_t Version() const {
    return Platform::ModuleVersion() + generated_.version();
  }

  template <class Intake>
  void Refresh(Intake& intake) {
    // Reads the versions before the modules, so that the next call sees a change in between. Stores
    // them last, so that the next call repeats what ran out of memory.
    const std::uint64_t image_version = Platform::ModuleVersion();
    const std::uint64_t version = image_version + generated_.version();
    if (generation_ == 0 || image_version != image_version_)
      modules_ = ModuleMap(Platform::Modules());
    version_ = kNoVersion;
    generated_.Join(modules_);
    intake.SetModules(++generation_, modules_);
    place_->generation.store(generation_, std::memory_order_relaxed);
    if constexpr (kHasTables) UpdateTables();
    image_version_ = image_version;
    version_ = version;
    counters_.refreshes.fetch_add(1, std::memory_order_relaxed);
  }

  void UpdateTables() {
    if (!cfi_.has_value()) {
      CfiModules::ShareTable share;
      if constexpr (requires { &Platform::ShareTable; }) share = &Platform::ShareTable;
      cfi_.emplace(
          kNativeArchitecture, &Platform::ReadMemory,
          [](const Module& module) { return ReadDebugFrame(module, Platform::Files()); },
          std::move(share),
          [](const Module& module) { return ReadImageOf(module, Platform::Files()); });
    }
    cfi_->Update(modules_, generation_);
    if (!kIsLazy) cfi_->BuildAll();
    tables_ = cfi_->Snapshot();
    if (publisher_.Replace(tables_)) CountTables();
  }

  void CountTables() {
    counters_.table_bytes.store(publisher_.shown()->memory_bytes() + cfi_->memory_bytes(),
                                std::memory_order_relaxed);
    counters_.tables.store(cfi_->built(), std::memory_order_relaxed);
    counters_.SetUnread(cfi_->unread());
  }

  const CodeRegistry& generated_;
  CodeCounters& counters_;
  PublishedCode* place_ = nullptr;
  ModuleMap modules_;  // the loader's, as of image_version_, and generated code
  std::uint32_t generation_ = 0;
  std::uint64_t version_ = kNoVersion;
  std::uint64_t image_version_ = 0;
  std::optional<CfiModules> cfi_;
  std::shared_ptr<const UnwindModules> tables_;
  TablePublisher publisher_;
  int retries_ = 0;
};

}  // namespace internal
}  // namespace strobe
