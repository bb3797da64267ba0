#include "strobe/platform/capture_target.h"

#include <array>

namespace strobe::internal {
namespace {

// Zero-initialised and without a destructor: a signal may read the entries before main and while
// the program ends.
constinit std::array<CaptureEntry, kMaxArenas> capture_entries{};
constinit HandlerCounters handler_counters;

}  // namespace

const char copy_anchor = 0;

constinit thread_local RegistrationLink* thread_links = nullptr;
constinit thread_local ThreadContext own_context;

CaptureEntry& CaptureEntryOf(std::size_t arena) { return capture_entries[arena]; }

HandlerCounters& GlobalHandlerCounters() { return handler_counters; }

}  // namespace strobe::internal
