#include "strobe/runtime/control/profiler_handle.h"

#include <utility>

#include "strobe/base/keep_for_ever.h"
#include "strobe/base/memory_guard.h"
#include "strobe/runtime/channels/channel_arena.h"

namespace strobe::internal {

ProfilerHandle::ProfilerHandle(ProfilerOptions options, std::unique_ptr<const CoreFactory> factory)
    : factory_(std::move(factory)) {
  if (factory_ == nullptr) return;
  static_cast<void>(HasMemoryFor([&] {
    options_ = factory_->WithEnvironment(std::move(options));
    core_.store(factory_->Make(options_).release(), std::memory_order_release);
    if (*options_.sampling.toggle_signal == 0 || !*options_.enabled) return;
    const absl::Status status = ToggleStatus();
    if (!status.ok()) Warn("no signal begins a session", status);
  }));
}

ProfilerHandle::~ProfilerHandle() {
  AbstractCore* const core = core_.load(std::memory_order_acquire);
  if (core == nullptr) return;
  core->IsOfThisProcess() ? core->Retire() : KeepForEver(core);
}

Registration ProfilerHandle::RegisterThread(std::string_view name) {
  AbstractCore* const core = Core();
  return core != nullptr ? core->RegisterThread(name) : Registration(OutOfMemory());
}

CodeRegistration ProfilerHandle::RegisterCode(const GeneratedCode& code) {
  AbstractCore* const core = Core();
  return core != nullptr ? core->RegisterCode(code) : CodeRegistration(OutOfMemory());
}

absl::StatusOr<Profile> ProfilerHandle::Record(const RecordingOptions& options) {
  AbstractCore* const core = Core();
  if (core == nullptr) return OutOfMemory();
  return core->Record(options);
}

bool ProfilerHandle::CaptureHere(const EventSample& event,
                                 const NativeRegisters* registers) const noexcept {
  // Core() may allocate, so it is not used. In a fork's child the parent's core takes no events.
  AbstractCore* const core = core_.load(std::memory_order_acquire);
  return core != nullptr && core->CaptureHere(event, registers);
}

Stats ProfilerHandle::GetStats() {
  if (AbstractCore* const core = Core()) return core->GetStats();
  Stats none;
  none.out_of_memory = 1;
  return none;
}

std::string ProfilerHandle::Diagnose() {
  AbstractCore* const core = Core();
  return core != nullptr ? core->Diagnose() : "Out of memory.";
}

void ProfilerHandle::Warn(const char* what, const absl::Status& status) const {
  if (factory_ == nullptr) return;
  static_cast<void>(HasMemoryFor([&] {
    factory_->WriteLine("strobe: " + std::string(what) + ": " + std::string(status.message()));
  }));
}

AbstractCore* ProfilerHandle::Core() {
  AbstractCore* core = core_.load(std::memory_order_acquire);
  if (core == nullptr || core->IsOfThisProcess()) return core;
  std::unique_ptr<AbstractCore> own;
  if (!HasMemoryFor([&] { own = factory_->Make(options_); })) return nullptr;
  // If another thread was faster, its core is used.
  if (!core_.compare_exchange_strong(core, own.get(), std::memory_order_acq_rel)) return core;
  KeepForEver(core);
  core = own.release();
  static_cast<void>(core->ToggleStatus());
  return core;
}

absl::Status ProfilerHandle::Call(absl::Status (AbstractCore::*function)()) {
  AbstractCore* const core = Core();
  return core != nullptr ? (core->*function)() : OutOfMemory();
}

}  // namespace strobe::internal
