// A profiler of other processes: which functions use the CPU in a process that knows nothing of it.
//
//   other_processes PID SECONDS
#include <linux/perf_event.h>
#include <strobe/platform/native.h>
#include <strobe/process/perf_registers.h>
#include <strobe/process/process_names.h>
#include <strobe/process/process_table.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t kMask = strobe::PerfRegisterMask();  // of the registers that a walk needs
constexpr std::size_t kRingBytes = 512 << 10;                // of a CPU, as many as a user may lock

strobe::ProcessTable table(strobe::NativePlatform::Files());
strobe::ProcessNames process_names(strobe::NativePlatform::Files());
std::map<std::string, std::pair<int, int>> counts;  // of samples: as the leaf, and in all
int samples = 0, whole = 0, refused = 0;

// Takes a value from the front of a record.
template <class T = std::uint64_t>
T Take(std::span<const std::byte>& record) {
  T value;
  std::memcpy(&value, record.data(), sizeof(value));
  record = record.subspan(sizeof(value));
  return value;
}

void TakeSample(std::uint32_t process, std::span<const std::byte> record) {
  const auto kind = Take(record);
  const std::size_t words = kind == strobe::PerfRegisters::kNone ? 0 : std::popcount(kMask);
  const strobe::PerfRegisters registers(strobe::kNativeArchitecture, kMask, kind,
                                        record.first(words * sizeof(std::uint64_t)));
  const auto code = table.Find(process);
  if (!registers.status().ok() || code == nullptr) {
    ++refused;  // the code is 32-bit, say
    return;
  }
  record = record.subspan(words * sizeof(std::uint64_t));
  auto stack = record.subspan(sizeof(std::uint64_t));  // behind its room, before its size
  if (const auto room = Take(record); room != 0) {
    record = record.subspan(room);
    stack = stack.first(Take(record));
  }
  std::array<strobe::Address, 256> frames;
  const strobe::WalkResult walk = table.Unwind(process, {registers.get(), stack}, frames);
  ++samples;
  whole += strobe::IsWhole(walk.end) ? 1 : 0;
  std::set<std::string> seen;  // a function that calls itself counts once
  for (const strobe::AddressName& address :
       process_names.Name(*code, std::span(frames).first(walk.count))) {
    for (const strobe::NamedFunction& name : address.functions) {
      if (seen.empty()) ++counts[name.function].first;
      if (seen.insert(name.function).second) ++counts[name.function].second;
    }
  }
}

void TakeMap(std::uint32_t process, std::span<const std::byte> record) {
  strobe::Mapping code;
  code.start = Take(record);
  code.limit = code.start + Take(record);
  code.file_offset = Take(record);
  // Behind device, inode, generation, protection and flags.
  code.path = reinterpret_cast<const char*>(record.subspan(32).data());
  table.Map(process, code);
}

// The events of a process on one CPU, of its first thread and of all that this starts from now on.
class Ring {
 public:
  Ring(int process, int cpu) {
    perf_event_attr event{};
    event.size = sizeof(event);
    event.type = PERF_TYPE_SOFTWARE;
    event.config = PERF_COUNT_SW_TASK_CLOCK;
    event.sample_period = 5'000'000;  // nanoseconds
    event.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    event.sample_regs_user = kMask;
    event.sample_stack_user = 16 << 10;
    event.exclude_kernel = event.exclude_hv = 1;
    event.inherit = event.inherit_thread = 1;
    event.mmap = event.mmap2 = 1;  // of code, as the process maps it
    const auto file = static_cast<int>(
        syscall(SYS_perf_event_open, &event, process, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    if (file >= 0)
      ring_ = mmap(nullptr, page_bytes_ + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (ring_ != MAP_FAILED) return;
    std::perror("perf events are refused");
    std::exit(1);
  }

  void Drain() {
    auto& places = *static_cast<perf_event_mmap_page*>(ring_);
    std::uint64_t tail = places.data_tail;
    const auto head = std::atomic_ref(places.data_head).load(std::memory_order_acquire);
    while (tail != head) {
      perf_event_header header;
      std::memcpy(&header, CopyAt(tail, sizeof(header)).data(), sizeof(header));
      const std::vector<std::byte> all = CopyAt(tail, header.size);
      auto record = std::span(all).subspan(sizeof(header));
      tail += header.size;
      if (header.type != PERF_RECORD_SAMPLE && header.type != PERF_RECORD_MMAP2) continue;
      const auto process = Take<std::uint32_t>(record);
      Take<std::uint32_t>(record);  // a thread
      header.type == PERF_RECORD_SAMPLE ? TakeSample(process, record) : TakeMap(process, record);
    }
    std::atomic_ref(places.data_tail).store(tail, std::memory_order_release);
  }

 private:
  // A record may go on at the ring's begin.
  std::vector<std::byte> CopyAt(std::uint64_t tail, std::size_t bytes) const {
    std::vector<std::byte> copy(bytes);
    const auto* const data = static_cast<const std::byte*>(ring_) + page_bytes_;
    for (std::size_t i = 0; i < bytes; ++i) copy[i] = data[(tail + i) % kRingBytes];
    return copy;
  }

  const std::size_t page_bytes_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* ring_ = MAP_FAILED;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: other_processes PID SECONDS\n");
    return 2;
  }
  const int process = std::atoi(argv[1]);
  std::vector<Ring> rings;
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  rings.reserve(static_cast<std::size_t>(cpus));
  for (int cpu = 0; cpu < cpus; ++cpu) rings.emplace_back(process, cpu);
  // What the process has mapped so far; events tell of what it maps later.
  const absl::Status attached = table.Attach(static_cast<std::uint64_t>(process));
  if (!attached.ok()) {
    std::fprintf(stderr, "%s\n", attached.ToString().c_str());
    return 1;
  }
  for (int round = 0; round < 20 * std::atoi(argv[2]); ++round) {
    usleep(50'000);
    for (Ring& ring : rings) ring.Drain();
  }
  std::vector<std::pair<std::string, std::pair<int, int>>> rows(counts.begin(), counts.end());
  std::ranges::sort(rows, std::greater(), [](const auto& row) { return row.second; });
  rows.resize(std::min<std::size_t>(rows.size(), 20));
  std::printf("   self   total  function\n");
  for (const auto& [name, count] : rows)
    std::printf("%7d %7d  %s\n", count.first, count.second, name.c_str());
  std::printf("%d samples, %d of them whole stacks; not unwound: %d\n", samples, whole, refused);
}
