#include "perf_account.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "perf_fields.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kKernelProcess = 0xFFFFFFFF;
constexpr std::size_t kMaxEventColumns = 64;

std::int64_t Amount(std::uint64_t amount) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(amount, kMost));
}

}  // namespace

PerfAccount::PerfAccount(const PerfHeader& header, const SymbolFiles& files,
                         ProcessTableOptions options, std::string kernel_symbols)
    : header_(header),
      kernel_symbols_path_(std::move(kernel_symbols)),
      table_(files, std::move(options)) {}

absl::Status PerfAccount::Attach(std::uint32_t process) {
  if (absl::Status status = table_.Attach(process); !status.ok()) return status;
  threads_.Attach(process);
  return absl::OkStatus();
}

void PerfAccount::UseRunningKernel() { stacks_.frames().UseKernelSymbols(ReadKernelSymbols()); }

std::shared_ptr<const KernelSymbols> PerfAccount::ReadKernelSymbols() {
  if (kernel_symbols_ == nullptr) {
    std::string text;
    if (!kernel_symbols_path_.empty()) {
      std::ifstream file(kernel_symbols_path_, std::ios::binary);
      std::ostringstream bytes;
      bytes << file.rdbuf();  // a file that cannot be read, such as a directory, has none
      text = std::move(bytes).str();
    }
    kernel_symbols_ = std::make_shared<const KernelSymbols>(text);
  }
  return kernel_symbols_;
}

std::uint64_t PerfAccount::Account::AllLost() const { return std::max(lost, lost_samples); }

std::int64_t PerfAccount::Account::LostAmount() const {
  constexpr double kMost = 9e18;
  const double mean = samples == 0 ? 1 : static_cast<double>(amount) / static_cast<double>(samples);
  return static_cast<std::int64_t>(std::min(static_cast<double>(AllLost()) * mean, kMost));
}

PerfCounts PerfAccount::counts() const {
  PerfCounts counts{.truncated_stacks = table_.stats().truncated_walks};
  for (const Account& account : accounts_) {
    counts.samples += account.samples;
    counts.lost += account.AllLost();
  }
  return counts;
}

void PerfAccount::SetTotals(std::span<const Total> totals) {
  if (!MakeColumns().ok()) return;
  for (std::size_t i = 0; i < std::min(totals.size(), accounts_.size()); ++i) {
    accounts_[i].lost_samples = std::max(accounts_[i].lost_samples, totals[i].lost);
    accounts_[i].total = totals[i].amount;
  }
}

