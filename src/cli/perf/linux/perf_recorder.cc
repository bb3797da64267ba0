#include "perf_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "file_shares.h"
#include "perf/perf_fields.h"
#include "perf/proc_files.h"
#include "strobe/platform/native.h"
#include "strobe/process/mapping.h"

namespace strobe::internal {
namespace {

// How often the threads of a process are listed until no new one is found.
constexpr int kMaxRounds = 64;
// Of the descendants of a process, those of so many are looked for.
constexpr std::size_t kMaxDescendants = 10'000;
// The rings are emptied each time that so many processes have been read.
constexpr std::size_t kProcessesPerRound = 32;
const char* const kKernelSymbols = "/proc/kallsyms";

// True if the kernel says so. It need not look at all processes for that.
bool HasNoChildren(std::uint32_t process) {
  const std::string tasks = absl::StrCat("/proc/", process, "/task");
  return std::ranges::all_of(IdsIn(tasks), [&](std::uint32_t thread) {
    std::ifstream file(absl::StrCat(tasks, "/", thread, "/children"));
    return file.is_open() && file.peek() == std::ifstream::traits_type::eof();
  });
}

// What the process has started, and that has started, each behind its parent.
std::vector<std::uint32_t> DescendantsOf(std::uint32_t process) {
  if (HasNoChildren(process)) return {};
  std::map<std::uint32_t, std::vector<std::uint32_t>> children;
  for (const std::uint32_t id : IdsIn("/proc")) children[StatusNumber(id, "PPid")].push_back(id);
  std::vector<std::uint32_t> descendants = children[process];
  for (std::size_t i = 0; i < descendants.size() && i < kMaxDescendants; ++i) {
    const std::vector<std::uint32_t> more = std::move(children[descendants[i]]);
    descendants.insert(descendants.end(), more.begin(), more.end());
  }
  return descendants;
}

}  // namespace

PerfRecorder::PerfRecorder(PerfEventOptions options, SymbolSearch search)
    : events_(std::move(options)),
      account_(events_.header(), NativePlatform::Files(),
               {.max_images = FileShares::OfThisProcess().images,
                .uses_process_roots = true,
                .search = std::move(search)},
               kKernelSymbols),
      order_([this](const PerfRecord& record, std::uint64_t time) {
        return account_.Take(record, time);
      }) {
  kernel_ = std::async(std::launch::deferred, &KernelSymbols::Read, kKernelSymbols);
  account_.UseGenerated(
      [this](std::uint32_t process, Address address) { return jit_names_.Find(process, address); });
}

absl::Status PerfRecorder::Attach(std::uint32_t process) {
  const std::string name = absl::StrCat("process ", process);
  const std::uint32_t owner = StatusNumber(process, "Tgid");
  if (owner != 0 && owner != process) {
    return absl::InvalidArgumentError(absl::StrCat(process, " is a thread of process ", owner,
                                                   ": --tid ", process, " records it alone"));
  }
  bool has_any = false;
  for (int round = 0; round < kMaxRounds; ++round) {
    // Threads that a known one starts inherit its events, and a record says so.
    const std::vector<std::uint32_t> threads = IdsIn(absl::StrCat("/proc/", process, "/task"));
    if (absl::Status status = NoteThreads(); !status.ok()) return status;
    bool has_new = false;
    for (const std::uint32_t thread : threads) {
      if (!AddThread(thread, process)) continue;
      has_new = true;
      const absl::Status status = events_.Add({.id = static_cast<int>(thread), .name = name});
      if (!status.ok()) threads_.erase(thread);
      if (absl::IsNotFound(status)) continue;
      if (!status.ok()) return status;
      has_any = true;
    }
    if (!has_new) break;
  }
  if (!has_any) return NoProcessError(std::to_string(process));
  return TakeOver(process);
}

absl::Status PerfRecorder::AttachDescendants(std::uint32_t process) {
  absl::flat_hash_set<std::uint32_t> family{process};
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<std::uint32_t> descendants = DescendantsOf(process);
    if (absl::Status status = NoteThreads(); !status.ok()) return status;
    bool has_new = false;
    for (const std::uint32_t descendant : descendants) {
      if (!family.insert(descendant).second) continue;
      has_new = true;
      if (HasEvents(descendant)) continue;
      const absl::Status status = Attach(descendant);
      if (absl::IsPermissionDenied(status)) ++refused_;
      // One that ends meanwhile needs no events.
      if (!status.ok() && !absl::IsNotFound(status) && !absl::IsPermissionDenied(status))
        return status;
    }
    if (!has_new) break;
  }
  return absl::OkStatus();
}

