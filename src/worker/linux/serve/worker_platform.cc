#include "strobe/worker/serve/worker_platform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "../../../platform/linux/files/small_file.h"
#include "../../../platform/linux/memory/process_memory.h"
#include "../../../platform/linux/signals/signal_handler.h"
#include "../../../platform/linux/task_files.h"
#include "../../../platform/own_threads.h"
#include "absl/strings/str_cat.h"
#include "program_end.h"
#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/clock/system_clock.h"
#include "strobe/core/sample_context.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/machine.h"
#include "strobe/provider/level_memory.h"
#include "strobe/worker/shared/export_marks.h"
#include "worker_images.h"

namespace strobe::internal {
namespace {

// Reading the mappings takes one of so many parts of the time at most.
constexpr std::int64_t kTimeShare = 100;
constexpr std::int64_t kLeastPauseNs = 50'000'000;
// A process closes its files before it counts as ended; a large one takes a while in between.
constexpr std::int64_t kEndOfProcessNs = 1'000'000'000;

std::optional<LabelSet> FindLabels(std::uint64_t number);

struct Served {
  explicit Served(ServedProgram of)
      : program(std::move(of)), images(program.process_id, LinuxPlatform::Files()) {
    if (!program.tables.bytes().empty()) {
      const Address address = program.store == nullptr ? 0 : program.store_address;
      tables.emplace(std::move(program.tables), program.area.Caches(),
                     StoreInProgram{.store = program.store, .address = address},
                     LinuxPlatform::ProcessId(), &WorkerPlatform::DiscardMemory);
    }
  }
  ~Served() {
    if (process >= 0) close(process);
    if (!program.is_own) program.area.Unmap();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  // Threads that the collector has displaced from its CPU. Used by the collector.
  void NoteDisplaced(std::uint64_t thread_id, bool is_displaced) {
    std::erase(displaced, thread_id);
    if (is_displaced) displaced.push_back(thread_id);
  }
  [[nodiscard]] bool IsDisplaced(std::uint64_t thread_id) const {
    return std::ranges::find(displaced, thread_id) != displaced.end();
  }

  ServedProgram program;
  // Readable when the program has ended (Linux 5.3). -1 if the system refuses it, and in the
  // program itself, which does not outlive its end.
  const int process =
      program.is_own
          ? -1
          : static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(program.process_id), 0));
  LabelTable labels{&FindLabels};
  std::vector<std::uint64_t> displaced;
  PublishedCode& code = program.area.CodeOf(program.worker);
  const UnwindModules* const programs_tables = code.tables.load(std::memory_order_seq_cst);
  std::uint32_t used_chunks = 0;
  std::atomic<bool> has_left{false};  // the area
  std::mutex clocks_mutex;
  std::unordered_map<std::uint64_t, std::int64_t> clocks;  // by thread: what was read last
  std::optional<SharedTables> tables;
  ExportMarks marks{program.area};
  WorkerImages images;
  std::vector<strobe::Mapping> mappings;
  std::uint64_t version = 0;
  std::int64_t next_look_ns = 0;
};

// Of the program that the calling thread serves. A hanging exporter keeps it.
thread_local std::shared_ptr<Served> served_program;

std::optional<LabelSet> FindLabels(std::uint64_t number) {
  return served_program->program.area.Contexts().labels.Find(number);
}

// nullptr for this process's own, on a thread that serves no other one.
bool ServesAnother() {
  return served_program != nullptr &&
         served_program->program.process_id != LinuxPlatform::ProcessId();
}
LabelTable* LabelsOfProgram() { return ServesAnother() ? &served_program->labels : nullptr; }
std::uint64_t ProcessLabelsOfProgram() {
  return ServesAnother() ? served_program->program.area.Contexts().process_labels.load(
                               std::memory_order_acquire)
                         : ProcessContext::labels();
}
SlowSpans* SlowSpansOfProgram() {
  return ServesAnother() ? &served_program->program.area.Contexts().slow_spans : nullptr;
}
std::span<std::byte> LevelsOfProgram() {
  return ServesAnother() ? served_program->program.area.Levels() : std::span<std::byte>();
}

std::string TasksDirectory() {
  return absl::StrCat("/proc/", served_program->program.process_id, "/task");
}
std::string TaskDirectory(std::uint64_t thread_id) {
  return absl::StrCat(TasksDirectory(), "/", thread_id);
}

// A thread's CPU clock, by its schedstat file: the first number is nanoseconds on a CPU. Of a
// thread that has ended, what was known last: the file cannot be read, and `text` is empty.
std::int64_t ClockOf(std::uint64_t thread_id, std::string_view text) {
  std::int64_t cpu_ns = -1;
  std::from_chars(text.data(), text.data() + text.size(), cpu_ns);
  const std::lock_guard lock(served_program->clocks_mutex);
  const auto last = served_program->clocks.find(thread_id);
  if (last == served_program->clocks.end()) return cpu_ns;
  return last->second = std::max(last->second, cpu_ns);
}

// What was known last of a thread's CPU clock.
std::int64_t LastClock(std::uint64_t thread_id) { return ClockOf(thread_id, ""); }

}  // namespace

