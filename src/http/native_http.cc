#include "strobe/http/native_http.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "strobe/platform/native.h"

namespace strobe {
namespace {

// The program's name as a part of a directory's name.
std::string SlotName(std::string program) {
  constexpr std::size_t kMaxBytes = 64;
  program.resize(std::min(program.size(), kMaxBytes));
  for (char& c : program) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  return program.empty() ? "program" : program;
}

double Random() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

void WaitUntil(std::chrono::steady_clock::time_point until, const ExportDeadline& deadline) {
  for (auto now = std::chrono::steady_clock::now(); now < until && now < deadline.time();
       now = std::chrono::steady_clock::now()) {
    std::this_thread::sleep_for(
        std::min<std::chrono::steady_clock::duration>(until - now, ExportDeadline::kMaxStepMs));
  }
}

}  // namespace

HttpTools NativeHttpTools() {
  internal::InitializeNativeHttp();
  return {.make_client = &MakeNativeHttpClient,
          .directories = &NativePlatform::Directories(),
          .program = SlotName(NativePlatform::ProgramName()),
          .now = &std::chrono::steady_clock::now,
          .unix_ns =
              [] {
                const std::chrono::nanoseconds now =
                    std::chrono::system_clock::now().time_since_epoch();
                return std::int64_t{now.count()};
              },
          .wait = &WaitUntil,
          .random = &Random};
}

namespace internal {

std::optional<std::string> NativeEnvironment(const char* name) {
  return NativePlatform::EnvironmentVariable(name);
}

void NativeWarn(const std::string& line) { NativePlatform::WriteLine(line); }

}  // namespace internal
}  // namespace strobe
