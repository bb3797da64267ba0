// The tables that a program and its worker hand each other: the worker's unwind tables, which the
// program tries to change and reads; what the worker offers; the program's tables of labels and of
// generated code, written over at any place; the profile that a recording returns. Each reader
// takes what is whole, touches nothing else, and leaves no descriptor and no mapping behind.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz_input.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profile_check.h"
#include "strobe/testing/profiles.h"
#include "strobe/worker/serve/worker_code.h"
#include "strobe/worker/shared/profile_bytes.h"
#include "strobe/worker/shared/shared_contexts.h"
#include "strobe/worker/shared/shared_ranges.h"
#include "strobe/worker/shared/shared_tables.h"
#include "strobe/worker/shared/table_store.h"
#include "strobe/worker/shared/worker_offer.h"
#include "support/check.h"
#include "worker/next_descriptor.h"

namespace strobe::internal {
namespace {

using testing::FuzzInput;
using testing::NextDescriptor;

constexpr Address kText = 0x400000;
constexpr std::uint32_t kTextBytes = 4096;
constexpr std::size_t kImages = 8;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMemoryBytes = 256 * 1024;  // so that some find no room
constexpr std::size_t kStoreBytes = 2048;         // so that some make room for others
constexpr std::size_t kMaxShown = 6;              // more than there are caches
constexpr std::size_t kMaxSteps = 64;

// Overwrites some bytes of an object as another process may.
void Scribble(FuzzInput& input, void* object, std::size_t bytes) {
  const std::size_t offset = input.Take<std::uint32_t>() % bytes;
  const auto value =
      input.TakeBytes(std::min<std::size_t>(input.Take<std::uint8_t>() % 33, bytes - offset));
  if (!value.empty()) std::memcpy(static_cast<char*>(object) + offset, value.data(), value.size());
}

std::shared_ptr<const UnwindTable> AnyTable(FuzzInput& input) {
  std::vector<UnwindRow> rows;
  std::uint32_t offset = 0;
  for (int left = input.Take<std::uint8_t>() % 64; left > 0; --left) {
    const auto code = input.Take<std::uint8_t>();
    rows.push_back({offset,
                    code % 2 == 0 ? UnwindRule::Stop() : UnwindRule::Unknown(),
                    {.where = SavedRegister::kFromCfa, .distance = code / 2}});
    offset += 1 + input.Take<std::uint8_t>();
  }
  return std::make_shared<const UnwindTable>(kTextBytes, rows, std::vector<SpecialRule>());
}

void CheckEqual(const UnwindTable& table, const UnwindTable& other) {
  for (std::uint32_t offset = 0; offset < kTextBytes; offset += 13) {
    testing::Check(table.Find(offset) == other.Find(offset) &&
                       table.FindSpecialRegister(offset) == other.FindSpecialRegister(offset),
                   "a table has other rules than the one that was built");
  }
}

// A worker with its store, and what a program does with the memory.
class Worker {
 public:
  Worker()
      : store_(*TableStore::Create(kStoreBytes)),
        memory_(*TableMemory::Create("fuzzed", kMemoryBytes)),
        programs_(dup(memory_.descriptor())),
        store_address_(TableMemory::Adopt(dup(store_->descriptor()), TableStore::kMemoryBytes)),
        tables_(std::move(memory_),
                {.memory = std::as_writable_bytes(std::span(caches_)),
                 .address_in_program = reinterpret_cast<Address>(caches_.data())},
                {.store = store_, .address = store_address_->address()}, 1,
                [](void* at, std::uint64_t bytes) { std::memset(at, 0, bytes); }) {}
  ~Worker() { close(programs_); }

