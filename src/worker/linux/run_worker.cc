#include <cstdlib>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/default_traits.h"
#include "strobe/worker/served_session.h"
#include "strobe/worker/worker_listener.h"
#include "strobe/worker/worker_profiler.h"

namespace strobe {

absl::Status internal::SetOptions(std::string_view lines, ProfilerOptions& options) {
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

std::shared_ptr<internal::TableStore> internal::NewTableStore() {
  absl::StatusOr<std::shared_ptr<TableStore>> store = TableStore::Create();
  return store.ok() ? *std::move(store) : nullptr;
}

void RunWorkerIfAsked(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]) != internal::kWorkerArgument) return;
  std::exit(internal::ServeProgram<DefaultTraits>(internal::WorkerSocket(internal::kWorkerSocket),
                                                  internal::NewTableStore()));
}

absl::StatusOr<internal::ListenerCounts> internal::ListenForPrograms(const std::string& path,
                                                                     const Announce& announce) {
  return ListenWith(path, announce, [store = NewTableStore()](const WorkerSocket& socket) {
    static_cast<void>(ServeProgram<DefaultTraits>(socket, store));
  });
}

}  // namespace strobe
