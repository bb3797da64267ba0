#include "perf_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "perf_fields.h"
#include "profile/costs.h"
#include "profile/merge.h"
#include "strobe/base/amounts.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kKernelProcess = 0xFFFFFFFF;
constexpr std::size_t kMaxEventColumns = 64;  // with a column of their own

std::int64_t Amount(std::uint64_t amount) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(amount, kMost));
}

// "cycles:u" is "cycles", but a tracepoint is "sched:sched_switch". The first clock is "cpu".
std::string ColumnName(const PerfHeader& header, const PerfEvent& event) {
  const auto clock = std::ranges::find_if(header.events, &PerfEvent::is_clock);
  if (event.is_clock() && event.config == clock->config) return "cpu";
  if (event.type == PerfEvent::kTracepoint) return event.name;
  return event.name.substr(0, event.name.find(':', 1));
}

// True if each of its samples has the amount 1.
bool IsCountedByItsAmount(const PerfEvent& event) {
  return event.period == 1 && !event.is_clock() && !event.is_off_cpu && !event.field;
}

const char* UnitOf(const PerfEvent& event) {
  if (event.is_clock() || event.is_off_cpu) return "nanoseconds";
  return event.field && event.name.find("bytes") != std::string::npos ? "bytes" : "count";
}

// What a sample stands for. How long an absence lasts is known at its end. Nothing if the sample
// lacks its field.
std::optional<std::int64_t> AmountOf(const PerfEvent& event, const PerfSample& sample) {
  if (event.is_off_cpu) return 0;
  // A sample without a period counts for one.
  if (!event.field) return std::max<std::int64_t>(Amount(sample.period), 1);
  const std::optional<std::uint64_t> value = ValueOf(*event.field, sample.raw);
  return value ? std::optional(Amount(*value)) : std::nullopt;
}

}  // namespace

PerfAccount::PerfAccount(const PerfHeader& header, const SymbolFiles& files,
                         const ProcessTableOptions& options, std::string kernel_symbols)
    : header_(header), kernel_symbols_path_(std::move(kernel_symbols)), table_(files, options) {
  stacks_.emplace(builder_, table_);
  if (options.uses_process_roots) threads_.UseProc();
}

absl::Status PerfAccount::Attach(std::uint32_t process) {
  const absl::Status status = table_.Attach(process);
  if (!absl::IsNotFound(status)) threads_.Attach(process);
  if (status.ok()) JudgeCode(process);
  return status;
}

void PerfAccount::LeaveOut(std::string library) {
  left_out_library_ = std::move(library);
  threads_.KeepProcesses();
}

bool PerfAccount::MakesLeftOut(std::string_view path) const {
  return !left_out_library_.empty() &&
         path.substr(path.rfind('/') + 1).starts_with(left_out_library_);
}

void PerfAccount::LeaveOutIf(bool is_left_out, std::uint32_t process) {
  threads_.LeaveOut(process, is_left_out);
  has_left_out_ = has_left_out_ || is_left_out;
}

void PerfAccount::JudgeCode(std::uint32_t process) {
  const std::shared_ptr<const ProcessCode> code = table_.Find(process);
  if (left_out_library_.empty() || code == nullptr) return;
  LeaveOutIf(
      std::ranges::any_of(code->modules(),
                          [this](const auto& module) { return MakesLeftOut(module->module.path); }),
      process);
}

bool PerfAccount::IsLeftOut(std::uint32_t process) {
  if (left_out_library_.empty() || process == 0) return false;
  if (threads_.TakeDoubt(process) && table_.Attach(process).ok()) JudgeCode(process);
  return threads_.IsLeftOut(process);
}

void PerfAccount::UseMachine() {
  is_machine_ = true;
  threads_.UseMachine();
}

void PerfAccount::UseGenerated(PerfStacks::FindGenerated find) {
  find_generated_ = std::move(find);
  stacks_->UseGenerated(find_generated_);
}

void PerfAccount::UseRunningKernel(std::shared_ptr<const KernelSymbols> symbols) {
  kernel_symbols_ = std::move(symbols);
  UseKernelSymbols(kernel_symbols_);
}

