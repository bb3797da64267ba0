// Bytes as a file that the command strobe reads: a profile or an error, in every format. What was
// read is filtered, added up and printed, and written as pprof it reads as the same sum.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "commands/command.h"
#include "compare/compare.h"
#include "profile/merge.h"
#include "readers/read_profile.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/encode/profile_view.h"
#include "support/check.h"

namespace strobe::internal {
namespace {

// The rows of the sum are distinct, and so are its stacks: reading it again finds as many.
void CheckSum(const LoadedProfile& loaded) {
  const absl::StatusOr<LoadedProfile> sum = MergeProfiles(std::span(&loaded, 1));
  testing::Check(sum.ok(), "a profile that was read adds up");
  testing::Check(ColumnSum(sum->profile, 0) == ColumnSum(loaded.profile, 0), "to the same amount");
  const absl::StatusOr<std::string> bytes =
      PprofEncoder({.moments = !sum->profile.moments.empty(), .comments = sum->comments})
          .EncodeUncompressed(sum->profile, sum->symbols);
  testing::Check(bytes.ok(), "the sum is written");
  const absl::StatusOr<LoadedProfile> again = ReadProfile(ReadBytes(*bytes));
  testing::Check(again.ok(), "what was written is read");
}

void Print(LoadedProfile loaded) {
  Request request;
  request.pattern = ".";
  request.min_percent = 0;
  request.filter.ignore = "ignored";
  if (!loaded.profile.moments.empty()) request.filter.to_s = 1;
  const Printer printer(Terminal{.shows_output = true, .columns = 40});
  const absl::StatusOr<FilteredProfile> subject = MakeFilteredProfile(std::move(loaded), request);
  if (!subject.ok()) return;
  for (const bool is_json : {false, true}) {
    request.json = is_json;
    for (const auto command : {TopCommand, TreeCommand, PeekCommand, InfoCommand})
      command(*subject, request, printer).IgnoreError();
    DiffCommand(*subject, *subject, request, printer).IgnoreError();
  }
}

}  // namespace
}  // namespace strobe::internal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace strobe::internal;  // NOLINT(google-build-using-namespace)
  absl::StatusOr<LoadedProfile> loaded =
      ReadProfile(ReadBytes({reinterpret_cast<const char*>(data), size}));
  if (!loaded.ok()) return 0;
  strobe::testing::Check(strobe::ProfileView::Make(loaded->profile, loaded->symbols).ok(),
                         "all that a profile refers to is there");
  CheckSum(*loaded);
  Print(*std::move(loaded));
  return 0;
}
