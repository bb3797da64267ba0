#include "read_perf.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../symbolize/byte_source.h"
#include "absl/strings/str_cat.h"
#include "input.h"
#include "kernel_symbols.h"
#include "perf_fields.h"
#include "perf_frames.h"
#include "perf_header.h"
#include "perf_records.h"
#include "perf_threads.h"
#include "profile_builder.h"
#include "sampled_registers.h"
#include "strobe/core/thread_info.h"
#include "strobe/process/process_table.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kKernelProcess = 0xFFFFFFFF;
constexpr std::size_t kMaxEventColumns = 64;

// What a call chain says of the frames behind it; all such words are above any address.
constexpr std::uint64_t kFirstMark = static_cast<std::uint64_t>(-4095);
constexpr std::uint64_t kKernelMark = static_cast<std::uint64_t>(-128);
constexpr std::uint64_t kUserMark = static_cast<std::uint64_t>(-512);

// Of a record's `misc`.
constexpr std::uint16_t kModeBits = 7;
constexpr std::uint16_t kKernelMode = 1;
constexpr std::uint16_t kUserMode = 2;
class PerfReading {
 public:
  PerfReading(const ByteSource& source, const PerfOptions& options)
      : source_(source),
        options_(options),
        table_(options.files, {.search = options.search}),
        order_(
            [this](const PerfRecord& record, std::uint64_t time) { return Take(record, time); }) {}

  absl::StatusOr<LoadedProfile> Read();

 private:
  // Of an event.
  struct Account {
    std::size_t column = 0;  // 0: none but `samples`
    std::uint64_t samples = 0;
    std::int64_t amount = 0;
    // Two records of the same: the kernel's own, and what it told perf at the end.
    std::uint64_t lost = 0;
    std::uint64_t lost_samples = 0;
  };

  absl::Status ReadRecords();
  absl::Status TakeFromPerf(const PerfRecord& record);
  absl::Status Take(const PerfRecord& record, std::uint64_t time);
  absl::Status MakeColumns();

  void TakeMap(const PerfRecord& record);
  void TakeKernelMap(std::string_view name, Address address);
  void TakeLost(const PerfRecord& record);
  absl::Status TakeSample(const PerfRecord& record, std::uint64_t time);
  void FindStack(const PerfEvent& event, const PerfSample& sample, std::uint16_t mode);
  bool Unwind(const PerfEvent& event, const PerfSample& sample);
  void FindProgram(std::uint32_t process);
  void AddUserFrames(std::uint32_t process, std::span<const Address> addresses);
  void AddLost();

  const ByteSource& source_;
  const PerfOptions& options_;
  PerfHeader header_;
  ProfileBuilder builder_;
  PerfFrames all_{builder_};
  ProcessTable table_;
  PerfThreads threads_{builder_, table_};
  PerfOrder order_;
  std::shared_ptr<const KernelSymbols> kernel_symbols_;
  std::vector<Account> accounts_;     // one an event
  std::vector<std::int64_t> values_;  // of one row
  bool has_program_ = false;
  std::vector<std::uint32_t> stack_;
  std::vector<Address> addresses_ = std::vector<Address>(kMaxFramesLimit);
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns_ = 0;
};

absl::StatusOr<LoadedProfile> PerfReading::Read() {
  if (absl::Status status = header_.Read(source_); !status.ok()) return status;
  if (absl::Status status = ReadRecords(); !status.ok()) return status;
  if (header_.events.empty()) return absl::InvalidArgumentError("the file has no events");
  if (absl::Status status = MakeColumns(); !status.ok()) return status;
  AddLost();
  threads_.Finish();
  all_.Finish();
  LoadedProfile& loaded = builder_.loaded();
  loaded.format = "perf.data";
  Profile& profile = loaded.profile;
  profile.default_value_type = profile.value_types.size() > 1 ? 1 : 0;
  if (!profile.samples.empty() && first_ns_ <= last_ns_) {
    profile.time_ns = first_ns_;
    profile.duration_ns = last_ns_ - first_ns_;
  }
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;
  for (const Account& account : accounts_) {
    samples += account.samples;
    lost += std::max(account.lost, account.lost_samples);
  }
  loaded.comments.push_back(
      absl::StrCat("perf.data: ", samples, " samples, ", lost,
                   " lost, stacks deeper than their copy: ", table_.stats().truncated_walks));
  if (absl::Status status = builder_.status(); !status.ok()) return status;
  return builder_.Finish();
}

