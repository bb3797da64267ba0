// ManualProvider: a provider that makes the requests of a test.
//
//   const auto script = std::make_shared<ManualProviderScript>();
//   BasicProfiler<MyTraits> profiler({}, {.providers = {ManualProvider(script)}});
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "strobe/provider/sample_provider.h"

namespace strobe::testing {

// What a ManualProvider and its copies do and have done. They share it. Thread-safe.
struct ManualProviderScript {
  std::atomic<bool> is_enabled{true};
  std::atomic<std::int64_t> period_ns{0};
  std::atomic<std::int64_t> poll_period_ns{0};
  std::atomic<std::int64_t> weight{0};    // what each poll returns
  std::atomic<std::int64_t> residual{0};  // what each Detach returns

  std::atomic<int> attached{0};
  std::atomic<int> detached{0};
  std::atomic<int> polls{0};
};

// One column, "manual" in "units": the weights themselves.
class ManualProvider {
 public:
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"manual", "units"}};
  struct ThreadState {};

  explicit ManualProvider(const SamplingOptions& /*options*/)
      : script_(std::make_shared<ManualProviderScript>()) {}
  explicit ManualProvider(std::shared_ptr<ManualProviderScript> script)
      : script_(std::move(script)) {}
  [[nodiscard]] bool enabled() const { return script().is_enabled; }
  [[nodiscard]] std::int64_t period_ns() const { return script().period_ns; }
  void Attach(SampleTarget& /*thread*/, ThreadState& /*state*/, RandomSource& /*random*/,
              std::int64_t /*now_ns*/) {
    ++script().attached;
  }
  std::int64_t Detach(SampleTarget& /*thread*/, ThreadState& /*state*/, std::int64_t /*now_ns*/) {
    ++script().detached;
    return script().residual;
  }
  [[nodiscard]] std::int64_t poll_period_ns() const { return script().poll_period_ns; }
  std::int64_t Poll(SampleTarget& /*thread*/, ThreadState& /*state*/, std::int64_t /*now_ns*/) {
    ++script().polls;
    return script().weight;
  }

 private:
  [[nodiscard]] ManualProviderScript& script() const { return *script_; }

  std::shared_ptr<ManualProviderScript> script_;
};
static_assert(SampleProvider<ManualProvider>);

}  // namespace strobe::testing
