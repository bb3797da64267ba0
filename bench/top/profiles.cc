// Writes two profiles of about 50 MB into the directory that is its argument: related.pb.gz, of
// stacks that share most of their frames, as a program's do, and random.pb.gz, of stacks that share
// none.
#include <cstdio>
#include <fstream>
#include <string>

#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

namespace {

bool Write(const std::string& path, const strobe::testing::SampleProfile& sample) {
  const auto bytes = strobe::PprofEncoder().Encode(sample.profile, sample.symbols);
  if (!bytes.ok()) return false;
  std::ofstream file(path, std::ios::binary);
  return static_cast<bool>((file << *bytes).flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const std::string directory = argv[1];
  const bool is_written =
      Write(directory + "/related.pb.gz",
            strobe::testing::RandomProfile(1'350'000, 40, 26, 20'000)) &&
      Write(directory + "/random.pb.gz", strobe::testing::RandomProfile(720'000, 30, 0, 20'000));
  return is_written ? 0 : 1;
}
