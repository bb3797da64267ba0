// ProviderView: one provider's view of one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/threads/registered_thread.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

template <class Traits>
class ProviderView final : public SampleTarget {
 public:
  using Thread = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  using Probe = typename Platform::ThreadProbe;

  // `signal` interrupts the thread. The collector gives its probe of the thread.
  ProviderView(Thread& thread, std::size_t provider, int signal, Probe* probe = nullptr)
      : thread_(thread),
        cell_(Traits::Providers::FirstCell(provider)),
        signal_(signal),
        probe_(probe) {}
  // To settle accounts: all providers have one reading of the CPU clock. `cpu_ns` is that, or less
  // than 0 until one reads it. `settled_weight` is all that the provider has been credited with.
  // The cell may have more after the detachment, because a capture that ends late adds to it.
  ProviderView(Thread& thread, std::size_t provider, int signal, std::int64_t& cpu_ns,
               std::int64_t settled_weight)
      : ProviderView(thread, provider, signal) {
    shared_cpu_ns_ = &cpu_ns;
    settled_weight_ = settled_weight;
  }
  std::int64_t CpuTimeNs() override {
    if (shared_cpu_ns_ != nullptr && *shared_cpu_ns_ >= 0) return *shared_cpu_ns_;
    read_cpu_ns_ = Platform::ThreadCpuTimeNs(thread_.thread_id());
    if (shared_cpu_ns_ != nullptr) *shared_cpu_ns_ = read_cpu_ns_;
    return read_cpu_ns_;
  }
  // What the last CpuTimeNs() returned; -1 before the first call.
  [[nodiscard]] std::int64_t read_cpu_ns() const { return read_cpu_ns_; }
  [[nodiscard]] std::int64_t attach_cpu_ns() const override { return thread_.attach_cpu_ns; }
  // A thread that blocks the signal gets no timer: its time goes into the residual.
  bool StartCpuTimer(std::int64_t first_ns, std::int64_t period_ns) override {
    if (thread_.blocks_signal.load(std::memory_order_relaxed)) return true;
    if (BlocksSignal()) return false;
    thread_.channel->timer_period_ns.store(period_ns, std::memory_order_relaxed);
    const bool is_started = Platform::StartTimer(thread_.timer, thread_.thread_id(), Payload(),
                                                 first_ns, period_ns, signal_);
    if (is_started) thread_.timer_kind.store(TimerKind::kPeriodic, std::memory_order_relaxed);
    return is_started;
  }
  bool StartRandomTimer(std::int64_t mean_ns, std::uint64_t seed) override {
    if constexpr (HasRandomTimers<Platform>) {
      if (thread_.blocks_signal.load(std::memory_order_relaxed)) return true;
      if (BlocksSignal()) return false;
      thread_.channel->timer_period_ns.store(mean_ns, std::memory_order_relaxed);
      const bool is_started =
          Platform::StartRandomTimer(thread_.random_timer, thread_.thread_id(),
                                     static_cast<std::uint8_t>(cell_), mean_ns, seed, signal_);
      if (is_started) thread_.timer_kind.store(TimerKind::kRandom, std::memory_order_relaxed);
      return is_started;
    }
    return false;
  }
  void StopCpuTimer() override { StopTimers(thread_); }
  std::int64_t WaitCount() override { return probe_ == nullptr ? -1 : probe_->WaitCount(); }
  bool BlocksSignal() override {
    if constexpr (requires { probe_->BlocksSignal(signal_); }) {
      return probe_ != nullptr && !thread_.blocks_signal.load(std::memory_order_relaxed) &&
             probe_->BlocksSignal(signal_);
    }
    return false;
  }
  // Interrupts the thread soon, and adds the weight to its stack at that time. For `was_running`
  // see Platform::Interrupt. Does nothing for a thread that is known to block the signal. One that
  // has begun to block it is not interrupted: its next stack, or its residual, has the weight. One
  // that was taken to run and waits keeps nothing of the request, because it had no CPU at that
  // instant. Returns false then.
  bool Request(std::int64_t weight, bool was_running) {
    if (thread_.blocks_signal.load(std::memory_order_relaxed)) return true;
    AddRequest(weight);
    if (BlocksSignal()) return true;
    const bool is_interrupted =
        Platform::Interrupt(thread_.thread_id(), Payload(), signal_, was_running);
    if (!is_interrupted && was_running) AddRequest(-weight);
    return is_interrupted || !was_running;
  }
  // Adds the weight to the thread's next stack, without an interruption.
  void AddRequest(std::int64_t weight) {
    cell().requested.fetch_add(weight, std::memory_order_acq_rel);
  }
  // Takes back all weight that no capture has served yet.
  std::int64_t TakeRequests() { return cell().requested.exchange(0, std::memory_order_acq_rel); }
  [[nodiscard]] std::int64_t credited_weight() const override {
    // A provider that is only settled has no cell.
    if (settled_weight_.has_value()) return *settled_weight_;
    return cell().credited.load(std::memory_order_relaxed);
  }
  // True if a request has not been served yet.
  [[nodiscard]] bool has_request() const {
    return cell().requested.load(std::memory_order_relaxed) != 0;
  }

 private:
  [[nodiscard]] auto& cell() const { return thread_.channel->cells[cell_]; }
  [[nodiscard]] std::uint64_t Payload() const {
    ChannelToken token = thread_.channel->token;
    token.provider = static_cast<std::uint8_t>(cell_);
    return token.Pack();
  }

  Thread& thread_;
  std::size_t cell_;
  int signal_;
  Probe* probe_ = nullptr;
  std::int64_t* shared_cpu_ns_ = nullptr;
  std::optional<std::int64_t> settled_weight_;
  std::int64_t read_cpu_ns_ = -1;
};

}  // namespace internal
}  // namespace strobe
