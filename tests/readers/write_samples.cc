// Writes the sample profiles in every format into the directory that is its argument, as
// <name><suffix>, and what they add up to into sums.json.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "strobe/encode/firefox_encoder.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/encode/speedscope_encoder.h"
#include "strobe/encode/svg_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

bool WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  if ((file << bytes).flush()) return true;
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return false;
}

template <class Encoder>
bool Write(const std::string& directory, const std::string& name, const SampleProfile& sample,
           Encoder encoder) {
  const absl::StatusOr<std::string> bytes = encoder.Encode(sample.profile, sample.symbols);
  if (bytes.ok())
    return WriteFile(absl::StrCat(directory, "/", name, std::string(Encoder::kFileSuffix)), *bytes);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), bytes.status().ToString().c_str());
  return false;
}

// {"samples": 105, "cpu": 1053000000}
std::string Sums(const Profile& profile) {
  std::string sums;
  for (std::size_t column = 0; column < profile.value_types.size(); ++column) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) sum += profile.Values(i)[column];
    absl::StrAppend(&sums, sums.empty() ? "" : ", ", "\"",
                    std::string(profile.value_types[column].type), "\": ", sum);
  }
  return sums;
}

bool WriteAll(const std::string& directory) {
  std::vector<SampleProfile> samples = SampleProfiles();
  samples.push_back(RandomProfile(20'000, 30, 26, 5'000));
  bool is_written = true;
  std::string sums;
  for (const SampleProfile& sample : samples) {
    is_written &= Write(directory, sample.name, sample, PprofEncoder()) &&
                  Write(directory, sample.name, sample, FoldedEncoder()) &&
                  Write(directory, sample.name, sample, SpeedscopeEncoder()) &&
                  Write(directory, sample.name, sample, FirefoxEncoder()) &&
                  Write(directory, sample.name, sample, OtlpEncoder()) &&
                  Write(directory, sample.name, sample, SvgEncoder());
    absl::StrAppend(&sums, sums.empty() ? "" : ",\n", "\"", sample.name, "\": {",
                    Sums(sample.profile), "}");
  }
  const SampleProfile detailed = DetailedProfile();
  return is_written && WriteFile(directory + "/sums.json", "{" + sums + "}\n") &&
         Write(directory, "datadog", detailed,
               PprofEncoder({.labels = PprofLabels::kDatadog, .moments = true})) &&
         Write(directory, "full_names", detailed, PprofEncoder({.full_names = true})) &&
         Write(directory, "cpu", detailed, FoldedEncoder({.value_type = "cpu"})) &&
         Write(directory, "wall", detailed, FirefoxEncoder({.value_type = "wall"}));
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  return strobe::testing::WriteAll(argv[1]) ? 0 : 1;
}