void PerfAccount::UseKernelSymbols(std::shared_ptr<const KernelSymbols> symbols) {
  used_symbols_ = std::move(symbols);
  stacks_->frames().UseKernelSymbols(used_symbols_);
}

std::shared_ptr<const KernelSymbols> PerfAccount::ReadKernelSymbols() {
  if (kernel_symbols_ == nullptr) kernel_symbols_ = KernelSymbols::Read(kernel_symbols_path_);
  return kernel_symbols_;
}

std::uint64_t PerfAccount::Account::AllLost() const { return std::max(lost, lost_samples); }

std::int64_t PerfAccount::Account::LostAmount() const {
  constexpr double kMost = 9e18;
  const double mean = samples == 0 ? 1 : static_cast<double>(amount) / static_cast<double>(samples);
  const auto lost =
      static_cast<std::int64_t>(std::min(static_cast<double>(AllLost()) * mean, kMost));
  return total ? std::clamp<std::int64_t>(Amount(*total) - amount, 0, lost) : lost;
}

std::int64_t PerfAccount::Account::Residual() const {
  return total ? std::max<std::int64_t>(Amount(*total) - SaturatedSum(amount, LostAmount()), 0) : 0;
}

std::string PerfCounts::Text() const {
  const std::string not_unwound = NotUnwound();
  return absl::StrCat(samples, " samples, ", lost,
                      " lost, stacks deeper than their copy: ", truncated_stacks,
                      not_unwound.empty() ? "" : "; ", not_unwound);
}

std::string PerfCounts::NotUnwound() const {
  constexpr const char* kText = ", whose stacks are not unwound: ";
  std::vector<std::string> texts;
  if (stacks_of_32_bit > 0)
    texts.push_back(absl::StrCat("samples of 32-bit code", kText, stacks_of_32_bit));
  if (stacks_of_other_cpus > 0)
    texts.push_back(absl::StrCat("samples of another CPU", kText, stacks_of_other_cpus));
  return absl::StrJoin(texts, "; ");
}

PerfCounts PerfAccount::counts() const {
  PerfCounts counts{.truncated_stacks = table_.stats().truncated_walks - truncated_before_,
                    .stacks_of_32_bit = stacks_->stacks_of_32_bit(),
                    .stacks_of_other_cpus = stacks_->stacks_of_other_cpus()};
  for (const Account& account : accounts_) {
    counts.samples += account.samples;
    counts.lost += account.AllLost();
  }
  counts.lost = std::max(counts.lost, lost_of_rings_);
  return counts;
}

void PerfAccount::SetTotals(std::span<const Total> totals) {
  if (!MakeColumns().ok()) return;
  ahead_.resize(accounts_.size());
  for (std::size_t i = 0; i < std::min(totals.size(), accounts_.size()); ++i) {
    accounts_[i].lost_samples = std::max(accounts_[i].lost_samples, LostOfRecorded(totals[i].lost));
    accounts_[i].total = has_left_out_ ? std::nullopt : totals[i].amount;
    if (!accounts_[i].total) continue;
    std::uint64_t& total = *accounts_[i].total;
    total -= std::min(total, accounts_[i].idle);
    const std::uint64_t had_before = std::min(total, ahead_[i]);
    total -= had_before;
    ahead_[i] -= had_before;
  }
}

// For each event with a name of its own one column, behind one that counts its samples.
absl::Status PerfAccount::MakeColumns() {
  if (!accounts_.empty()) return absl::OkStatus();
  stacks_->UseArchitecture(header_.architecture);
  const std::vector<PerfEvent>& events = header_.events;
  builder_.profile().value_types = {{"samples", "count"}};
  accounts_.resize(events.size());
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    if (!events[i].is_dummy()) AddColumnsOf(i);
  }
  const std::size_t count = builder_.profile().value_types.size();
  if (count > 1 + 2 * kMaxEventColumns)
    return absl::ResourceExhaustedError("the file has too many events");
  values_.resize(count);
  return absl::OkStatus();
}

