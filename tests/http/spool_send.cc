// Exports numbered profiles through a spool, with a pause after each:
//
//   spool_send NAME FIRST COUNT PAUSE_MS
//
// The URL, the time limit and the spool come from the environment. Prints "begin N" before an
// export, and "end N MS", "refused N MS" or "error N MS" after it, so that spool_soak.py knows what
// a killed process had promised, and how long it took; at the end, the exporter's account. Its
// clock for pauses runs 200 times as fast as the system's.
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "strobe/http/native_http.h"
#include "strobe/http/post_exporter.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  strobe::HttpTools tools = strobe::NativeHttpTools();
  tools.program = argv[1];
  tools.now = [] {
    return std::chrono::steady_clock::time_point(
        std::chrono::steady_clock::now().time_since_epoch() * 200);
  };
  tools.wait = [](std::chrono::steady_clock::time_point, const strobe::ExportDeadline&) {};
  strobe::PostExporter exporter({}, tools);
  if (!exporter.status().ok()) return 2;
  const std::uint64_t first = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[3], nullptr, 10);
  const std::chrono::milliseconds pause(std::strtoull(argv[4], nullptr, 10));
  strobe::Profile profile;
  for (std::uint64_t number = first; number < first + count; ++number) {
    profile.sequence = number;
    const std::string text = std::to_string(number);
    const std::string body =
        absl::StrCat(argv[1], " ", text, " ", std::string(number * 7919 % 20'000, 'x'), " ", text);
    std::printf("begin %s\n", text.c_str());
    std::fflush(stdout);
    const auto begin = std::chrono::steady_clock::now();
    const auto sent = exporter.Export({.bytes = body,
                                       .file_suffix = ".txt",
                                       .content_type = "text/plain",
                                       .profile = profile,
                                       .symbols = {}});
    const char* const word = sent.ok()                               ? "end"
                             : strobe::RefusesProfile(sent.status()) ? "refused"
                                                                     : "error";
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    std::printf("%s %s %lld\n", word, text.c_str(), static_cast<long long>(took.count()));
    std::fflush(stdout);
    std::this_thread::sleep_for(pause);
  }
  const strobe::ExporterAccount account = exporter.account();
  constexpr auto kRefused = static_cast<std::size_t>(strobe::ExportDrop::kRefused);
  const std::uint64_t refused = account.drops[kRefused];
  const std::uint64_t dropped =
      std::accumulate(account.drops.begin(), account.drops.end(), std::uint64_t{0}) - refused;
  std::printf("account delivered %llu found %llu waiting %llu refused %llu dropped %llu\n",
              static_cast<unsigned long long>(account.delivered),
              static_cast<unsigned long long>(account.spool.found),
              static_cast<unsigned long long>(account.spool.waiting),
              static_cast<unsigned long long>(refused), static_cast<unsigned long long>(dropped));
}
