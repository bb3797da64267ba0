// PgoProfile: the functions of a binary for its compiler, and how much of the samples they cover.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "code_samples.h"
#include "function_samples.h"
#include "strobe/core/module_map.h"
#include "strobe/core/value_type.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

struct PgoProfile {
  FunctionSamplesMap functions;  // of all builds
  // Amounts of samples.
  double whole = 0;         // of all
  double in_binary = 0;     // whose innermost frame is in the binary, whatever its build
  double covered = 0;       // of those, with lines of functions
  double other_builds = 0;  // of those in the binary, in other builds than this one
  // Of the counts of other builds, the share in functions and lines that the binary does not have.
  double gone_share = 0;
  bool has_discriminators = false;
};

// FailedPrecondition, with what to do, if no sample has the lines that the formats need.
absl::StatusOr<PgoProfile> MakePgoProfile(const BinarySamples& samples, const Module& binary,
                                          const SymbolFiles& files, const SymbolSearch& search,
                                          DiscriminatorKind kind);

// Sentences for people: how much is covered, of how many functions, and how old the samples are.
std::vector<std::string> ReportOf(const PgoProfile& profile, const std::string& binary,
                                  ValueType type);

}  // namespace strobe::internal