absl::Status PerfReading::ReadRecords() {
  PerfRecordReader reader(source_, header_);
  PerfRecord record;
  while (true) {
    const absl::StatusOr<bool> has_record = reader.Next(record);
    if (!has_record.ok()) return has_record.status();
    if (!*has_record) break;
    const absl::Status status = record.type >= PerfRecordType::kFirstOfPerf
                                    ? TakeFromPerf(record)
                                    : order_.Add(record, TimeOf(header_, record));
    if (!status.ok()) return status;
    if (options_.progress) options_.progress(reader.offset());
  }
  return order_.Finish();
}

// What perf itself has written, which has no time.
absl::Status PerfReading::TakeFromPerf(const PerfRecord& record) {
  constexpr std::size_t kSizePlace = 4;
  PerfFields fields(record.body);
  switch (record.type) {
    case PerfRecordType::kFinishedRound: return order_.EndRound();
    case PerfRecordType::kAttributes: {
      PerfFields size_fields(record.body);
      size_fields.TakeBytes(kSizePlace);
      const std::span<const std::byte> attributes =
          fields.TakeBytes(size_fields.Take<std::uint32_t>());
      if (!accounts_.empty()) return absl::OkStatus();  // the columns stand
      return header_.AddEvent(attributes, fields.TakeBytes(fields.remaining()));
    }
    case PerfRecordType::kFeature: {
      const auto number = fields.Take<std::uint64_t>();
      if (fields.ok())
        header_.TakeFeature(static_cast<std::uint32_t>(number),
                            fields.TakeBytes(fields.remaining()));
      return absl::OkStatus();
    }
    case PerfRecordType::kBuildId:
      header_.TakeBuildId(record.misc, record.body);
      return absl::OkStatus();
    case PerfRecordType::kCompressed:
    case PerfRecordType::kCompressed2:
      return absl::InvalidArgumentError(
          "the records are compressed (perf record -z), which is not read");
    default: return absl::OkStatus();
  }
}

// `samples`, and one column for each event with a name of its own.
absl::Status PerfReading::MakeColumns() {
  if (!accounts_.empty()) return absl::OkStatus();
  auto& types = builder_.profile().value_types;
  types = {{"samples", "count"}};
  accounts_.resize(header_.events.size());
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    const PerfEvent& event = header_.events[i];
    if (event.is_dummy()) continue;
    // "cycles:u" is "cycles", but a tracepoint is "sched:sched_switch".
    std::string name = event.name;
    if (event.type != PerfEvent::kTracepoint) name = name.substr(0, name.find(':', 1));
    ValueType type{name, event.is_clock() ? "nanoseconds" : "count"};
    const bool has_cpu = std::ranges::find(types, "cpu", &ValueType::type) != types.end();
    if (event.is_clock() && (!has_cpu || types[1].type == "cpu")) type.type = "cpu";
    auto found = std::ranges::find(types, type);
    if (found == types.end()) {
      if (types.size() == kMaxEventColumns)
        return absl::ResourceExhaustedError("the file has too many events");
      type.type = builder_.loaded().Keep(ValidUtf8(type.type));
      found = types.insert(types.end(), type);
    }
    accounts_[i].column = static_cast<std::size_t>(found - types.begin());
  }
  values_.resize(types.size());
  return absl::OkStatus();
}

absl::Status PerfReading::Take(const PerfRecord& record, std::uint64_t time) {
  switch (record.type) {
    case PerfRecordType::kMmap:
    case PerfRecordType::kMmap2: TakeMap(record); break;
    case PerfRecordType::kComm:
    case PerfRecordType::kFork:
    case PerfRecordType::kExit: threads_.Take(record); break;
    case PerfRecordType::kLost:
    case PerfRecordType::kLostSamples: TakeLost(record); break;
    case PerfRecordType::kSample: return TakeSample(record, time);
    default: break;
  }
  return absl::OkStatus();
}

void PerfReading::TakeMap(const PerfRecord& record) {
  std::optional<PerfMap> map = ParseMap(record);
  if (!map.has_value()) return;
  Mapping& mapping = map->mapping;
  if (map->process == kKernelProcess) return TakeKernelMap(mapping.path, mapping.file_offset);
  if (mapping.build_id.empty()) {
    if (const auto known = header_.build_ids.find(mapping.path); known != header_.build_ids.end())
      mapping.build_id = known->second;
  }
  table_.Map(map->process, mapping);
}

