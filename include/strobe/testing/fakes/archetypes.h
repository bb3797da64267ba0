// Archetypes: minimal models of each concept. BasicProfiler<ArchetypeTraits> works, so the profiler
// uses only what the concepts promise. Derive from ArchetypeTraits to test one part without the
// others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/clock/clock.h"
#include "strobe/encode/encoder.h"
#include "strobe/export/exporter.h"
#include "strobe/export/output_list.h"
#include "strobe/export/profile_directories.h"
#include "strobe/platform/platform.h"
#include "strobe/platform/unsupported_platform.h"
#include "strobe/provider/provider_list.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/ring/sample_ring.h"
#include "strobe/ring/spsc_ring.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbolizer.h"
#include "strobe/unwind/unwinder.h"

namespace strobe::testing {

// Cannot be copied, moved or compared, because no concept promises it.
struct Immovable {
  Immovable() = default;
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;
};

// Time stands still.
struct ArchetypeClock : Immovable {
  [[nodiscard]] std::int64_t MonotonicNs() const { return 1; }
  [[nodiscard]] std::int64_t UnixTimeNs() const { return 1; }
};
static_assert(Clock<ArchetypeClock>);

struct ArchetypeRing : Immovable {
  static std::size_t MaxRecordBytes(std::size_t capacity) {
    return SpscRing::MaxRecordBytes(capacity);
  }
  void Reset(std::span<std::byte> memory) noexcept { ring_.Reset(memory); }
  std::byte* Reserve(std::size_t bytes) noexcept { return ring_.Reserve(bytes); }
  void Commit(std::size_t bytes) noexcept { ring_.Commit(bytes); }
  std::span<const std::byte> Peek() noexcept { return ring_.Peek(); }
  void Pop() noexcept { ring_.Pop(); }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return ring_.used_bytes(); }
  [[nodiscard]] std::uint64_t corruptions() const noexcept { return ring_.corruptions(); }

 private:
  SpscRing ring_;
};
static_assert(SampleRing<ArchetypeRing>);

// Finds only the pc.
struct ArchetypeUnwinder : Immovable {
  WalkResult Unwind(const NativeRegisters& registers, const auto& /*memory*/,
                    std::span<Address> output) const noexcept {
    if (output.empty()) return {.count = 0, .end = StackEnd::kTruncated};
    output[0] = registers.pc;
    return {.count = 1, .end = StackEnd::kNoUnwindInfo};
  }
};
static_assert(Unwinder<ArchetypeUnwinder>);

// Has no capability: it requests nothing, and has no state for a thread.
struct ArchetypeProvider : Immovable {
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"nothing", "count"}};
  explicit ArchetypeProvider(const SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(SampleProvider<ArchetypeProvider> && !ClockedProvider<ArchetypeProvider> &&
              !PolledProvider<ArchetypeProvider>);

// Has an account that stays empty.
struct ArchetypeClockedProvider : Immovable {
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"accounts", "count"}};
  struct ThreadState : Immovable {};
  explicit ArchetypeClockedProvider(const SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
  [[nodiscard]] std::int64_t period_ns() const { return 0; }
  void Attach(SampleTarget& /*thread*/, ThreadState& /*state*/, RandomSource& /*random*/,
              std::int64_t /*now_ns*/) {}
  std::int64_t Detach(SampleTarget& /*thread*/, ThreadState& /*state*/, std::int64_t /*now_ns*/) {
    return 0;
  }
};
static_assert(ClockedProvider<ArchetypeClockedProvider> &&
              !PolledProvider<ArchetypeClockedProvider>);

// Polls at each drain, and requests nothing.
struct ArchetypePolledProvider : Immovable {
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"polls", "count"}};
  struct ThreadState : Immovable {};
  explicit ArchetypePolledProvider(const SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
  [[nodiscard]] std::int64_t poll_period_ns() const { return 1; }
  std::int64_t Poll(SampleTarget& /*thread*/, ThreadState& /*state*/, std::int64_t /*now_ns*/) {
    return 0;
  }
};
static_assert(PolledProvider<ArchetypePolledProvider> && !ClockedProvider<ArchetypePolledProvider>);

// Its events have a count and bytes.
struct ArchetypeEventProvider : Immovable {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"events", "count"},
                                                        ValueType{"sent", "bytes"}};
  explicit ArchetypeEventProvider(const SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(EventProvider<ArchetypeEventProvider> && !ClockedProvider<ArchetypeEventProvider> &&
              !PolledProvider<ArchetypeEventProvider>);

// Finds no names.
struct ArchetypeSymbolizer : Immovable {
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) { return Symbols(); }
};
static_assert(Symbolizer<ArchetypeSymbolizer>);

// A format without content.
struct ArchetypeEncoder : Immovable {
  static constexpr std::string_view kFileSuffix = ".none";
  static constexpr std::string_view kContentType = "application/octet-stream";
  absl::StatusOr<std::string> Encode(const Profile& /*profile*/, const Symbols& /*symbols*/) {
    return std::string();
  }
};
static_assert(Encoder<ArchetypeEncoder>);

// Delivers nowhere.
struct ArchetypeExporter : Immovable {
  explicit ArchetypeExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    return std::string("nowhere");
  }
};
static_assert(Exporter<ArchetypeExporter>);

