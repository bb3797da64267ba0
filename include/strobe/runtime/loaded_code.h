// LoadedCode: the one owner of what code is loaded: the modules, their generation, their unwind
// tables, and what captures are shown of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/runtime/code_registry.h"
#include "strobe/runtime/collector_counters.h"
#include "strobe/runtime/published_code.h"
#include "strobe/runtime/table_publisher.h"
#include "strobe/symbolize/debug_frame.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// It outlives sessions, so that the next one need not compile again what is still loaded. It knows
// neither threads nor slots. Used by one thread at a time: the one that starts a session, then the
// collector, then the one that ends the session. A call that throws std::bad_alloc can be repeated.
template <class Traits>
class LoadedCode {
 public:
  using Platform = typename Traits::Platform;
  // Whether the unwinder is made of tables, and whether it can do without some.
  static constexpr bool kHasTables =
      std::constructible_from<typename Traits::Unwinder, const UnwindModules*>;
  static constexpr bool kIsLazy = ResumableUnwinder<typename Traits::Unwinder>;
  // How often a session reads again what could not be read, beside the times when the modules
  // change.
  static constexpr int kMaxRetries = 3;

  // Both outlive it.
  LoadedCode(const CodeRegistry& generated, CollectorCounters& counters)
      : generated_(generated), counters_(counters) {}

  // A session begins, whose intake knows of no module yet. Before all other calls. `place` outlives
  // this object, and is the same each time.
  template <class Intake>
  void Begin(PublishedCode& place, TablePublisher::IsCapturing is_capturing, Intake& intake) {
    place_ = &place;
    if constexpr (kHasTables) publisher_.Begin(place.tables, std::move(is_capturing));
    retries_ = 0;
    Refresh(intake);
  }

  // Takes over what is loaded now, if that is not what was loaded at the last call, and publishes
  // what is built of it. No capture carries a generation before
  // intake.SetModules(generation, modules) has been called with it.
  template <class Intake>
  void RefreshIfChanged(Intake& intake) {
    if (Version() != version_) Refresh(intake);
  }

  // Has the next RefreshIfChanged read again a module of which nothing could be read. After
  // kMaxRetries times in a session it does nothing.
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

  // Builds what is to be known of the code at `pc`, into tables(). Always a new snapshot: for want
  // of memory the last call may have built the table and taken none.
  void Build(Address pc) {
    static_cast<void>(cfi_->Build(pc));
    tables_ = cfi_->Snapshot();
  }
  // Builds all that is loaded.
  void BuildAll() {
    cfi_->BuildAll();
    tables_ = cfi_->Snapshot();
  }

  // Shows tables() to captures, and frees what no capture can read any more. Where captures that
  // stand still keep too many tables (see TablePublisher), the collector finishes the walks that
  // miss something.
  void Publish() {
    if constexpr (kHasTables) {
      if (publisher_.Publish(tables_)) CountTables();
    }
  }

 private:
  static constexpr std::uint64_t kNoVersion = ~std::uint64_t{0};

  // Both only grow.
  [[nodiscard]] std::uint64_t Version() const {
    return Platform::ModuleVersion() + generated_.version();
  }

  template <class Intake>
  void Refresh(Intake& intake) {
    // The versions are read first: a change between the two is seen at the next call. They are
    // noted last: what memory runs out in is done again.
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
    counters_.module_refreshes.fetch_add(1, std::memory_order_relaxed);
  }

  void UpdateTables() {
    if (!cfi_.has_value()) {
      cfi_.emplace(kNativeArchitecture, &Platform::ReadMemory,
                   [](const Module& module) { return ReadDebugFrame(module, Platform::Files()); });
    }
    cfi_->Update(modules_);
    if (!kIsLazy) cfi_->BuildAll();
    tables_ = cfi_->Snapshot();
    if (publisher_.Replace(tables_)) CountTables();
  }

  void CountTables() {
    counters_.table_bytes.store(publisher_.shown()->memory_bytes() + cfi_->memory_bytes(),
                                std::memory_order_relaxed);
    counters_.tables.store(cfi_->built(), std::memory_order_relaxed);
    counters_.SetUnreadModule(cfi_->unread());
  }

  const CodeRegistry& generated_;
  CollectorCounters& counters_;
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

}  // namespace strobe::internal
STROBE_HIDDEN_END