// "[kernel.kallsyms]_text" says where the kernel's _text was.
void PerfReading::TakeKernelMap(std::string_view name, Address address) {
  constexpr std::string_view kPrefix = "[kernel.kallsyms]";
  if (!name.starts_with(kPrefix) || options_.kernel_symbols.empty()) return;
  if (kernel_symbols_ == nullptr) {
    std::ifstream file(options_.kernel_symbols, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    kernel_symbols_ = std::make_shared<const KernelSymbols>(text);
  }
  all_.UseKernelSymbols(kernel_symbols_, name.substr(kPrefix.size()), address);
}

void PerfReading::TakeLost(const PerfRecord& record) {
  if (!MakeColumns().ok() || accounts_.empty()) return;
  PerfFields fields(record.body);
  std::uint32_t event = 0;
  if (record.type == PerfRecordType::kLost) {
    const auto found = header_.events_by_id.find(fields.Take<std::uint64_t>());
    if (found != header_.events_by_id.end()) event = found->second;
  }
  const auto count = fields.Take<std::uint64_t>();
  Account& account = accounts_[event < accounts_.size() ? event : 0];
  (record.type == PerfRecordType::kLost ? account.lost : account.lost_samples) += count;
}

absl::Status PerfReading::TakeSample(const PerfRecord& record, std::uint64_t time) {
  if (header_.events.empty()) return absl::InvalidArgumentError("a sample has no event");
  if (absl::Status status = MakeColumns(); !status.ok()) return status;
  const std::uint32_t number = EventOf(header_, record);
  const PerfEvent& event = header_.events[number];
  PerfSample sample;
  if (!ParseSample(event, record.body, sample))
    return absl::InvalidArgumentError("a sample is shorter than it says");
  FindStack(event, sample, record.misc & kModeBits);
  Account& account = accounts_[number];
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto amount = static_cast<std::int64_t>(std::clamp<std::uint64_t>(
      sample.period, 1, kMost));  // a sample without a period counts for one
  ++account.samples;
  account.amount = SaturatedSum(account.amount, amount);
  std::ranges::fill(values_, 0);
  values_[0] = 1;
  if (account.column != 0) values_[account.column] = amount;
  const std::uint32_t labels = threads_.LabelsOf(sample.process, sample.thread);
  const std::uint32_t row = builder_.AddRow(builder_.Stack(stack_), labels, values_);
  // A broken file may say any time.
  const std::int64_t time_ns = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(time + static_cast<std::uint64_t>(header_.clock_offset_ns)), 0,
      std::numeric_limits<std::int64_t>::max() / 2);
  if (time != 0) builder_.AddMoment(row, time_ns, values_);
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
  return builder_.status();
}

// What is sampled first is the program. It is mapped lowest.
void PerfReading::FindProgram(std::uint32_t process) {
  if (has_program_) return;
  const std::shared_ptr<const ProcessCode> code = table_.Find(process);
  if (code == nullptr || code->modules().empty()) return;
  has_program_ = true;
  const ProcessModule& program = *code->modules().front();
  all_.AddModule(program);
  const std::string& path = program.module.path;
  builder_.profile().program = path.substr(path.find_last_of('/') + 1);
  builder_.profile().process_id = process;
}

// Sets stack_.
void PerfReading::FindStack(const PerfEvent& event, const PerfSample& sample, std::uint16_t mode) {
  stack_.clear();
  all_.BeginStack();
  FindProgram(sample.process);
  std::uint64_t mark = mode == kUserMode ? kUserMark : kKernelMark;
  std::vector<Address>& user = addresses_;
  std::size_t user_count = 0;
  const std::size_t words = sample.callchain.size() / sizeof(std::uint64_t);
  bool is_first = true;  // of its part: each other frame is a return address
  for (std::size_t i = 0; i < words && stack_.size() < kMaxFramesLimit; ++i) {
    const std::uint64_t word = PerfWord(sample.callchain, i);
    if (word >= kFirstMark) {
      mark = word;
      is_first = true;
      continue;
    }
    const Address address = word - (std::exchange(is_first, false) ? 0 : 1);
    if (mark == kUserMark && user_count < user.size()) user[user_count++] = address;
    if (mark != kKernelMark) continue;
    const std::uint32_t frame = all_.Kernel(address);
    // Without names they are all the same.
    if (stack_.empty() || stack_.back() != frame) stack_.push_back(frame);
  }
  if (stack_.empty() && mode == kKernelMode) stack_.push_back(all_.Kernel(sample.ip));
  if (mode != kKernelMode && mode != kUserMode && words == 0)
    stack_.push_back(all_.User(sample.ip, nullptr));  // of a guest
  std::vector<Address> chain(user.begin(), user.begin() + static_cast<std::ptrdiff_t>(user_count));
  if (Unwind(event, sample)) return;
  if (chain.empty() && mode == kUserMode) chain.push_back(sample.ip);
  AddUserFrames(sample.process, chain);
}