// Has the threads and the memory of the standard library; no timer, no interruption, no image, no
// fork.
struct ArchetypePlatform {
  static constexpr bool kCopiesStacks = false;
  static constexpr bool kHasFineCpuClocks = true;

  struct Timer : Immovable {};
  struct Instant : Immovable {};
  struct ThreadProbe {
    explicit ThreadProbe(std::uint64_t /*thread_id*/) {}
    ThreadPoll Poll() { return ThreadPoll::kHasNotRun; }
    bool WasDisplaced(const Instant& /*instant*/) { return false; }
    [[nodiscard]] std::int64_t seen_cpu_ns() const { return -1; }
    std::int64_t WaitCount() { return -1; }
  };
  using Mapping = PrivateMapping;
  class OwnThread {
   public:
    OwnThread() = default;
    explicit OwnThread(std::function<void()> body) : thread_(std::move(body)) {}
    explicit OwnThread(int error) : error_(error) {}
    [[nodiscard]] bool IsRunning() const { return thread_.joinable(); }
    [[nodiscard]] int error() const { return error_; }
    void Join() {
      if (thread_.joinable()) thread_.join();
    }
    void Detach() {
      if (thread_.joinable()) thread_.detach();
    }

   private:
    std::thread thread_;
    int error_ = 0;
  };

  static absl::Status Available() { return absl::OkStatus(); }
  static ThreadInfo CurrentThread() { return {.id = CurrentThreadId(), .stack = {}}; }
  static std::uint64_t CurrentThreadId() {
    return std::hash<std::thread::id>()(std::this_thread::get_id());
  }
  static std::uint64_t ProcessId() { return 1; }
  static std::string ProgramName() { return "program"; }
  static std::optional<std::string> EnvironmentVariable(const char* name) {
    return UnsupportedPlatform::EnvironmentVariable(name);
  }
  static std::vector<std::string> EnvironmentNames(std::string_view prefix) {
    return UnsupportedPlatform::EnvironmentNames(prefix);
  }
  static std::int64_t ThreadCpuTimeNs(std::uint64_t /*thread_id*/) { return -1; }
  static std::int64_t ProcessCpuTimeNs() { return -1; }
  static std::vector<ProgramThread> ProgramThreads() { return {}; }
  static std::string ThreadName(std::uint64_t /*thread_id*/) { return {}; }
  static std::int64_t OwnCpuTimeNs() { return 0; }
  static int DefaultSignal() { return 1; }
  static absl::Status InstallHandler(int /*signal*/) { return absl::OkStatus(); }
  static HandlerState HandlerStateOf(int /*signal*/) { return HandlerState::kOurs; }
  static bool StartTimer(Timer& /*timer*/, std::uint64_t /*thread_id*/, std::uint64_t /*payload*/,
                         std::int64_t /*first_ns*/, std::int64_t /*period_ns*/, int /*signal*/) {
    return false;
  }
  static void StopTimer(Timer& /*timer*/) {}
  static bool Interrupt(std::uint64_t /*thread_id*/, std::uint64_t /*payload*/, int /*signal*/,
                        bool /*was_running*/) {
    return false;
  }
  static std::uint64_t ModuleVersion() { return 0; }
  static std::vector<Module> Modules() { return {}; }
  static const SymbolFiles& Files() {
    static constexpr NoSymbolFiles kNone;
    return kNone;
  }
  static const ProfileDirectories& Directories() {
    static constexpr NoProfileDirectories kNone;
    return kNone;
  }
  static std::size_t ReadMemory(std::uint64_t /*address*/, std::span<std::uint8_t> /*bytes*/) {
    return 0;
  }
  static std::size_t ReadStack(std::uint64_t /*address*/,
                               std::span<std::uint8_t> /*bytes*/) noexcept {
    return 0;
  }
  static OwnThread RunOnOwnThread(const char* /*name*/, std::function<void()> body) {
    return OwnThread(std::move(body));
  }
  static std::uint64_t ForkCount() { return 0; }
  static bool AtExit(void (* /*function*/)()) { return false; }
  // A template, because the concept promises only calls, not a function with an address.
  template <class Text>
  static void WriteLine(const Text& /*text*/) {}
  static Mapping MapMemory(std::uint64_t bytes) {
    void* memory = ::operator new (bytes, std::align_val_t{kMappingAlignment}, std::nothrow);
    if (memory == nullptr) return {};
    std::memset(memory, 0, bytes);
    return {.bytes = {static_cast<std::byte*>(memory), bytes}};
  }
  static void UnmapMemory(Mapping mapping) {
    ::operator delete (mapping.bytes.data(), std::align_val_t{kMappingAlignment});
  }
  // Discarded memory may hold any bytes afterwards.
  static void DiscardMemory(void* memory, std::uint64_t bytes) { std::memset(memory, 0x5A, bytes); }
};
static_assert(Platform<ArchetypePlatform>);

struct ArchetypeTraits {
  using Clock = ArchetypeClock;
  using Ring = ArchetypeRing;
  using Unwinder = ArchetypeUnwinder;
  using Providers =
      ProviderList<ArchetypeProvider, ArchetypeClockedProvider, ArchetypePolledProvider>;
  using Symbolizer = ArchetypeSymbolizer;
  using Outputs = OutputList<Output<ArchetypeEncoder, ArchetypeExporter>>;
  using Platform = ArchetypePlatform;
};

}  // namespace strobe::testing
