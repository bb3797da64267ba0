// A session on the calling thread that only the benchmark drains.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

#include "deliver.h"
#include "strobe/own_parts.h"
#include "strobe/runtime/session/session.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe::testing {

inline constexpr std::size_t kFrames = 36;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
template <class Traits>
class BenchSession {
 public:
  explicit BenchSession(bool timestamps = false)
      : registry_(64, static_cast<std::size_t>(*options_.threads.ring_bytes)) {
    options_.sampling.timestamps = timestamps;
    // The timer of its own is too slow to take part; each signal of the benchmark stands for one.
    options_.sampling.cpu_frequency_hz = 0.001;
    options_.sampling.trigger = SampleTrigger::kTimers;
    if (!registry_.Open().ok() || !NativePlatform::InstallHandler(signal_).ok()) return;
    session_.emplace(options_, registry_, code_, counters_, signal_);
    // As late in a program's life, when all of it has been executed.
    code_.BuildAll();
    code_.Publish();
    auto registered = registry_.Register(NativePlatform::CurrentThread(), "bench");
    if (!registered.ok()) return;
    thread_ = *registered;
    thread_->channel->context.CopyFrom(internal::own_context);
    thread_->next = internal::RegistrationLinks();
    internal::RegistrationLinks() = thread_;
    registry_.BeginCollecting();
    session_->Attach(*thread_);
  }
  ~BenchSession() {
    if (thread_ == nullptr) return;
    session_->Detach(*thread_);
    internal::RegistrationLinks() = thread_->next;
    registry_.Unregister(thread_);
    session_->End();
    session_->FinishAll();
  }
  BenchSession(const BenchSession&) = delete;
  BenchSession& operator=(const BenchSession&) = delete;

  [[nodiscard]] bool ok() const { return thread_ != nullptr; }
  [[nodiscard]] internal::RegisteredThread<Traits>& thread() { return *thread_; }
  // A signal of that number that our handler takes for its own.
  [[nodiscard]] siginfo_t Signal(int number) const {
    return MakeSignal(number, SI_TIMER, thread_->channel->token.Pack());
  }
  [[nodiscard]] siginfo_t Signal() const { return Signal(signal_); }

  // As a collector does.
  void Drain() { session_->Drain(); }
  // Throws the records away, so that nothing but the handler is at work. Returns whether each is of
  // a whole stack of kFrames.
  bool Discard() {
    bool is_right = true;
    for (auto record = thread_->channel->ring.Peek(); !record.empty();
         record = thread_->channel->ring.Peek()) {
      is_right &= FramesOf(record) == kFrames;
      thread_->channel->ring.Pop();
      ++discarded_;
    }
    return is_right;
  }
  [[nodiscard]] std::size_t discarded() const { return discarded_; }

  // Delivers on stacks of kFrames: first finds out with how many generated functions a stack has so
  // many.
  void DeliverWhole(StackCase stacks, FunctionKind kind, std::size_t turns, Delivery& delivery,
                    const std::function<void()>& after_turn) {
    std::size_t functions = kFrames - 16;
    Delivery first(MakeSignal(kEmptySignal, SI_QUEUE, 0), Signal());
    std::size_t frames = 0;
    const std::function<void()> look = [&] {
      frames = FramesOf(thread_->channel->ring.Peek());
      session_->Drain();
    };
    // Both calls are one, so that the same frames lie below them.
    for (const bool is_first : {true, false}) {
      DeliverOn(stacks, kind, functions, is_first ? 2 : turns, is_first ? first : delivery,
                is_first ? look : after_turn);
      functions = functions + kFrames - frames;
    }
  }

 private:
  // 0 for a stack that is not whole.
  static std::size_t FramesOf(std::span<const std::byte> record) {
    RecordHeader header;
    if (record.size() < sizeof(header)) return 0;
    std::memcpy(&header, record.data(), sizeof(header));
    return header.end == StackEnd::kComplete ? std::size_t{header.frame_count} + header.shared_count
                                             : 0;
  }

  ProfilerOptions options_;
  const int signal_ = NativePlatform::DefaultSignal();
  internal::ThreadRegistry<Traits> registry_;
  internal::CodeRegistry generated_;
  internal::CollectorCounters counters_;
  internal::LoadedCode<Traits> code_{generated_, counters_.code};
  std::optional<internal::Session<Traits>> session_;
  internal::RegisteredThread<Traits>* thread_ = nullptr;
  std::size_t discarded_ = 0;
};
#pragma GCC diagnostic pop

}  // namespace strobe::testing
