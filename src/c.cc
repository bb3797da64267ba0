#include "strobe/c.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/strobe.h"

namespace strobe {
namespace {

static_assert(STROBE_OK == static_cast<int>(absl::StatusCode::kOk));
static_assert(STROBE_INVALID_ARGUMENT == static_cast<int>(absl::StatusCode::kInvalidArgument));
static_assert(STROBE_DEADLINE_EXCEEDED == static_cast<int>(absl::StatusCode::kDeadlineExceeded));
static_assert(STROBE_ALREADY_EXISTS == static_cast<int>(absl::StatusCode::kAlreadyExists));
static_assert(STROBE_RESOURCE_EXHAUSTED == static_cast<int>(absl::StatusCode::kResourceExhausted));
static_assert(STROBE_FAILED_PRECONDITION ==
              static_cast<int>(absl::StatusCode::kFailedPrecondition));
static_assert(STROBE_UNIMPLEMENTED == static_cast<int>(absl::StatusCode::kUnimplemented));
static_assert(STROBE_INTERNAL == static_cast<int>(absl::StatusCode::kInternal));

// Never destroyed, because threads may use it until the process has ended. The exit stops its
// session, as it does for each profiler.
constinit std::atomic<Profiler*> process_profiler{nullptr};

// What a thread's calls leave behind. Has no destructor, so it can be used while the thread ends.
struct ThreadCalls {
  int code = STROBE_OK;
  std::array<char, STROBE_STATUS_BYTES> text{};
  // The labels before each push.
  std::array<Labels, STROBE_MAX_LABEL_DEPTH> outer_labels{};
  std::size_t depth = 0;
  Registration* registration = nullptr;  // owned; nullptr if the thread is not registered
  bool has_ended = false;                // no registration can be held any more
};
constinit thread_local ThreadCalls calls;

void EndRegistration() { delete std::exchange(calls.registration, nullptr); }

#if defined(__ELF__)
// The end of the thread ends its registration.
struct ThreadEnd {
  ThreadEnd() = default;
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;
  ~ThreadEnd() {
    EndRegistration();
    calls.has_ended = true;
  }
  void Await() {}
};
thread_local ThreadEnd thread_end;
void EndRegistrationWithThread() { thread_end.Await(); }
#else
// Where the compiler emulates thread-local memory (MinGW), the memory is gone before destructors
// run: only strobe_unregister_thread ends a registration.
void EndRegistrationWithThread() {}
#endif

// Runs `body`, and keeps its status for strobe_last_status.
template <class Body>
int Call(const Body& body) noexcept {
  absl::Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = internal::OutOfMemory();
  } catch (const std::exception& error) {
    status = internal::MakeStatus(absl::StatusCode::kInternal, error.what());
  }
  const absl::string_view text = status.message();
  const std::size_t size = std::min(text.size(), calls.text.size() - 1);
  calls.code = static_cast<int>(status.code());
  std::copy_n(text.begin(), size, calls.text.begin());
  calls.text[size] = '\0';
  return calls.code;
}

// Sets the option of one line.
absl::Status SetOption(std::string_view line, ProfilerOptions& options) {
  const std::size_t equals = line.find('=');
  const std::string_view field = line.substr(0, equals);
  const auto table = OptionTable();
  const auto row = std::ranges::find(table, field, &OptionRow::field);
  if (row == table.end() || equals == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strobe_start: \"", std::string(line),
        "\" is not an option: expected a line such as \"exporter.directory=profiles\""));
  }
  const std::string_view value = line.substr(equals + 1);
  if (row->set(options, value, OptionSource::kCode)) return absl::OkStatus();
  return internal::WrongField(field, value, row->accepted);
}

absl::Status SetOptions(std::string_view text, ProfilerOptions& options) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    if (absl::Status status = SetOption(line, options); !status.ok()) return status;
  }
  return Validate(options);
}

// False if there is a profiler already, which has other options.
bool MakeProfiler(ProfilerOptions options) {
  auto profiler = std::make_unique<Profiler>(std::move(options));
  Profiler* none = nullptr;
  if (!process_profiler.compare_exchange_strong(none, profiler.get(), std::memory_order_acq_rel))
    return false;
  static_cast<void>(profiler.release());
  return true;
}

Profiler& ProcessProfiler() {
  if (process_profiler.load(std::memory_order_acquire) == nullptr)
    static_cast<void>(MakeProfiler({}));
  return *process_profiler.load(std::memory_order_acquire);
}

