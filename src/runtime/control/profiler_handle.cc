#include "strobe/runtime/control/profiler_handle.h"

#include <utility>

#include "strobe/base/keep_for_ever.h"
#include "strobe/base/memory_guard.h"
#include "strobe/platform/native.h"
#include "strobe/runtime/channels/channel_arena.h"

namespace strobe::internal {

namespace {

absl::Status CannotFollow() {
  return absl::ResourceExhaustedError("as many profilers as possible follow forks already");
}

}  // namespace

ProfilerHandle::ProfilerHandle(ProfilerOptions options, std::unique_ptr<const CoreFactory> factory)
    : factory_(std::move(factory)) {
  if (factory_ == nullptr) return;
  static_cast<void>(HasMemoryFor([&] {
    options_ = factory_->WithEnvironment(std::move(options));
    core_.store(factory_->Make(options_).release(), std::memory_order_release);
    if (*options_.threads.follow_forks && *options_.enabled) {
      is_followed_ = ForkList::Add(this);
      if (!is_followed_) Warn("threads.follow_forks", CannotFollow());
    }
    const bool has_signals =
        *options_.sampling.toggle_signal != 0 || *options_.keep.dump_signal != 0;
    if (!has_signals || !*options_.enabled) return;
    const absl::Status status = ToggleStatus();
    if (!status.ok()) Warn("a signal does nothing", status);
  }));
}

ProfilerHandle::~ProfilerHandle() {
  if (is_followed_) ForkList::Remove(this);
  EndSuccessorOfThisThread();
  AbstractCore* const core = core_.load(std::memory_order_acquire);
  if (core == nullptr) return;
  core->IsOfThisProcess() ? core->Retire() : KeepForEver(core);
}

Registration ProfilerHandle::RegisterThread(std::string_view name) {
  EndSuccessorOfThisThread();
  AbstractCore* const core = Core();
  return core != nullptr ? core->RegisterThread(name) : Registration(OutOfMemory());
}

void ProfilerHandle::StartNoMore() {
  if (!is_followed_) return;
  will_start_.store(false, std::memory_order_relaxed);
  ForkList::AwaitStarts();
}

absl::Status ProfilerHandle::Start() {
  StartNoMore();
  absl::Status status = Call(&AbstractCore::Start);
  const bool was_started_for = was_started_for_.exchange(false, std::memory_order_acq_rel);
  return was_started_for && status == AlreadyRunning() ? absl::OkStatus() : status;
}

absl::Status ProfilerHandle::Stop() {
  StartNoMore();
  was_started_for_.store(false, std::memory_order_relaxed);
  return Call(&AbstractCore::Stop);
}

void ProfilerHandle::NoteBeforeFork() {
  AbstractCore* const core = core_.load(std::memory_order_acquire);
  // A child that is forked from a thread without a registration has no core until its Start.
  note_ = {};
  note_.has_session = will_start_.load(std::memory_order_relaxed);
  if (core == nullptr || !core->IsOfThisProcess()) return;
  note_.core = core;
  note_.registration = core->FindOwnRegistration();
  note_.has_session = note_.has_session || core->IsRunning();
}

bool ProfilerHandle::GoOnInChild() {
  successor_thread_.store(0, std::memory_order_relaxed);
  was_started_for_.store(false, std::memory_order_relaxed);
  will_start_.store(note_.has_session, std::memory_order_relaxed);
  AbstractCore* const core = note_.registration.registered != nullptr ? Core() : nullptr;
  if (core == nullptr) return note_.has_session;
  Registration successor = core->RegisterThread(note_.registration.name);
  if (successor.status().ok()) {
    succeeded_core_ = note_.core;
    succeeded_core_->SetSuccessor(note_.registration.registered, std::move(successor));
    successor_thread_.store(NativePlatform::CurrentThreadId(), std::memory_order_relaxed);
  } else {
    Warn("a fork's child is not registered", successor.status());
  }
  return note_.has_session;
}

void ProfilerHandle::StartInChild() {
  if (!will_start_.exchange(false, std::memory_order_acq_rel)) return;
  was_started_for_.store(true, std::memory_order_release);
  const absl::Status status = Call(&AbstractCore::Start);
  if (status.ok()) return;
  was_started_for_.store(false, std::memory_order_release);
  if (status != AlreadyRunning()) Warn("a fork's child does not go on", status);
}

void ProfilerHandle::EndSuccessorOfThisThread() {
  const std::uint64_t thread = successor_thread_.load(std::memory_order_relaxed);
  if (thread == 0 || thread != NativePlatform::CurrentThreadId()) return;
  successor_thread_.store(0, std::memory_order_relaxed);
  succeeded_core_->EndSuccessor();
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
