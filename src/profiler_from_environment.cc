#include "strobe/profiler_from_environment.h"

#include <optional>
#include <string>
#include <utility>

#include "strobe/base/memory_guard.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

bool IsSet(const char* name) {
  const std::optional<std::string> value = NativePlatform::EnvironmentVariable(name);
  return value && !value->empty();
}

// True if a variable of the table is set, and none switches the profiler off.
bool IsAskedFor() {
  ProfilerOptions options;
  bool is_set = false;
  const auto variable = [&is_set](const char* name) {
    std::optional<std::string> value = NativePlatform::EnvironmentVariable(name);
    is_set = is_set || (value && !value->empty());
    return value;
  };
  // The profiler warns of a value that is not accepted.
  ApplyEnvironment(options, variable, [](const std::string& /*warning*/) {});
  return is_set && *options.enabled;
}

}  // namespace

ProfilerFromEnvironment::ProfilerFromEnvironment(std::string_view thread_name,
                                                 ProfilerOptions options)
    : status_(internal::MakeStatus(absl::StatusCode::kCancelled,
                                   "no STROBE_ variable asks for a session")) {
  if (!internal::HasMemoryFor([&] { Begin(thread_name, std::move(options)); }))
    status_ = internal::OutOfMemory();
}

void ProfilerFromEnvironment::Begin(std::string_view thread_name, ProfilerOptions options) {
  internal::WarnOfUnknownVariables<NativePlatform>();
  if (!IsAskedFor()) return;
  profiler_.emplace(std::move(options));
  registration_ = profiler_->RegisterThread(thread_name);
  if (*profiler_->options().sampling.toggle_signal != 0 && !IsSet("STROBE_ENABLED")) {
    status_ = profiler_->toggle_status();
    return;
  }
  session_.emplace(*profiler_);
  status_ = session_->status();
}

Registration ProfilerFromEnvironment::RegisterThread(std::string_view name) {
  return profiler_ ? profiler_->RegisterThread(name) : Registration();
}

}  // namespace strobe