void PerfAccount::AddColumnsOf(std::size_t number) {
  auto& types = builder_.profile().value_types;
  const PerfEvent& event = header_.events[number];
  Account& account = accounts_[number];
  const auto find_or_add = [&](const std::string& name, const char* unit) {
    const auto found = std::ranges::find(types, ValueType{name, unit});
    if (found != types.end()) return static_cast<std::size_t>(found - types.begin());
    types.push_back({builder_.loaded().Keep(ValidUtf8(name)), unit});
    return types.size() - 1;
  };
  const std::string name = ColumnName(header_, event);
  if (types.size() == 1 || types[1].type == name) {
    account.count_column = 0;
  } else if (!IsCountedByItsAmount(event)) {
    account.count_column = find_or_add(absl::StrCat(name, kSampleCountSuffix), "count");
  }
  if (event.is_off_cpu) off_cpu_event_ = number;
  account.column = find_or_add(name, UnitOf(event));
  if (event.is_switch) account.switch_column = find_or_add("context-switches", "count");
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
    case PerfRecordType::kSwitch:
    case PerfRecordType::kSwitchOfCpu: TakeSwitch(record, time); break;
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
  if (MakesLeftOut(mapping.path)) LeaveOutIf(true, map->process);
  table_.Map(map->process, mapping);
}

// "[kernel.kallsyms]_text" says where the kernel's _text was. The names are those of that kernel
// if they have it at the same address.
void PerfAccount::TakeKernelMap(std::string_view name, Address address) {
  constexpr std::string_view kPrefix = "[kernel.kallsyms]";
  if (!name.starts_with(kPrefix)) return;
  const std::shared_ptr<const KernelSymbols> symbols = ReadKernelSymbols();
  if (symbols->Has(name.substr(kPrefix.size()), address)) UseKernelSymbols(symbols);
}

// A ring does not say which of its events has lost samples. An event itself does.
void PerfAccount::TakeLost(const PerfRecord& record) {
  if (!MakeColumns().ok() || accounts_.empty()) return;
  PerfFields fields(record.body);
  const bool is_of_ring = record.type == PerfRecordType::kLost;
  if (is_of_ring) fields.Take<std::uint64_t>();  // of an event that has lost nothing
  const auto count = fields.Take<std::uint64_t>();
  if (is_of_ring) threads_.NoteLoss();
  if (IsLeftOut(ProcessOf(header_, record))) {
    if (is_of_ring) lost_of_left_out_ += count;
    return;
  }
  if (is_of_ring) lost_of_rings_ += count;
  const auto has_samples = [](const PerfEvent& event) { return !event.is_dummy(); };
  const bool has_many = std::ranges::count_if(header_.events, has_samples) > 1;
  const std::optional<std::uint32_t> told =
      is_of_ring ? std::nullopt : EventOfOther(header_, record);
  if (!told && has_many) return;
  const auto only = std::ranges::find_if(header_.events, has_samples);
  const std::size_t event = told ? *told : static_cast<std::size_t>(only - header_.events.begin());
  if (event >= accounts_.size() || (is_of_ring && only->counts_lost())) return;
  (is_of_ring ? accounts_[event].lost : accounts_[event].lost_samples) += count;
}

std::uint64_t PerfAccount::LostOfRecorded(std::uint64_t lost) const {
  if (lost_of_left_out_ == 0) return lost;
  const auto recorded = static_cast<double>(lost_of_rings_);
  const double share = recorded / (recorded + static_cast<double>(lost_of_left_out_));
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(lost) * share));
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

// Clocks leave the idle task out themselves. Its id is also that of processes of other namespaces.
bool PerfAccount::IsIdle(const PerfEvent& event, const PerfSample& sample) const {
  return is_machine_ && sample.process == 0 && sample.thread == 0 && !event.is_clock();
}