// `samples`, and one column for each event with a name of its own.
absl::Status PerfAccount::MakeColumns() {
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
    const bool is_time = event.is_clock() || event.is_off_cpu;
    if (event.is_off_cpu) off_cpu_event_ = i;
    ValueType type{name, is_time ? "nanoseconds" : "count"};
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

absl::Status PerfAccount::Take(const PerfRecord& record, std::uint64_t time) {
  switch (record.type) {
    case PerfRecordType::kMmap:
    case PerfRecordType::kMmap2: TakeMap(record); break;
    case PerfRecordType::kComm:
    case PerfRecordType::kFork:
    case PerfRecordType::kExit:
      if (record.type == PerfRecordType::kExit) off_cpu_.Forget(ThreadOf(header_, record));
      threads_.Take(record);
      break;
    case PerfRecordType::kSwitch: TakeSwitch(record, time); break;
    case PerfRecordType::kLost:
    case PerfRecordType::kLostSamples: TakeLost(record); break;
    case PerfRecordType::kSample: return TakeSample(record, time);
    default: break;
  }
  return absl::OkStatus();
}

void PerfAccount::TakeMap(const PerfRecord& record) {
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

// "[kernel.kallsyms]_text" says where the kernel's _text was. The names are those of that kernel
// if they have it at the same address.
void PerfAccount::TakeKernelMap(std::string_view name, Address address) {
  constexpr std::string_view kPrefix = "[kernel.kallsyms]";
  if (!name.starts_with(kPrefix)) return;
  const std::shared_ptr<const KernelSymbols> symbols = ReadKernelSymbols();
  if (symbols->Has(name.substr(kPrefix.size()), address))
    stacks_.frames().UseKernelSymbols(symbols);
}

void PerfAccount::TakeLost(const PerfRecord& record) {
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

void PerfAccount::TakeSwitch(const PerfRecord& record, std::uint64_t time) {
  if (IsSwitchOut(record)) return;  // a sample says so, too, and where
  if (const auto absence = off_cpu_.Return(ThreadOf(header_, record), time)) AddAbsence(*absence);
}

void PerfAccount::EndAbsences(std::uint64_t time) {
  off_cpu_.VisitAbsent(time, [this](const OffCpuTimes::Absence& absence) { AddAbsence(absence); });
}

void PerfAccount::AddAbsence(const OffCpuTimes::Absence& absence) {
  Account& account = accounts_[off_cpu_event_];
  std::ranges::fill(values_, 0);
  values_[account.column] = Amount(absence.duration_ns);
  account.amount = SaturatedSum(account.amount, values_[account.column]);
  builder_.AddRow(absence.place.stack, absence.place.labels, values_);
}

absl::Status PerfAccount::TakeSample(const PerfRecord& record, std::uint64_t time) {
  if (header_.events.empty()) return absl::InvalidArgumentError("a sample has no event");
  if (absl::Status status = MakeColumns(); !status.ok()) return status;
  const std::uint32_t number = EventOf(header_, record);
  const PerfEvent& event = header_.events[number];
  PerfSample sample;
  if (!ParseSample(event, record.body, sample))
    return absl::InvalidArgumentError("a sample is shorter than it says");
  Account& account = accounts_[number];
  // A sample without a period counts for one. How long an absence lasts is known at its end.
  const std::int64_t amount =
      event.is_off_cpu ? 0 : std::max<std::int64_t>(Amount(sample.period), 1);
  ++account.samples;
  account.amount = SaturatedSum(account.amount, amount);
  std::ranges::fill(values_, 0);
  values_[0] = 1;
  if (account.column != 0) values_[account.column] = amount;
  const std::uint32_t labels = threads_.LabelsOf(sample.process, sample.thread);
  const std::uint32_t stack = builder_.Stack(stacks_.Of(event, sample, record.misc));
  const std::uint32_t row = builder_.AddRow(stack, labels, values_);
  if (event.is_off_cpu) off_cpu_.Leave(sample.thread, {stack, labels}, time);
  // A broken file may say any time.
  const std::int64_t time_ns = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(time + static_cast<std::uint64_t>(header_.clock_offset_ns)), 0,
      std::numeric_limits<std::int64_t>::max() / 2);
  if (time != 0) builder_.AddMoment(row, time_ns, values_);
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
  return builder_.status();
}

void PerfAccount::AddPseudo(PseudoFrame frame, const Account& account, std::int64_t samples,
                            std::int64_t amount) {
  std::ranges::fill(values_, 0);
  values_[0] = samples;
  if (account.column != 0) values_[account.column] = amount;
  const std::uint32_t number = stacks_.frames().Pseudo(frame);
  builder_.AddRow(builder_.Stack(std::span(&number, 1)), builder_.Labels({}), values_);
}

void PerfAccount::AddLost() {
  for (const Account& account : accounts_) {
    if (account.AllLost() == 0) continue;
    AddPseudo(PseudoFrame::kLost, account, Amount(account.AllLost()), account.LostAmount());
  }
}

void PerfAccount::AddResiduals() {
  for (const Account& account : accounts_) {
    const PerfEvent& event = header_.events[static_cast<std::size_t>(&account - accounts_.data())];
    // What is counted of these are the switches, not their time.
    if (!account.total.has_value() || account.column == 0 || event.is_off_cpu) continue;
    const std::int64_t residual =
        Amount(*account.total) - SaturatedSum(account.amount, account.LostAmount());
    if (residual != 0) AddPseudo(PseudoFrame::kResidual, account, 0, residual);
  }
}

absl::StatusOr<LoadedProfile> PerfAccount::Finish() {
  if (header_.events.empty()) return absl::InvalidArgumentError("there are no events");
  if (absl::Status status = MakeColumns(); !status.ok()) return status;
  AddLost();
  AddResiduals();
  threads_.Finish();
  stacks_.frames().Finish();
  Profile& profile = builder_.profile();
  profile.default_value_type = profile.value_types.size() > 1 ? 1 : 0;
  if (!profile.samples.empty() && first_ns_ <= last_ns_) {
    profile.time_ns = first_ns_;
    profile.duration_ns = last_ns_ - first_ns_;
  }
  return builder_.Finish();
}

}  // namespace strobe::internal
