#include "strobe/runtime/control/exit_list.h"

#include <array>
#include <atomic>

#include "strobe/platform/capture_target.h"

namespace strobe::internal {
namespace {

constinit std::array<std::atomic<StoppedAtExit*>, kMaxArenas> exit_places{};
constinit std::atomic<bool> is_asked{false};

}  // namespace

void ExitList::Add(std::size_t place, StoppedAtExit* running, bool (*at_exit)(void (*function)())) {
  exit_places[place].store(running, std::memory_order_release);
  if (!is_asked.exchange(true)) is_asked.store(at_exit(&StopAll));
}

bool ExitList::Remove(std::size_t place, StoppedAtExit* running) {
  return exit_places[place].compare_exchange_strong(running, nullptr, std::memory_order_acq_rel);
}

void ExitList::StopAll() {
  for (auto& place : exit_places) {
    if (StoppedAtExit* const running = place.exchange(nullptr, std::memory_order_acq_rel))
      running->StopAtExit();
  }
}

}  // namespace strobe::internal
