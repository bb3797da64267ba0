#include "perf_threads.h"

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perf_fields.h"
#include "proc_files.h"
#include "strobe/core/label_set.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// Of a record's `misc`.
constexpr std::uint16_t kIsExec = 1 << 13;    // of kComm
constexpr std::uint16_t kIsMadeUp = 1 << 13;  // of kFork: the child says itself what it has mapped

}  // namespace

void PerfThreads::Take(const PerfRecord& record) {
  switch (record.type) {
    case PerfRecordType::kComm: return TakeName(record);
    case PerfRecordType::kFork: return TakeFork(record);
    case PerfRecordType::kExit: return TakeExit(record);
    default: return;
  }
}

void PerfThreads::Begin(Thread& thread, std::uint32_t process) {
  thread.process = process;
  if (!std::exchange(thread.is_alive, true)) ++alive_[process];
}

PerfThreads::Thread& PerfThreads::ThreadOf(std::uint32_t process, std::uint32_t thread) {
  const auto [place, is_new] = threads_.try_emplace(thread);
  if (is_new) {
    Begin(place->second, process);
    builder_.Take(4 * sizeof(Thread));
  }
  return place->second;
}

void PerfThreads::Attach(std::uint32_t process) {
  const std::string threads = absl::StrCat("/proc/", process, "/task");
  for (const std::uint32_t id : IdsIn(threads)) {
    std::string name;
    std::ifstream file(absl::StrCat(threads, "/", id, "/comm"));
    if (std::getline(file, name)) SetName(process, id, name);
  }
}

void PerfThreads::SetName(std::uint32_t process, std::uint32_t id, std::string_view name) {
  Thread& thread = ThreadOf(process, id);
  Begin(thread, process);
  thread.name = SanitizedThreadName(name);
  thread.labels = Thread::kNoLabels;
  if (process == id) table_.SetName(process, thread.name);
}

void PerfThreads::TakeName(const PerfRecord& record) {
  PerfFields fields(record.body);
  const auto process = fields.Take<std::uint32_t>();
  const auto id = fields.Take<std::uint32_t>();
  const std::string_view name = fields.TakeText(fields.remaining());
  if (!fields.ok()) return;
  if ((record.misc & kIsExec) != 0) table_.Exec(process);
  SetName(process, id, name);
}

void PerfThreads::TakeFork(const PerfRecord& record) {
  PerfFields fields(record.body);
  const auto process = fields.Take<std::uint32_t>();
  const auto parent = fields.Take<std::uint32_t>();
  const auto id = fields.Take<std::uint32_t>();
  const auto parent_id = fields.Take<std::uint32_t>();
  if (!fields.ok()) return;
  const std::string name = ThreadOf(parent, parent_id).name;
  Thread& thread = ThreadOf(process, id);
  Begin(thread, process);
  thread.name = name;
  thread.labels = Thread::kNoLabels;
  if ((record.misc & kIsMadeUp) == 0) table_.Fork(parent, process);
}

void PerfThreads::TakeExit(const PerfRecord& record) {
  PerfFields fields(record.body);
  const auto process = fields.Take<std::uint32_t>();
  fields.Take<std::uint32_t>();  // the parent
  const auto found = threads_.find(fields.Take<std::uint32_t>());
  if (!fields.ok() || found == threads_.end() || !std::exchange(found->second.is_alive, false))
    return;
  const auto alive = alive_.find(found->second.process);
  if (alive == alive_.end() || --alive->second > 0) return;
  alive_.erase(alive);
  table_.Exit(process);
}

std::uint32_t PerfThreads::LabelsOf(std::uint32_t process, std::uint32_t id) {
  Thread& thread = ThreadOf(process, id);
  if (thread.labels == Thread::kNoLabels) {
    std::vector<Label> labels = {{std::string(kThreadIdLabel), std::int64_t{id}},
                                 {std::string(kProcessLabel), std::int64_t{thread.process}}};
    if (!thread.name.empty()) labels.push_back({std::string(kThreadNameLabel), thread.name});
    thread.labels = builder_.Labels(LabelSet(std::move(labels)));
  }
  return thread.labels;
}

void PerfThreads::Finish() {
  std::vector<LabelSet>& sets = builder_.profile().label_sets;
  std::int64_t process = 0;
  for (const LabelSet& set : sets) {
    const std::int64_t other = set.Number(kProcessLabel);
    if (process != 0 && other != 0 && other != process) return;
    if (other != 0) process = other;
  }
  for (LabelSet& set : sets) {
    std::vector<Label> labels(set.labels().begin(), set.labels().end());
    std::erase_if(labels, [](const Label& label) { return label.key == kProcessLabel; });
    set = LabelSet(std::move(labels));
  }
}

}  // namespace strobe::internal
