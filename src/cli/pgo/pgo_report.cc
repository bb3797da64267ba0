#include "pgo_report.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "stale_lines.h"
#include "ui/text.h"

namespace strobe::internal {
namespace {

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string Percent(double part, double whole) {
  return ShareText(Share(part, whole), std::numeric_limits<double>::quiet_NaN());
}

void AddFunctions(const FunctionSamplesMap& functions, FunctionSamplesMap& sum) {
  for (const auto& [name, function] : functions) sum[name].Add(function);
}

double TotalOf(const FunctionSamplesMap& functions) {
  double total = 0;
  for (const auto& [name, function] : functions) total += function.total();
  return total;
}

void AddAmounts(const BuildSamples& build, PgoProfile& profile) {
  for (const CodeSamples::Place& place : build.code.places) {
    const auto amount = static_cast<double>(place.amount);
    profile.in_binary += amount;
    if (!build.is_current) profile.other_builds += amount;
    if (IsLocated(place)) profile.covered += amount;
    for (const SourceFrame& frame : place.frames)
      profile.has_discriminators = profile.has_discriminators || frame.discriminator != 0;
  }
}

}  // namespace

absl::StatusOr<PgoProfile> MakePgoProfile(const BinarySamples& samples, const Module& binary,
                                          const SymbolFiles& files, const SymbolSearch& search,
                                          DiscriminatorKind kind) {
  PgoProfile profile;
  profile.whole = static_cast<double>(samples.whole);
  bool has_names = false;
  FunctionSamplesMap other;
  for (const BuildSamples& build : samples.builds) {
    AddAmounts(build, profile);
    for (const CodeSamples::Place& place : build.code.places)
      has_names = has_names || !place.frames.empty();
    AddFunctions(MakeFunctionSamples(build.code, kind),
                 build.is_current ? profile.functions : other);
  }
  if (const double total = TotalOf(other); total > 0) {
    KeepKnown(other, LocationsOf(other, binary, files, search, kind));
    profile.gone_share = 1 - TotalOf(other) / total;
    AddFunctions(other, profile.functions);
  }
  if (!profile.functions.empty()) return profile;
  const char* const how = ": build it with -g1 -fdebug-info-for-profiling (by GCC with -g)";
  if (profile.gone_share > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the samples are of other builds of ", binary.path,
                     ", and its debug information has none of their functions and lines", how));
  }
  if (has_names) {
    return absl::FailedPreconditionError(absl::StrCat("the debug information of ", binary.path,
                                                      " does not say where functions begin", how));
  }
  return absl::FailedPreconditionError(absl::StrCat(binary.path, " has no debug information", how,
                                                    ", or say by --debug-directory where that is"));
}

std::vector<std::string> ReportOf(const PgoProfile& profile, const std::string& binary,
                                  ValueType type) {
  const auto amount_text = [&](double amount) {
    return AmountText(static_cast<std::int64_t>(amount), type.unit);
  };
  std::vector<std::string> sentences;
  sentences.push_back(absl::StrCat(
      profile.functions.size(), profile.functions.size() == 1 ? " function" : " functions",
      ", with ", Percent(profile.covered, profile.in_binary), " of the ",
      amount_text(profile.in_binary), " (", std::string(type.type), ") in ", binary, ", which are ",
      Percent(profile.in_binary, profile.whole), " of the profile"));
  if (profile.other_builds > 0) {
    sentences.push_back(absl::StrCat(Percent(profile.other_builds, profile.in_binary),
                                     " of that is of other builds; of their counts ",
                                     Percent(profile.gone_share, 1),
                                     " are in functions or lines that this build does not have, "
                                     "and are left out"));
  }
  if (!profile.has_discriminators) {
    sentences.push_back(
        "the debug information does not tell blocks of one line apart: "
        "build with -fdebug-info-for-profiling");
  }
  return sentences;
}

}  // namespace strobe::internal
