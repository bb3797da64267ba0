#include "perf_events.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <utility>

#include "../../../platform/linux/cpu_list.h"
#include "../../../platform/linux/files/call_filter.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "file_shares.h"
#include "perf/proc_files.h"
#include "strobe/process/mapping.h"
#include "strobe/process/perf_registers.h"

namespace strobe::internal {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
// A ring wakes the reader when this part of it is full.
constexpr std::size_t kWakeupPart = 4;
constexpr std::size_t kMinRingBytes = std::size_t{64} << 10;

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A setting of the kernel's; `unknown` if it cannot be read.
int ReadSetting(const char* path, int unknown) {
  int value = unknown;
  return absl::SimpleAtoi(ReadLine(path), &value) ? value : unknown;
}
int ReadParanoid() {
  return ReadSetting("/proc/sys/kernel/perf_event_paranoid", PerfRefusal::kNoParanoid);
}

// True if this user may look into the thread's process.
bool MayTrace(const PerfTarget& target) { return ReadMaps(absl::StrCat(target.id)).ok(); }

// The kernel gives the files of a process that is not dumpable to root.
std::string WhyUntraced(const PerfTarget& target) {
  const std::string own = absl::StrCat(geteuid());
  // Its real, effective, saved and file system's.
  const std::vector<std::string> users =
      absl::StrSplit(StatusValue(static_cast<std::uint32_t>(target.id), "Uid"), '\t');
  struct stat file {};
  if (std::ranges::all_of(users, [&](const std::string& user) { return user == own; }) &&
      stat(absl::StrCat("/proc/", target.id, "/maps").c_str(), &file) == 0 &&
      file.st_uid != geteuid()) {
    return "it is not dumpable (prctl PR_SET_DUMPABLE, or a program that may not be read), so only "
           "root may look into it; run as root";
  }
  if (users.front() == own) return "it has more rights than this process; run as root";
  const std::string known = users.front().empty() ? "" : absl::StrCat(" (", users.front(), ")");
  return absl::StrCat("it belongs to another user", known, "; run as that user or as root");
}

std::int64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// When a request has a sample.
void SetPeriod(const PerfRequest& request, const PerfEventOptions& options,
               perf_event_attr& attributes) {
  if (request.is_clock()) {
    attributes.sample_period = static_cast<std::uint64_t>(kNanosecondsPerSecond / options.hz);
  } else if (request.has_rate()) {
    attributes.freq = 1;
    attributes.sample_freq = static_cast<std::uint64_t>(std::max(options.hz, 1.0));
  } else {
    // Each absence has a beginning.
    attributes.sample_period = request.is_off_cpu ? 1 : options.count;
  }
}

std::size_t RingBytes(const PerfEventOptions& options, std::size_t cpus) {
  const std::size_t most = PerfEvents::kMaxRingBytes / std::max<std::size_t>(cpus, 1);
  return std::bit_floor(std::max(std::min(options.ring_bytes, most), kMinRingBytes));
}

}  // namespace

PerfEvents::PerfEvents(PerfEventOptions options)
    : options_(std::move(options)),
      cpus_(ParseCpus(ReadLine("/sys/devices/system/cpu/online"))),
      ring_bytes_(RingBytes(options_, cpus_.size())),
      rings_(cpus_.size()) {
  header_.clock_offset_ns = Nanoseconds(CLOCK_REALTIME) - Nanoseconds(CLOCK_MONOTONIC);
}

absl::Status PerfEvents::Add(const PerfTarget& target) {
  if (cpus_.empty()) return absl::UnavailableError("/sys does not say which CPUs there are");
  if (opened_.empty()) FindWhatMayBeSeen(target);
  counts_idle_ = target.scope == PerfTarget::Scope::kMachine;
  const std::size_t before = opened_.size();
  for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    for (std::size_t request = 0; request < options_.requests.size(); ++request) {
      absl::Status status = AddOne(request, cpu, target);
      if (status.ok()) continue;
      CloseFrom(before);
      return status;
    }
  }
  if (target.begin != PerfTarget::Begin::kNow) return absl::OkStatus();
  for (std::size_t i = before; i < opened_.size(); ++i)
    ioctl(opened_[i].descriptor.get(), PERF_EVENT_IOC_ENABLE, 0);
  return absl::OkStatus();
}