absl::Status PerfRecorder::TakeOver(std::uint32_t process) {
  absl::Status status = account_.Attach(process);
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(absl::StrCat(
      status.message(), ", and code has no names without: run as its user or as root"));
}

absl::Status PerfRecorder::AttachThread(std::uint32_t thread) {
  const std::uint32_t owner = StatusNumber(thread, "Tgid");
  if (owner == 0) return absl::NotFoundError(absl::StrCat("there is no thread ", thread));
  if (!AddThread(thread, owner)) return absl::OkStatus();
  const absl::Status status = events_.Add({.scope = PerfTarget::Scope::kThread,
                                           .id = static_cast<int>(thread),
                                           .name = absl::StrCat("thread ", thread)});
  return status.ok() ? TakeOver(owner) : status;
}

// The events come first: so a process is in /proc by then, or a record says that it has begun.
absl::Status PerfRecorder::AttachMachine(std::optional<int> cgroup) {
  absl::Status status =
      cgroup
          ? events_.Add(
                {.scope = PerfTarget::Scope::kCgroup, .id = *cgroup, .name = "the control group"})
          : events_.Add({.scope = PerfTarget::Scope::kMachine, .name = "the whole machine"});
  if (!status.ok()) return status;
  account_.UseMachine();
  std::size_t count = 0;
  for (const std::uint32_t process : IdsIn("/proc")) {
    status = account_.Attach(process);
    if (absl::IsPermissionDenied(status)) ++unreadable_;
    if (++count % kProcessesPerRound != 0) continue;
    if (status = NoteThreads(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool PerfRecorder::AddThread(std::uint32_t thread, std::uint32_t process) {
  if (HasEvents(thread)) return false;
  threads_[thread] = {process, PerfEvents::Now()};
  return true;
}

bool PerfRecorder::HasEvents(std::uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && !found->second.has_ended;
}

void PerfRecorder::SetThread(std::uint32_t thread, const Attached& attached) {
  Attached& place = threads_[thread];
  if (place.since <= attached.since) place = attached;
}

absl::Status PerfRecorder::AttachAtExec(std::uint32_t process, std::uint32_t thread,
                                        const std::string& name) {
  if (absl::Status status = NoteThreads(); !status.ok()) return status;
  if (!AddThread(thread, process))
    return absl::AlreadyExistsError(absl::StrCat(name, " has events already"));
  absl::Status status = events_.Add(
      {.id = static_cast<int>(thread), .name = name, .begin = PerfTarget::Begin::kAtExec});
  if (!status.ok()) threads_.erase(thread);
  return status;
}

void PerfRecorder::Detach(std::uint32_t thread) {
  if (events_.Remove(static_cast<int>(thread))) threads_.erase(thread);
}

// What asks to be recorded waits: so the names are read meanwhile, where the system has a thread.
absl::Status PerfRecorder::BeginMany(Many many) {
  has_many_ = true;
  kernel_ =
      std::async(std::launch::async | std::launch::deferred, &KernelSymbols::Read, kKernelSymbols);
  account_.LeaveOut(std::move(many.left_out));
  return events_.Add({.scope = PerfTarget::Scope::kThread,
                      .id = gettid(),
                      .name = "what loads no library",
                      .begin = PerfTarget::Begin::kNever});
}

void PerfRecorder::NoteThread(const PerfRecord& record, std::uint64_t time) {
  PerfFields fields(record.body);
  const auto process = fields.Take<std::uint32_t>();
  if (record.type == PerfRecordType::kComm) {
    if (IsExec(record)) NoteExec(process, time);
    return;
  }
  fields.Take<std::uint32_t>();  // the parent
  const auto thread = fields.Take<std::uint32_t>();
  SetThread(thread, {process, time, record.type == PerfRecordType::kExit});
}

void PerfRecorder::NoteExec(std::uint32_t process, std::uint64_t time) {
  for (auto& [thread, attached] : threads_) {
    if (thread == process || attached.process != process || attached.since > time) continue;
    if (!attached.has_ended) events_.Rename(static_cast<int>(thread), static_cast<int>(process));
    attached = {process, time, true};
  }
  SetThread(process, {process, time});
}

absl::Status PerfRecorder::NoteThreads() {
  return events_.Drain([this](const PerfRecord& record) {
    const std::uint64_t time = TimeOf(events_.header(), record);
    if (record.type == PerfRecordType::kFork || record.type == PerfRecordType::kExit ||
        record.type == PerfRecordType::kComm)
      NoteThread(record, time);
    return order_.Add(record, time);
  });
}

absl::Status PerfRecorder::Collect(std::span<pollfd> others, std::chrono::milliseconds timeout) {
  events_.Wait(others, timeout);
  return TakeRecords();
}

void PerfRecorder::AwaitKernel() {
  if (kernel_.valid()) account_.UseRunningKernel(kernel_.get());
}

absl::Status PerfRecorder::TakeRecords() {
  if (absl::Status status = NoteThreads(); !status.ok()) return status;
  if (kernel_.valid() && kernel_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout)
    return absl::OkStatus();
  AwaitKernel();
  if (has_many_) events_.CloseEnded();
  if (absl::Status status = order_.EndRound(); !status.ok()) return status;
  events_.ForgetClosed(order_.given_until());
  absl::erase_if(threads_, [this](const auto& entry) {
    return entry.second.has_ended && entry.second.since <= order_.given_until();
  });
  return absl::OkStatus();
}

absl::StatusOr<LoadedProfile> PerfRecorder::EndPeriod() {
  const std::uint64_t end = PerfEvents::Now();
  const std::vector<PerfAccount::Total> totals = events_.Totals();
  if (absl::Status status = NoteThreads(); !status.ok()) return status;
  AwaitKernel();
  if (absl::Status status = order_.EndAt(end); !status.ok()) return status;
  return MakeProfile(totals);
}

absl::StatusOr<LoadedProfile> PerfRecorder::Finish(const absl::Status& status) {
  events_.Stop();
  const std::uint64_t end = PerfEvents::Now();
  AwaitKernel();
  absl::Status last = status;
  if (last.ok()) last = TakeRecords();
  if (last.ok()) last = order_.Finish();
  account_.EndAbsences(end);
  absl::StatusOr<LoadedProfile> loaded = MakeProfile(events_.Totals());
  if (!loaded.ok()) return loaded;
  if (!last.ok())
    loaded->comments.push_back(absl::StrCat("the recording ended early: ", last.message()));
  if (events_.broken_rings() > 0)
    loaded->comments.push_back(absl::StrCat("rings skipped: ", events_.broken_rings()));
  return loaded;
}

// `totals` are those since the beginning.
absl::StatusOr<LoadedProfile> PerfRecorder::MakeProfile(std::vector<PerfAccount::Total> totals) {
  std::vector<PerfAccount::Total> of_period = totals;
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    of_period[i].lost -= totals_[i].lost;
    if (of_period[i].amount) *of_period[i].amount -= totals_[i].amount.value_or(0);
  }
  totals_ = std::move(totals);
  account_.SetTotals(of_period);
  const PerfCounts counts = account_.counts();
  all_.stacks_of_32_bit += counts.stacks_of_32_bit;
  all_.stacks_of_other_cpus += counts.stacks_of_other_cpus;
  absl::StatusOr<LoadedProfile> loaded = account_.Finish();
  if (!loaded.ok()) return loaded;
  loaded->format = "perf events";
  if (refused_ > 0) {
    loaded->comments.push_back(
        absl::StrCat("perf events: ", refused_,
                     " descendants belong to other users, or have more rights: not recorded"));
  }
  if (unreadable_ > 0) {
    loaded->comments.push_back(
        absl::StrCat("perf events: processes that this user may not look into, so that their code "
                     "has no names: ",
                     unreadable_));
  }
  loaded->comments.push_back(
      absl::StrCat("perf events: ", counts.Text(),
                   events_.sees_kernel() ? "" : "; the kernel's part may not be seen"));
  return loaded;
}

}  // namespace strobe::internal
