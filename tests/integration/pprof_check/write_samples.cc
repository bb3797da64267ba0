// Writes the sample profiles, encoded, into the directory that is its argument: <name>.pb.gz each.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  std::vector<strobe::testing::SampleProfile> samples = strobe::testing::SampleProfiles();
  samples.push_back(strobe::testing::RandomProfile(20'000, 30, 26, 5'000));
  for (const auto& sample : samples) {
    const auto bytes = strobe::PprofEncoder().Encode(sample.profile, sample.symbols);
    const std::string path = std::string(argv[1]) + "/" + sample.name + ".pb.gz";
    std::ofstream file(path, std::ios::binary);
    if (!bytes.ok() || !(file << *bytes).flush()) {
      std::fprintf(stderr, "cannot write %s: %s\n", path.c_str(),
                   bytes.status().ToString().c_str());
      return 1;
    }
  }
  return 0;
}