// The first event decides what all samples have. If it leaves the kernel out by itself, an event
// that does not tells whether the kernel may be seen.
void PerfEvents::FindWhatMayBeSeen(const PerfTarget& target) {
  const auto counts_kernel =
      std::ranges::find(options_.requests, true, &PerfRequest::counts_kernel);
  if (target.is_of_cpus() || counts_kernel == options_.requests.begin() ||
      counts_kernel == options_.requests.end())
    return;
  const auto request = static_cast<std::size_t>(counts_kernel - options_.requests.begin());
  const Descriptor probe = TryToOpen(request, cpus_[0], target);
  if (!probe.is_open() && errno == EACCES && MayTrace(target)) sees_kernel_ = false;
}

absl::Status PerfEvents::AddOne(std::size_t request, std::size_t cpu, const PerfTarget& target) {
  if (opened_.size() >= FileShares::OfThisProcess().events) return Refused(EMFILE, request, target);
  absl::StatusOr<Descriptor> opened = Open(request, cpus_[cpu], target);
  if (!opened.ok()) return opened.status();
  const int descriptor = opened->get();
  if (rings_[cpu] == nullptr) {
    if (absl::Status status = MapRing(descriptor, cpu); !status.ok()) return status;
  } else if (ioctl(descriptor, PERF_EVENT_IOC_SET_OUTPUT, rings_[cpu]->descriptor()) != 0) {
    return Refused(errno, request, target);
  }
  std::uint64_t id = 0;
  if (ioctl(descriptor, PERF_EVENT_IOC_ID, &id) != 0) return Refused(errno, request, target);
  header_.events_by_id[id] = static_cast<std::uint32_t>(request);
  opened_.push_back({*std::move(opened), request, target.id, id});
  return absl::OkStatus();
}

bool PerfEvents::HasRing(const Opened& opened) const {
  return std::ranges::any_of(rings_, [&](const auto& ring) {
    return ring != nullptr && ring->descriptor() == opened.descriptor.get();
  });
}

void PerfEvents::CloseFrom(std::size_t first) {
  for (std::size_t i = first; i < opened_.size(); ++i) {
    const int descriptor = opened_[i].descriptor.get();
    for (auto& ring : rings_) {
      if (ring != nullptr && ring->descriptor() == descriptor) ring.reset();
    }
    std::erase_if(polled_, [&](const pollfd& polled) { return polled.fd == descriptor; });
    NoteClosed(opened_[i]);
  }
  opened_.resize(first);
}

bool PerfEvents::Remove(int thread) {
  return std::erase_if(opened_, [&](const Opened& opened) {
           if (opened.target != thread || HasRing(opened)) return false;
           NoteClosed(opened);
           return true;
         }) > 0;
}

void PerfEvents::Rename(int thread, int to) {
  for (Opened& opened : opened_) {
    if (opened.target == thread) opened.target = to;
  }
}

void PerfEvents::NoteClosed(const Opened& opened) { closed_.push_back({opened.id, Now()}); }

void PerfEvents::ForgetClosed(std::uint64_t until) {
  for (; !closed_.empty() && closed_.front().time <= until; closed_.pop_front())
    header_.events_by_id.erase(closed_.front().id);
}

void PerfEvents::CloseEnded() {
  std::vector<pollfd> all;
  for (const Opened& opened : opened_) all.push_back({opened.descriptor.get(), 0, 0});
  if (poll(all.data(), all.size(), 0) <= 0) return;
  ended_.resize(options_.requests.size());
  std::size_t index = 0;
  std::erase_if(opened_, [&](const Opened& opened) {
    if ((all[index++].revents & POLLHUP) == 0 || HasRing(opened)) return false;
    AddTotal(opened, ended_[opened.request]);
    NoteClosed(opened);
    return true;
  });
}

