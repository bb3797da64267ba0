#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/keep_for_ever.h"
#include "strobe/core/options.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/serve/serve_program.h"

namespace strobe::internal {
namespace {

// Never freed: a session may end after the program's static objects.
constinit std::atomic<const Serve*> serve_here{nullptr};
constinit std::atomic<const WorkerUse*> uses{nullptr};

}  // namespace

absl::Status SetOptions(std::string_view lines, ProfilerOptions& options) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::size_t equals = line.find('=');
    const std::string_view field = line.substr(0, equals);
    bool is_set = false;
    for (const OptionRow& row : OptionTable()) {
      if (row.field != field || equals == std::string_view::npos) continue;
      is_set = row.set(options, line.substr(equals + 1), OptionSource::kCode);
    }
    if (!is_set)
      return absl::InvalidArgumentError(
          absl::StrCat("the worker does not accept the option ", std::string(line)));
  }
  return Validate(options);
}

const std::shared_ptr<TableStore>& StoreOfAll() {
  static const auto* const store = [] {
    absl::StatusOr<std::shared_ptr<TableStore>> made = TableStore::Create();
    return new std::shared_ptr<TableStore>(made.ok() ? *std::move(made) : nullptr);
  }();
  return *store;
}

TableMemory MemoryForTables() {
  absl::StatusOr<TableMemory> made = TableMemory::Create("strobe-tables", TableMemory::kBytes);
  return made.ok() ? *std::move(made) : TableMemory();
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void RunWorkerIfAsked(int argc, char** argv, Serve serve) {
  if (argc == 2 && std::string_view(argv[1]) == kWorkerArgument) {
    // A worker writes where the process at the other end of its socket wants, with its own rights.
    if (LinuxPlatform::HasMoreRights()) {
      LinuxPlatform::WriteLine("strobe: a program with more rights than its user is no worker");
      std::exit(1);
    }
    RaiseDescriptorLimit();
    std::exit(serve(WorkerSocket(kWorkerSocket), nullptr) == ServeEnd::kServed ? 0 : 1);
  }
  const auto* const kept = new Serve(std::move(serve));
  KeepForEver(kept);
  serve_here.store(kept, std::memory_order_release);
}

void UseWorker(WorkerUse use) {
  if (FindWorkerUse(use.channel_parts) != nullptr) return;
  auto* const kept = new WorkerUse(std::move(use));
  KeepForEver(kept);
  kept->next = uses.load(std::memory_order_acquire);
  while (!uses.compare_exchange_weak(kept->next, kept, std::memory_order_acq_rel)) {
  }
}

const WorkerUse* FindWorkerUse(const void* channel_parts) {
  const WorkerUse* use = uses.load(std::memory_order_acquire);
  while (use != nullptr && use->channel_parts != channel_parts) use = use->next;
  return use;
}

Serve ServeHere() {
  const Serve* const kept = serve_here.load(std::memory_order_acquire);
  return kept != nullptr ? *kept : Serve();
}

}  // namespace strobe::internal
