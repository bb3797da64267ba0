// ManualThread: a registered thread as a provider sees it. A test controls its CPU clock and its
// captures.
//
//   ManualThread thread;
//   thread.Begin();
//   provider.Attach(thread, state, random, now_ns);
//   thread.RunFor(25'000'000);             // its timer may expire meanwhile
//   thread.Request(provider.Poll(thread, state, now_ns));
//   thread.Capture();                      // serves the request
#pragma once

#include <cstdint>

#include "strobe/provider/sample_provider.h"

namespace strobe::testing {

// Keeps the promises of SampleTarget. Single-threaded.
class ManualThread final : public SampleTarget {
 public:
  // Set by a test.
  bool refuses_timers = false;
  bool refuses_random_timers = true;
  bool blocks_signal = false;
  std::int64_t wait_count = 0;
  bool is_gone = false;  // the clock of the thread can no longer be read

  // The runtime attaches the thread. Earlier requests and credited weights are forgotten.
  void Begin() {
    attach_cpu_ns_ = cpu_ns_;
    pending_ = credited_ = 0;
    StopCpuTimer();
    requests_ = captures_ = 0;
  }
  // The runtime is about to detach the thread: the timer stops.
  void End() { StopCpuTimer(); }

  // Uses CPU time. A timer that expires meanwhile interrupts the thread once, at the end, with the
  // number of expiries as its weight, as at the kernel's tick.
  void RunFor(std::int64_t cpu_ns) {
    cpu_ns_ += cpu_ns;
    std::int64_t expiries = 0;
    if (has_timer_ && cpu_ns_ >= next_expiry_ns_) {
      expiries = 1 + (cpu_ns_ - next_expiry_ns_) / timer_period_ns_;
      next_expiry_ns_ += expiries * timer_period_ns_;
    }
    if (expiries != 0) CaptureWith(expiries * timer_period_ns_);
  }

  void ExpireRandomTimer() {
    if (has_random_timer_) CaptureWith(timer_period_ns_);
  }

  // Delivers the requested interruption. False if there is no request.
  bool Capture() {
    if (pending_ == 0) return false;
    CaptureWith(0);
    return true;
  }

  std::int64_t CpuTimeNs() override { return is_gone ? -1 : cpu_ns_; }
  [[nodiscard]] std::int64_t attach_cpu_ns() const override { return attach_cpu_ns_; }
  bool StartCpuTimer(std::int64_t first_ns, std::int64_t period_ns) override {
    if (refuses_timers || blocks_signal || has_any_timer() || first_ns <= 0 || period_ns <= 0)
      return false;
    has_timer_ = true;
    first_expiry_ns_ = first_ns;
    timer_period_ns_ = period_ns;
    next_expiry_ns_ = cpu_ns_ + first_ns;
    return true;
  }
  // It expires when the test says so.
  bool StartRandomTimer(std::int64_t mean_ns, std::uint64_t /*seed*/) override {
    if (refuses_random_timers || blocks_signal || has_any_timer() || mean_ns <= 0) return false;
    has_random_timer_ = true;
    ++random_timer_starts_;
    timer_period_ns_ = mean_ns;
    return true;
  }
  void StopCpuTimer() override { has_timer_ = has_random_timer_ = false; }
  std::int64_t WaitCount() override { return wait_count; }
  bool BlocksSignal() override { return blocks_signal; }
  // Does what the runtime does with the weight that a poll returns, if it has to interrupt the
  // thread. Weights that have not been served add up.
  void Request(std::int64_t weight) {
    if (weight == 0) return;
    pending_ += weight;
    last_request_ = weight;
    ++requests_;
  }
  [[nodiscard]] std::int64_t credited_weight() const override { return credited_; }

  // What the provider has requested.
  [[nodiscard]] bool has_timer() const { return has_timer_; }
  [[nodiscard]] bool has_random_timer() const { return has_random_timer_; }
  [[nodiscard]] int random_timer_starts() const { return random_timer_starts_; }
  [[nodiscard]] bool has_any_timer() const { return has_timer_ || has_random_timer_; }
  // Since the attachment.
  [[nodiscard]] std::int64_t first_expiry_ns() const { return first_expiry_ns_; }
  [[nodiscard]] std::int64_t timer_period_ns() const { return timer_period_ns_; }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] std::int64_t last_request() const { return last_request_; }
  [[nodiscard]] std::int64_t pending() const { return pending_; }
  [[nodiscard]] int captures() const { return captures_; }

 private:
  void CaptureWith(std::int64_t timer_weight) {
    credited_ += timer_weight + pending_;
    pending_ = 0;
    ++captures_;
  }

  std::int64_t cpu_ns_ = 0;
  std::int64_t attach_cpu_ns_ = 0;
  std::int64_t pending_ = 0;
  std::int64_t credited_ = 0;
  std::int64_t last_request_ = 0;
  std::int64_t first_expiry_ns_ = 0;
  std::int64_t timer_period_ns_ = 0;
  std::int64_t next_expiry_ns_ = 0;
  int requests_ = 0;
  int captures_ = 0;
  bool has_timer_ = false;
  bool has_random_timer_ = false;
  int random_timer_starts_ = 0;
};

}  // namespace strobe::testing
