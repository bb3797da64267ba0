// Writes the pages that page.py measures into the directory that is its argument, and the same
// profiles for peers (.pb.gz), and prints how long each took to encode, as JSON.
//
//   related   100,000 stacks of 30 frames, of which each shares 26 with the one before
//   random    100,000 stacks that share nothing but by chance
//   server    600,000 captures of a server, with their times: about 177,000 rows
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "server_profile.h"
#include "strobe/encode/html_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

constexpr int kRepetitions = 5;
constexpr std::size_t kStacks = 100'000, kDepth = 30, kFrames = 50'000, kCaptures = 600'000;

bool Write(const std::string& path, const absl::StatusOr<std::string>& bytes) {
  if (!bytes.ok()) return false;
  std::ofstream file(path, std::ios::binary);
  return static_cast<bool>((file << *bytes).flush());
}

bool WriteCase(const std::string& directory, const std::string& name, const SampleProfile& sample) {
  std::vector<double> times_ms;
  absl::StatusOr<std::string> page;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    page = HtmlEncoder().Encode(sample.profile, sample.symbols);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    times_ms.push_back(time.count());
  }
  std::sort(times_ms.begin(), times_ms.end());
  std::printf(
      "{\"case\": \"%s\", \"contender\": \"strobe\", \"metric\": \"encode\", \"value\": %.1f, "
      "\"unit\": \"ms\"}\n",
      name.c_str(), times_ms[kRepetitions / 2]);
  return Write(directory + "/" + name + ".html", page) &&
         Write(directory + "/" + name + ".pb.gz",
               PprofEncoder().Encode(sample.profile, sample.symbols));
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  using namespace strobe::testing;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const bool is_ok = WriteCase(argv[1], "related", RandomProfile(kStacks, kDepth, 26, kFrames)) &&
                     WriteCase(argv[1], "random", RandomProfile(kStacks, kDepth, 0, kFrames)) &&
                     WriteCase(argv[1], "server", ServerProfile({.captures = kCaptures}));
  return is_ok ? 0 : 1;
}