  // One table of an image, which may be evicted and built again.
  void Share(FuzzInput& input) {
    const std::size_t image = input.Take<std::uint8_t>() % kImages;
    Module module{.start = kText,
                  .limit = kText + kTextBytes,
                  .path = "/lib/x.so",
                  .build_id = std::to_string(image)};
    shared_[image] = store_->Share(module, 0, [&] {
      built_[image] = AnyTable(input);
      return CfiModules::BuiltTable{.table = built_[image]};
    });
    CheckEqual(*shared_[image], *built_[image]);
    testing::Check(store_->stats().bytes <= kStoreBytes, "the store has more than its limit");
  }
  void Show() {
    std::vector<UnwindModules::Entry> entries;
    for (const auto& [image, table] : shared_) {
      const Address start = kText + image * kTextBytes;
      entries.push_back({start, start + kTextBytes, table});
    }
    const auto source = std::make_shared<const UnwindModules>(entries);
    if (shown_.size() == kMaxShown) shown_.erase(shown_.begin());
    if (SharedTables::Tables copy = tables_.Expose(source)) shown_.emplace_back(source, copy);
  }
  // As captures of the program do.
  void Walk(FuzzInput& input) const {
    if (shown_.empty()) return;
    const auto& [source, copy] = shown_[input.Take<std::uint8_t>() % shown_.size()];
    for (Address pc = kText; pc < kText + kImages * kTextBytes; pc += 101)
      testing::Check(copy->FindRule(pc) == source->FindRule(pc), "a program is shown another rule");
  }
  void Forget(FuzzInput& input) {
    const auto code = input.Take<std::uint8_t>();
    shared_.erase(code % kImages);
    if (!shown_.empty()) shown_.erase(shown_.begin() + code % shown_.size());
  }
  // The program may write its caches, and nothing that the worker reads.
  void Attack(FuzzInput& input) {
    Scribble(input, caches_.data(), caches_.size() * sizeof(Page));
    for (const int memory : {programs_, store_->descriptor()}) {
      const off_t page = input.Take<std::uint8_t>() * off_t{kPageBytes} % off_t{kMemoryBytes};
      constexpr int kWrite = PROT_READ | PROT_WRITE;
      testing::Check(
          mmap(nullptr, kPageBytes, kWrite, MAP_SHARED, memory, page) == MAP_FAILED &&
              pwrite(memory, "x", 1, page) < 0 && ftruncate(memory, 0) != 0 &&
              fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page, kPageBytes) != 0,
          "a program has changed the worker's tables");
    }
  }

 private:
  struct alignas(kPageBytes) Page {
    std::array<std::byte, kPageBytes> bytes;
  };