// False if the sample has no registers and no stack.
bool PerfReading::Unwind(const PerfEvent& event, const PerfSample& sample) {
  if (sample.registers_abi != PerfSample::k64Bit || sample.stack.empty() ||
      !SampledRegisters::AreIn(event.registers))
    return false;
  const SampledRegisters registers(event.registers, sample.registers);
  const WalkResult walk = table_.Unwind(
      sample.process, {.registers = registers.get(), .stack = sample.stack}, addresses_);
  AddUserFrames(sample.process, std::span(addresses_).first(walk.count));
  switch (walk.end) {
    case StackEnd::kTruncated: stack_.push_back(all_.Pseudo(PseudoFrame::kTruncated)); break;
    case StackEnd::kBroken: stack_.push_back(all_.Pseudo(PseudoFrame::kBroken)); break;
    case StackEnd::kNoUnwindInfo: stack_.push_back(all_.Pseudo(PseudoFrame::kNoUnwindInfo)); break;
    case StackEnd::kComplete:
    case StackEnd::kCoroutine: break;
  }
  return true;
}

void PerfReading::AddUserFrames(std::uint32_t process, std::span<const Address> addresses) {
  if (addresses.empty()) return;
  const std::shared_ptr<const ProcessCode> code = table_.Find(process);
  for (const Address address : addresses)
    stack_.push_back(all_.User(address, code == nullptr ? nullptr : code->Find(address)));
}

void PerfReading::AddLost() {
  for (const Account& account : accounts_) {
    const std::uint64_t lost = std::max(account.lost, account.lost_samples);
    if (lost == 0) continue;
    constexpr double kMost = 9e18;
    const double mean = account.samples == 0 ? 1
                                             : static_cast<double>(account.amount) /
                                                   static_cast<double>(account.samples);
    const auto count = static_cast<double>(lost);
    std::ranges::fill(values_, 0);
    values_[0] = static_cast<std::int64_t>(std::min(count, kMost));
    if (account.column != 0)
      values_[account.column] = static_cast<std::int64_t>(std::min(count * mean, kMost));
    const std::uint32_t frame = all_.Pseudo(PseudoFrame::kLost);
    builder_.AddRow(builder_.Stack(std::span(&frame, 1)), builder_.Labels({}), values_);
  }
}

}  // namespace

absl::StatusOr<LoadedProfile> ReadPerfData(const ByteSource& source, const PerfOptions& options) {
  return PerfReading(source, options).Read();
}

absl::StatusOr<LoadedProfile> ReadPerfFile(const std::string& path, const PerfOptions& options) {
  const auto read = [&](const ByteSource& source) -> absl::StatusOr<LoadedProfile> {
    absl::StatusOr<LoadedProfile> loaded = ReadPerfData(source, options);
    if (loaded.ok()) return loaded;
    return absl::Status(loaded.status().code(), absl::StrCat(path == "-" ? "standard input" : path,
                                                             ": ", loaded.status().message()));
  };
  if (path != "-") {
    if (const std::unique_ptr<FileSource> file = options.files.Open(path)) return read(*file);
  }
  // Standard input, and what is no regular file: why not is what opening it says.
  absl::StatusOr<ByteReader> reader = OpenFile(path, options.progress);
  if (!reader.ok()) return reader.status();
  std::string bytes;
  while (true) {
    const absl::StatusOr<std::string_view> more = (*reader)();
    if (!more.ok()) return more.status();
    if (more->empty()) break;
    if (bytes.size() + more->size() > kMaxInputBytes)
      return absl::ResourceExhaustedError("the data is longer than what can be read");
    bytes += *more;
  }
  return read(SpanSource(std::as_bytes(std::span(bytes))));
}

}  // namespace strobe::internal
