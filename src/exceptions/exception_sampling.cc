#include "strobe/exceptions/exception_sampling.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <string_view>
#include <typeinfo>

#include "strobe/base/signal_safe.h"
#include "strobe/provider/process_sink.h"
#include "strobe/scoped_labels.h"
#include "type_names.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kTypeOverLimit = "[types over limit]";

constinit ProcessSink sink;
constinit TypeNames type_names;
constinit std::atomic<std::int64_t> exceptions_over_limit{0};
// True while the calling thread counts a throw: one that is thrown meanwhile, because memory runs
// out, is Strobe's own.
constinit thread_local bool is_counting __attribute__((tls_model("initial-exec"))) = false;

using Throw = void (*)(void* thrown, std::type_info* type, void (*destroy)(void*));
constinit std::atomic<Throw> next_throw{nullptr};

// The runtime's __cxa_throw.
Throw NextThrow() {
  Throw next = next_throw.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<Throw>(dlsym(RTLD_NEXT, "__cxa_throw"));
    if (next == nullptr) std::terminate();  // no runtime can throw: see kSharedRuntime
    next_throw.store(next, std::memory_order_relaxed);
  }
  return next;
}

// In libstdc++.a, this function is in one file with __cxa_throw. So a program with a static runtime
// has two of that name, and the linker says so, before dlsym finds none.
__attribute__((used)) const auto kSharedRuntime = &abi::__cxa_init_primary_exception;

// Counts a throw. The caller is __cxa_throw, by no tail call.
[[gnu::noinline]] void NoteThrow(const std::type_info& type) noexcept {
  if (!sink.is_open() || is_counting) return;
  const int saved_errno = errno;
  is_counting = true;
  {
    std::string_view name = type_names.NameOf(type);
    if (name.empty()) {
      name = kTypeOverLimit;
      exceptions_over_limit.fetch_add(1, std::memory_order_relaxed);
    }
    const ScopedLabels labels({{kExceptionLabel, name}});
    const ProcessSink::Use use(sink);
    use.Record({.count = 1, .total = 1});
  }
  is_counting = false;
  errno = saved_errno;
}

}  // namespace

absl::Status BeginExceptions(const EventTarget& target) {
  const bool is_first =
      sink.Open(target, [] { exceptions_over_limit.store(0, std::memory_order_relaxed); });
  return is_first ? absl::OkStatus()
                  : absl::FailedPreconditionError("exceptions are counted already");
}

void EndExceptions() { sink.Close(); }

ExceptionStats CollectExceptionStats() {
  return {.untaken_exceptions = sink.untaken().count,
          .exceptions_over_limit = exceptions_over_limit.load(std::memory_order_relaxed)};
}

// __cxa_throw by another name, because compilers and headers declare that one with different types.
// In this file, so that a program that begins to count has it in place of the runtime's.
extern "C" [[noreturn]] __attribute__((visibility("default"))) void StrobeThrow(
    void* thrown, std::type_info* type, void (*destroy)(void*)) __asm__("__cxa_throw");

// Without noexcept, because the exception passes through this frame.
void StrobeThrow(void* thrown, std::type_info* type, void (*destroy)(void*)) {
  NoteThrow(*type);
  NextThrow()(thrown, type, destroy);
  std::terminate();  // the runtime's does not return
}

}  // namespace strobe::internal