absl::Status PerfAccount::TakeSample(const PerfRecord& record, std::uint64_t time) {
  if (header_.events.empty()) return absl::InvalidArgumentError("a sample has no event");
  if (absl::Status status = MakeColumns(); !status.ok()) return status;
  const std::uint32_t number = EventOf(header_, record);
  const PerfEvent& event = header_.events[number];
  PerfSample sample;
  if (!ParseSample(event, record.body, sample))
    return absl::InvalidArgumentError("a sample is shorter than it says");
  const std::optional<std::int64_t> amount = AmountOf(event, sample);
  if (!amount) return absl::InvalidArgumentError("a sample has no field of its tracepoint");
  Account& account = accounts_[number];
  if (IsLeftOut(sample.process)) return absl::OkStatus();
  if (IsIdle(event, sample)) {
    account.idle += sample.period;
    return absl::OkStatus();
  }
  ++account.samples;
  account.amount = SaturatedSum(account.amount, *amount);
  CountSamples(account, 1);
  if (account.column != 0) values_[account.column] = *amount;
  const std::uint32_t labels = threads_.LabelsOf(sample.process, sample.thread);
  const std::uint32_t stack = builder_.Stack(stacks_->Of(event, sample, record.misc));
  const std::uint32_t row = builder_.AddRow(stack, labels, values_);
  // A thread that has ended has left for good.
  if (event.is_off_cpu && threads_.IsAlive(sample.thread))
    off_cpu_.Leave(sample.thread, {stack, labels}, time);
  // A broken file may say any time.
  const std::int64_t time_ns = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(time + static_cast<std::uint64_t>(header_.clock_offset_ns)), 0,
      std::numeric_limits<std::int64_t>::max() / 2);
  if (time != 0) builder_.AddMoment(row, time_ns, values_);
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
  return builder_.status();
}

// Makes values_ those of a row that has so many samples, and no amount yet.
void PerfAccount::CountSamples(const Account& account, std::int64_t samples) {
  std::ranges::fill(values_, 0);
  for (const std::optional<std::size_t>& column : {account.count_column, account.switch_column}) {
    if (column) values_[*column] = samples;
  }
}

void PerfAccount::AddPseudo(PseudoFrame frame, const Account& account, std::int64_t samples,
                            std::int64_t amount) {
  CountSamples(account, samples);
  if (account.column != 0) values_[account.column] = amount;
  const std::uint32_t number = stacks_->frames().Pseudo(frame);
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
    if (account.column == 0 || event.is_off_cpu) continue;
    const std::int64_t residual = account.Residual();
    if (residual != 0) AddPseudo(PseudoFrame::kResidual, account, 0, residual);
  }
}

// What was counted in a period, and has samples in the next one, is [residual] in the first alone.
void PerfAccount::BeginPeriod() {
  for (std::size_t i = 0; i < std::min(ahead_.size(), accounts_.size()); ++i) {
    const Account& account = accounts_[i];
    const std::int64_t all = SaturatedSum(account.amount, account.LostAmount());
    if (account.total)
      ahead_[i] +=
          static_cast<std::uint64_t>(std::max<std::int64_t>(all - Amount(*account.total), 0));
  }
  truncated_before_ = table_.stats().truncated_walks;
  builder_ = ProfileBuilder();
  stacks_.emplace(builder_, table_);
  stacks_->UseGenerated(find_generated_);
  stacks_->frames().UseKernelSymbols(used_symbols_);
  threads_.BeginPeriod();
  accounts_.clear();
  lost_of_rings_ = 0;
  lost_of_left_out_ = 0;
  off_cpu_ = {};
  first_ns_ = std::numeric_limits<std::int64_t>::max();
  last_ns_ = 0;
}

absl::StatusOr<LoadedProfile> PerfAccount::Finish() {
  if (header_.events.empty()) return absl::InvalidArgumentError("there are no events");
  if (absl::Status status = MakeColumns(); !status.ok()) return status;
  AddLost();
  AddResiduals();
  threads_.Finish();
  const bool has_equal_frames = stacks_->Finish();
  Profile& profile = builder_.profile();
  profile.default_value_type = profile.value_types.size() > 1 ? 1 : 0;
  if (!profile.samples.empty() && first_ns_ <= last_ns_) {
    profile.time_ns = first_ns_;
    profile.duration_ns = last_ns_ - first_ns_;
  }
  LoadedProfile loaded = builder_.Finish();
  BeginPeriod();
  if (!has_equal_frames) return loaded;
  return MergeProfiles(std::span(&loaded, 1));
}

}  // namespace strobe::internal
