#include "strobe/platform/capture_target.h"

#include <array>

namespace strobe::internal {
namespace {

// Zero-initialised and without a destructor: a signal may read the entries before main and while
// the program ends.
constinit std::array<CaptureEntry, kMaxArenas> capture_entries{};
constinit HandlerCounters handler_counters;

// In the thread's static block: the handler must not cause the allocation of thread-local storage.
#if defined(__GNUC__) || defined(__clang__)
__attribute__((tls_model("initial-exec")))
#endif
constinit thread_local ThreadLink* thread_links = nullptr;

}  // namespace

const char copy_anchor = 0;

CaptureEntry& CaptureEntryOf(std::size_t arena) { return capture_entries[arena]; }
ThreadLink*& ThreadLinks() { return thread_links; }
HandlerCounters& GlobalHandlerCounters() { return handler_counters; }

}  // namespace strobe::internal