  const std::shared_ptr<TableStore> store_;
  std::vector<Page> caches_ =
      std::vector<Page>(SharedCaches::kCaches * SharedCaches::CacheBytes() / sizeof(Page));
  TableMemory memory_;
  const int programs_;  // a descriptor of it
  absl::StatusOr<TableMemory> store_address_;
  SharedTables tables_;
  std::map<std::size_t, TableStore::Table> built_;
  std::map<std::size_t, TableStore::Table> shared_;
  std::vector<std::pair<SharedTables::Tables, SharedTables::Tables>> shown_;
};

void ShareAndShow(FuzzInput& input) {
  Worker worker;
  for (std::size_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
    switch (input.Take<std::uint8_t>() % 5) {
      case 0: worker.Share(input); break;
      case 1: worker.Show(); break;
      case 2: worker.Walk(input); break;
      case 3: worker.Forget(input); break;
      default: worker.Attack(input); break;
    }
  }
}

// Memory of any size and seals at any address.
void Offer(FuzzInput& input) {
  Message message{.kind = static_cast<MessageKind>(input.Take<std::uint8_t>() % 17)};
  for (int& descriptor : message.descriptors) {
    const auto how = input.Take<std::uint8_t>();
    if (how % 8 == 7) break;  // a message has no second descriptor without a first
    descriptor = memfd_create("fuzzed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const std::uint64_t bytes = how % 2 == 0 ? input.Take<std::uint32_t>() : kMemoryBytes;
    testing::Check(ftruncate(descriptor, static_cast<off_t>(bytes)) == 0, "no memory");
    fcntl(descriptor, F_ADD_SEALS, static_cast<int>(how / 8) & ~F_SEAL_SEAL);
  }
  const auto rest = input.TakeRest();
  message.text.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  const absl::StatusOr<WorkerOffer> offer = AdoptOffer(message);
  if (!offer.ok()) return;
  for (const TableMemory* memory : {&offer->tables, &offer->store}) {
    if (memory->bytes().empty()) continue;
    testing::Check(memory->bytes().front() == std::byte{0}, "other memory");
  }
}

// Large objects of zeroes, made once; what an input changes is undone by the next.
template <class T>
T& Zeroed() {
  static void* const memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  testing::Check(memory != MAP_FAILED && madvise(memory, sizeof(T), MADV_DONTNEED) == 0,
                 "no memory");
  return *static_cast<T*>(memory);
}

// As it stands in a program with some sets, written over.
void Labels(FuzzInput& input) {
  SharedLabels& labels = Zeroed<SharedLabels>();
  labels.Add(3, LabelSet({{"endpoint", std::string("/pay")}, {"n", std::int64_t{7}}}));
  labels.Add(4, LabelSet({{"endpoint", std::string("/get")}}));
  // The places of the first numbers come first, the bytes behind all places.
  constexpr std::size_t kHead = 64;
  constexpr std::size_t kPlaces = sizeof(SharedLabels) - SharedLabels::kBytes;
  for (std::size_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
    auto* const bytes = reinterpret_cast<char*>(&labels);
    switch (input.Take<std::uint8_t>() % 4) {
      case 0: Scribble(input, bytes, kHead); break;
      case 1: Scribble(input, bytes + kPlaces, kHead); break;
      case 2: Scribble(input, bytes, sizeof(labels)); break;
      default:
        const std::optional<LabelSet> set = labels.Find(input.Take<std::uint16_t>() % 8);
        if (set) testing::Check(set->labels().size() <= LabelSet::kMaxLabels, "too many labels");
        break;
    }
  }
}

void Ranges(FuzzInput& input) {
  SharedRanges& ranges = Zeroed<SharedRanges>();
  CodeRegistry registry;
  WorkerCode served;
  for (std::size_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
    const auto operation = input.Take<std::uint8_t>();
    if (operation % 4 == 0) {
      served.Update(ranges, registry);
    } else {
      Scribble(input, &ranges, operation % 4 == 1 ? sizeof(ranges) : 1024);
    }
  }
  for (const SharedRanges::Range& range : ranges.Copy())
    testing::Check(range.name.size() <= GeneratedCode::kMaxNameBytes, "a name is too long");
}

// A good profile with changes, or any bytes.
void ProfileOfWorker(FuzzInput& input) {
  static const std::string good = ProfileBytes(testing::SmallProfile().profile);
  static constexpr std::array kKnown = {ValueType{"samples", "count"},
                                        ValueType{"cpu", "nanoseconds"},
                                        ValueType{"wall", "nanoseconds"}};
  std::string bytes = good;
  if (input.Take<std::uint8_t>() % 4 == 0) {
    const auto rest = input.TakeRest();
    bytes.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  }
  for (std::size_t step = 0; step < kMaxSteps && !input.empty(); ++step)
    Scribble(input, bytes.data(), bytes.size());
  const absl::StatusOr<Profile> profile = ProfileFrom(bytes, kKnown);
  if (profile.ok()) static_cast<void>(PprofEncoder().Encode(*profile, Symbols()).ok());
}

void Run(FuzzInput input) {
  const int next = NextDescriptor();
  switch (input.Take<std::uint8_t>() % 6) {
    case 0: Offer(input); break;
    case 1: Labels(input); break;
    case 2: Ranges(input); break;
    case 3: ProfileOfWorker(input); break;
    default: ShareAndShow(input); break;
  }
  testing::Check(NextDescriptor() == next, "a descriptor is left open");
}

}  // namespace
}  // namespace strobe::internal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::internal::Run(strobe::testing::FuzzInput(data, size));
  return 0;
}