perf_event_attr PerfEvents::AttributesOf(std::size_t request, const PerfTarget& target) const {
  const PerfRequest& asked = options_.requests[request];
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = asked.type;
  attributes.config = asked.config;
  SetPeriod(asked, options_, attributes);
  attributes.sample_type = kPerfIdentifier | kPerfIp | kPerfThread | kPerfTime | kPerfPeriod |
                           kPerfRegisters | kPerfStack;
  if (sees_kernel_) attributes.sample_type |= kPerfCallchain;
  // To say the period in samples, the kernel has one for each event, whatever the period is: as the
  // amounts of a field need it. Of some tracepoints an event else has many samples.
  if (!asked.has_rate() && !asked.field) attributes.sample_type &= ~std::uint64_t{kPerfPeriod};
  if (asked.field) attributes.sample_type |= kPerfRaw;
  attributes.exclude_callchain_user = 1;
  attributes.exclude_kernel = !sees_kernel_ || !asked.counts_kernel;
  attributes.exclude_user = !asked.counts_user;
  attributes.exclude_hv = 1;
  attributes.sample_regs_user = PerfRegisterMask();
  attributes.sample_stack_user = static_cast<std::uint32_t>(options_.stack_bytes);
  attributes.read_format = counts_lost_ ? PERF_FORMAT_LOST : 0;
  attributes.disabled = 1;
  attributes.enable_on_exec = target.begin == PerfTarget::Begin::kAtExec;
  attributes.inherit = target.scope == PerfTarget::Scope::kThreadAndStarted;
  attributes.exclude_idle = target.is_of_cpus();
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<std::uint32_t>(ring_bytes_ / kWakeupPart);
  const bool tells = request == 0;  // of code, names and threads, for all events of the thread
  attributes.mmap = attributes.mmap2 = attributes.comm = attributes.comm_exec = tells;
  attributes.task = tells;
  attributes.build_id = tells && has_build_ids_;
  attributes.context_switch = asked.is_off_cpu;
  return attributes;
}

Descriptor PerfEvents::TryToOpen(std::size_t request, int cpu, const PerfTarget& target) const {
  const perf_event_attr attributes = AttributesOf(request, target);
  unsigned long flags = PERF_FLAG_FD_CLOEXEC;
  if (target.scope == PerfTarget::Scope::kCgroup) flags |= PERF_FLAG_PID_CGROUP;
  return Descriptor(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, target.id, cpu, -1, flags)));
}

// Asks for less where this kernel is old, or this user may not see the kernel.
absl::StatusOr<Descriptor> PerfEvents::Open(std::size_t request, int cpu,
                                            const PerfTarget& target) {
  const PerfRequest& asked = options_.requests[request];
  while (true) {
    if (!sees_kernel_ && (asked.is_of_kernel() || !asked.counts_user))
      return absl::PermissionDeniedError(KernelRefusalText(asked.name, ReadParanoid()));
    Descriptor descriptor = TryToOpen(request, cpu, target);
    const int error = errno;
    if (descriptor.is_open()) {
      if (header_.events.size() > request) return descriptor;
      const perf_event_attr attributes = AttributesOf(request, target);
      const auto bytes = std::as_bytes(std::span(&attributes, 1));
      if (absl::Status status = header_.AddEvent(bytes, {}); !status.ok()) return status;
      header_.events.back().name = asked.name;
      header_.events.back().is_off_cpu = asked.is_off_cpu;
      header_.events.back().is_switch = asked.is_switch;
      header_.events.back().field = asked.field;
      return descriptor;
    }
    // The first event decides for all: their samples have the same fields.
    const bool may_ask_for_less = opened_.empty();
    if (may_ask_for_less && error == EINVAL && std::exchange(counts_lost_, false)) continue;
    if (may_ask_for_less && error == EINVAL && std::exchange(has_build_ids_, false)) continue;
    if (may_ask_for_less && error == EACCES && !target.is_of_cpus() && MayTrace(target) &&
        std::exchange(sees_kernel_, false))
      continue;
    return Refused(error, request, target);
  }
}