ThreadPoll WorkerThreadProbe::Poll() {
  // The worker that looks has just taken a CPU: the thread may get it back when the worker waits.
  const LinuxInstant since_wake;
  if (served_program->program.is_own) {
    // Its clocks tell also where the system hides its files, because it is not dumpable.
    const ThreadPoll poll = probe_.Poll();
    seen_cpu_ns_ = probe_.seen_cpu_ns();
    was_displaced_ = poll == ThreadPoll::kHasRun && probe_.WasDisplaced(since_wake);
    return poll;
  }
  char text[96];
  const bool is_read = schedstat_.Read(thread_id_, "schedstat", text);
  seen_cpu_ns_ = ClockOf(thread_id_, is_read ? text : "");
  was_displaced_ = false;
  if (probe_.Observe().kind != ThreadActivity::Kind::kReady) return ThreadPoll::kHasNotRun;
  was_displaced_ = probe_.WasDisplaced(since_wake);
  served_program->NoteDisplaced(thread_id_, was_displaced_);
  return was_displaced_ ? ThreadPoll::kHasRun : ThreadPoll::kRuns;
}

bool WorkerPlatform::MayObserve(std::uint64_t process_id) {
  const Descriptor maps(
      open(absl::StrCat("/proc/", process_id, "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  return maps.is_open() || (errno != EACCES && errno != EPERM);
}

void WorkerPlatform::Serve(ServedProgram program) {
  if (!program.is_own) LinuxThreadFile::ObserveProcess(program.process_id);
  served_program = std::make_shared<Served>(std::move(program));
  UseProcessLabels(&LabelsOfProgram);
  ProcessContext::Serve(&ProcessLabelsOfProgram);
  UseProcessSlowSpans(&SlowSpansOfProgram);
  LevelMemory::Serve(&LevelsOfProgram);
}

LinuxPlatform::OwnThread WorkerPlatform::RunOnOwnThread(const char* name,
                                                        std::function<void()> body) {
  return LinuxPlatform::RunOnOwnThread(name, [served = served_program, run = std::move(body)] {
    if (!served->program.is_own) LinuxThreadFile::ObserveProcess(served->program.process_id);
    served_program = served;
    run();
  });
}

bool WorkerPlatform::HasEnded() {
  pollfd process{.fd = served_program->process, .events = POLLIN, .revents = 0};
  return served_program->process >= 0 && poll(&process, 1, 0) > 0;
}

bool WorkerPlatform::HasArea() {
  const ServedProgram& program = served_program->program;
  if (served_program->has_left.load(std::memory_order_acquire)) return false;
  if (program.area.IsOf(program.worker)) return true;
  if (!served_program->has_left.exchange(true) && !program.is_own) program.area.Leave();
  return false;
}

bool WorkerPlatform::IsWantedBack() {
  return !HasArea() || served_program->program.area.IsWantedFrom(served_program->program.worker);
}

bool WorkerPlatform::GiveBackArea() {
  if (!HasArea()) return false;
  served_program->marks.End();
  return served_program->program.area.GiveBack(served_program->program.worker);
}

std::string WorkerPlatform::HowEnded() {
  return EndOfProcess(served_program->process, served_program->program.process_id, kEndOfProcessNs);
}

void WorkerPlatform::NoteClock(std::uint64_t thread_id, std::int64_t cpu_ns) {
  const std::lock_guard lock(served_program->clocks_mutex);
  served_program->clocks[thread_id] = cpu_ns;
}

void WorkerPlatform::ForgetClock(std::uint64_t thread_id) {
  const std::lock_guard lock(served_program->clocks_mutex);
  served_program->clocks.erase(thread_id);
}

PublishedCode& WorkerPlatform::SharedCode() noexcept { return served_program->code; }

WorkerPlatform::Mapping WorkerPlatform::MapMemory(std::uint64_t bytes) {
  const std::span<std::byte> chunk =
      served_program->program.area.Chunk(served_program->used_chunks);
  if (chunk.size() != bytes) return {};
  ++served_program->used_chunks;
  return {.bytes = chunk};
}

void WorkerPlatform::DiscardMemory(void* memory, std::uint64_t bytes) {
  // Frees the pages of the file, in both processes.
  AdvisePages(memory, bytes, MADV_REMOVE);
}

void WorkerPlatform::GiveBack(std::uint32_t channel) { served_program->marks.GiveBack(channel); }

void WorkerPlatform::NoteThread(std::uint32_t channel, std::uint64_t thread_id) {
  served_program->marks.Begin(channel, thread_id);
}

void WorkerPlatform::EndPeriod(std::uint64_t sequence, std::span<const std::int64_t> sums) {
  // Not what the clocks read now: what the period's accounts have read.
  served_program->marks.EndPeriod(sequence, sums, SystemClock().MonotonicNs(), &LastClock);
}

void WorkerPlatform::NoteExported(std::uint64_t sequence) {
  served_program->marks.NoteExported(sequence);
}

std::shared_ptr<const UnwindModules> WorkerPlatform::ExposeTables(
    const std::shared_ptr<const UnwindModules>& tables) {
  if (served_program->program.is_own) return tables;
  std::shared_ptr<const UnwindModules> exposed;
  if (tables != nullptr && served_program->tables) exposed = served_program->tables->Expose(tables);
  if (exposed != nullptr) return exposed;
  return {exposed, served_program->programs_tables};  // the program owns it
}

std::shared_ptr<const UnwindTable> WorkerPlatform::ShareTable(const Module& module,
                                                              std::size_t chunk,
                                                              const CfiModules::BuildTable& build) {
  TableStore* const store = served_program->program.store.get();
  return store != nullptr ? store->Share(module, chunk, build) : build().table;
}

std::uint64_t WorkerPlatform::ProcessId() { return served_program->program.process_id; }
std::string WorkerPlatform::ProgramName() { return served_program->program.name; }
std::int64_t WorkerPlatform::ProcessMemoryBytes() { return ReadResidentBytes(ProcessId()); }
LabelSet WorkerPlatform::MachineTags() { return ReadMachine(ProcessId()); }

std::int64_t WorkerPlatform::ThreadCpuTimeNs(std::uint64_t thread_id) {
  if (thread_id == CurrentThreadId()) return 0;
  return ClockOf(thread_id, ReadStart(TaskDirectory(thread_id) + "/schedstat"));
}

std::int64_t WorkerPlatform::ProcessCpuTimeNs() {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(static_cast<pid_t>(served_program->program.process_id), &clock) != 0 ||
      clock_gettime(clock, &time) != 0)
    return -1;
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::vector<ProgramThread> WorkerPlatform::ProgramThreads() {
  std::vector<ProgramThread> threads;
  for (const std::uint64_t id : ThreadsIn(TasksDirectory())) {
    const bool is_own = served_program->program.is_own && IsOwnThread(id, ForkCount());
    const std::int64_t cpu_ns = is_own ? -1 : ThreadCpuTimeNs(id);
    if (cpu_ns >= 0) threads.push_back({.id = id, .cpu_ns = cpu_ns});
  }
  return threads;
}

std::string WorkerPlatform::ThreadName(std::uint64_t thread_id) {
  return ThreadNameIn(TasksDirectory(), thread_id);
}

std::int64_t WorkerPlatform::OwnCpuTimeNs() {
  return served_program->program.is_own ? LinuxPlatform::OwnCpuTimeNs() : 0;
}

int WorkerPlatform::DefaultSignal() { return served_program->program.signal; }

std::uint64_t WorkerPlatform::BlockedSignals(std::uint64_t thread_id) {
  return BlockedSignalsIn(TaskDirectory(thread_id));
}

bool WorkerPlatform::Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                               bool was_running) {
  // The program knows its signals by its own copy's mark.
  payload = (payload & ((std::uint64_t{1} << ChannelToken::kCopyShift) - 1)) |
            served_program->program.copy_mark << ChannelToken::kCopyShift;
  const bool may_be_late = was_running && !served_program->IsDisplaced(thread_id);
  return SendRequest(served_program->program.process_id, thread_id, payload, signal, was_running,
                     may_be_late);
}

std::uint64_t WorkerPlatform::ModuleVersion() {
  const SystemClock clock;
  const std::int64_t now_ns = clock.MonotonicNs();
  if (now_ns < served_program->next_look_ns) return served_program->version;
  absl::StatusOr<std::vector<strobe::Mapping>> mappings =
      ReadMaps(std::to_string(served_program->program.process_id), &LinuxPlatform::Files());
  // An ended process has none: its last samples belong to what it had.
  if (mappings.ok() && !mappings->empty() && *mappings != served_program->mappings) {
    served_program->mappings = *std::move(mappings);
    ++served_program->version;
  }
  const std::int64_t took_ns = clock.MonotonicNs() - now_ns;
  served_program->next_look_ns = now_ns + std::max(kLeastPauseNs, kTimeShare * took_ns);
  return served_program->version;
}

std::vector<Module> WorkerPlatform::Modules() {
  return served_program->images.Describe(served_program->mappings);
}

std::size_t WorkerPlatform::ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes) {
  std::size_t done = ReadPages<kPagesPerRead>(
      static_cast<pid_t>(served_program->program.process_id), address, bytes);
  if (done < bytes.size()) done += served_program->images.Read(address + done, bytes.subspan(done));
  return done;
}

}  // namespace strobe::internal