absl::Status Start(const char* text) {
  if (text != nullptr && *text != '\0') {
    ProfilerOptions options;
    if (absl::Status status = SetOptions(text, options); !status.ok()) return status;
    if (process_profiler.load(std::memory_order_acquire) != nullptr ||
        !MakeProfiler(std::move(options))) {
      return absl::FailedPreconditionError(
          "strobe_start: the profiler has its options already: pass NULL, or call strobe_start "
          "with options before all else");
    }
  }
  return ProcessProfiler().Start();
}

// Calls a function of the profiler that needs a session.
absl::Status InSession(absl::Status (Profiler::*function)()) {
  Profiler* const profiler = process_profiler.load(std::memory_order_acquire);
  if (profiler == nullptr)
    return absl::FailedPreconditionError("no session runs: call strobe_start first");
  return (profiler->*function)();
}

absl::Status Register(const char* name) {
  if (name == nullptr)
    return absl::InvalidArgumentError("strobe_register_thread: the name is NULL");
  if (calls.has_ended) return absl::FailedPreconditionError("the calling thread is ending");
  // In a fork's child, the held registration is one of the parent's: it does nothing there, and the
  // profiler accepts the thread.
  Registration registration = ProcessProfiler().RegisterThread(name);
  if (!registration.status().ok()) return registration.status();
  auto held = std::make_unique<Registration>(std::move(registration));
  EndRegistration();
  EndRegistrationWithThread();
  calls.registration = held.release();
  return absl::OkStatus();
}

absl::Status Unregister() {
  if (calls.registration == nullptr)
    return absl::FailedPreconditionError("the calling thread is not registered");
  EndRegistration();
  return absl::OkStatus();
}

template <class MakeLabels>
absl::Status Push(const MakeLabels& make_labels) {
  if (calls.depth == calls.outer_labels.size()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the calling thread has ", calls.depth, " labels: call strobe_pop_label for each push"));
  }
  calls.outer_labels[calls.depth++] = ExchangeLabels(make_labels());
  return absl::OkStatus();
}

template <class Value>
absl::Status PushLabel(const char* key, Value value) {
  if (key == nullptr || *key == '\0')
    return absl::InvalidArgumentError("the key of a label is NULL or empty");
  const LabelView label(key, value);
  return Push([&label] { return Labels::Of(std::span(&label, 1), CurrentLabels()); });
}

absl::Status PushZone(const char* name) {
  if (name == nullptr || *name == '\0')
    return absl::InvalidArgumentError("the name of a zone is NULL or empty");
  return Push([name] { return Labels::Of(ZoneName::Of(name), CurrentLabels()); });
}

absl::Status Pop() {
  if (calls.depth == 0)
    return absl::FailedPreconditionError(
        "strobe_pop_label: the calling thread has pushed no label");
  static_cast<void>(ExchangeLabels(calls.outer_labels[--calls.depth]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace strobe

int strobe_start(const char* options) {
  return strobe::Call([options] { return strobe::Start(options); });
}

int strobe_stop() {
  return strobe::Call([] { return strobe::InSession(&strobe::Profiler::Stop); });
}

int strobe_flush() {
  return strobe::Call([] { return strobe::InSession(&strobe::Profiler::Flush); });
}

int strobe_register_thread(const char* name) {
  return strobe::Call([name] { return strobe::Register(name); });
}

int strobe_unregister_thread() { return strobe::Call(strobe::Unregister); }

int strobe_push_text_label(const char* key, const char* text) {
  return strobe::Call([key, text] {
    return text != nullptr ? strobe::PushLabel(key, std::string_view(text))
                           : absl::InvalidArgumentError("the text of a label is NULL");
  });
}

int strobe_push_number_label(const char* key, int64_t number) {
  return strobe::Call([key, number] { return strobe::PushLabel(key, number); });
}

int strobe_push_zone(const char* name) {
  return strobe::Call([name] { return strobe::PushZone(name); });
}

int strobe_pop_label() { return strobe::Call(strobe::Pop); }

int strobe_last_status(char* text, size_t size) {
  if (text != nullptr && size != 0) {
    const std::size_t length = std::min(size - 1, std::strlen(strobe::calls.text.data()));
    std::memcpy(text, strobe::calls.text.data(), length);
    text[length] = '\0';
  }
  return strobe::calls.code;
}