absl::Status PerfEvents::MapRing(int descriptor, std::size_t cpu) {
  while (true) {
    absl::StatusOr<std::unique_ptr<PerfRing>> ring = PerfRing::Map(descriptor, ring_bytes_);
    if (ring.ok()) {
      rings_[cpu] = *std::move(ring);
      polled_.push_back({descriptor, POLLIN, 0});
      return absl::OkStatus();
    }
    if (!absl::IsPermissionDenied(ring.status()) || ring_bytes_ <= kMinRingBytes) {
      return absl::Status(ring.status().code(),
                          absl::StrCat("no memory for the rings of perf events: ",
                                       ring.status().message(), " (ulimit -l)"));
    }
    ring_bytes_ /= 2;
  }
}

absl::Status PerfEvents::Refused(int error, std::size_t request, const PerfTarget& target) const {
  if (error == ESRCH) return absl::NotFoundError(absl::StrCat(target.name, " has ended"));
  const auto code = error == EMFILE || error == ENFILE ? absl::StatusCode::kResourceExhausted
                                                       : absl::StatusCode::kPermissionDenied;
  PerfRefusal refusal{.error = error,
                      .event = options_.requests[request].name,
                      .target = target.name,
                      .paranoid = ReadParanoid(),
                      .has_filter = HasCallFilter(),
                      .is_of_cpus = target.is_of_cpus(),
                      .has_field = options_.requests[request].field.has_value()};
  if (error == EINVAL) {
    const int most_hz = ReadSetting("/proc/sys/kernel/perf_event_max_sample_rate", INT_MAX);
    const std::uint32_t type = options_.requests[request].type;
    if (options_.hz > most_hz) {
      refusal.most_hz = most_hz;
    } else if (type == PerfEvent::kHardware || type == PerfEvent::kCache) {
      refusal.error = ENOENT;  // a CPU that has no such counter may say that the event is wrong
    }
  }
  if (!target.is_of_cpus() && !MayTrace(target)) refusal.untraced = WhyUntraced(target);
  return absl::Status(code, RefusalText(refusal));
}

std::uint64_t PerfEvents::Now() { return static_cast<std::uint64_t>(Nanoseconds(CLOCK_MONOTONIC)); }

void PerfEvents::Stop() {
  for (const Opened& opened : opened_) ioctl(opened.descriptor.get(), PERF_EVENT_IOC_DISABLE, 0);
}

void PerfEvents::Wait(std::span<pollfd> others, std::chrono::milliseconds timeout) {
  const std::size_t rings = polled_.size();
  polled_.insert(polled_.end(), others.begin(), others.end());
  poll(polled_.data(), polled_.size(), static_cast<int>(timeout.count()));
  std::copy(polled_.begin() + static_cast<std::ptrdiff_t>(rings), polled_.end(), others.begin());
  polled_.resize(rings);
  // A ring stays so after the thread of its first event has ended. It is still read in time.
  for (pollfd& ring : polled_) {
    if ((ring.revents & (POLLHUP | POLLERR)) != 0) ring = {-1, 0, 0};
  }
}

std::vector<PerfAccount::Total> PerfEvents::Totals() const {
  std::vector<PerfAccount::Total> totals = ended_;
  totals.resize(options_.requests.size());
  for (const Opened& opened : opened_) AddTotal(opened, totals[opened.request]);
  return totals;
}

void PerfEvents::AddTotal(const Opened& opened, PerfAccount::Total& total) const {
  std::array<std::uint64_t, 2> words{};  // counted, lost
  if (read(opened.descriptor.get(), words.data(), sizeof(words)) <= 0) return;
  total.lost += words[1];
  // A clock counts the kernel's part, too, if its samples leave that out; and the idle task's.
  const PerfRequest& asked = options_.requests[opened.request];
  const bool is_whole = asked.counts_user && asked.counts_kernel && !counts_idle_;
  // What is counted of a field are the events, not their amounts.
  if ((is_whole || !asked.is_clock()) && !asked.field)
    total.amount = total.amount.value_or(0) + words[0];
}

std::uint64_t PerfEvents::broken_rings() const {
  std::uint64_t broken = 0;
  for (const auto& ring : rings_) broken += ring == nullptr ? 0 : ring->broken();
  return broken;
}

}  // namespace strobe::internal
