#include "strobe/runtime/session/output_parts.h"

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe::internal {
namespace {

using testing::ArchetypeEncoder;
using testing::ArchetypeExporter;

struct EchoExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    return answer + std::string(request.file_suffix) + std::string(request.content_type);
  }
  std::string answer;
};
struct RefusingEncoder : ArchetypeEncoder {
  absl::StatusOr<std::string> Encode(const Profile& /*profile*/, const Symbols& /*symbols*/) {
    return absl::OutOfRangeError("too long");
  }
};

TEST(OutputPartsTest, EachOutputIsMadeOfWhatItWasGivenAndOfTheOptions) {
  const std::tuple<Output<ArchetypeEncoder, EchoExporter>,
                   Output<ArchetypeEncoder, ArchetypeExporter>>
      given{{.exporter = EchoExporter{"echo "}}, {}};
  auto outputs = MakeOutputs(given, ExporterOptions{});
  const Profile profile;
  EXPECT_EQ(*std::get<0>(outputs).Send(profile, Symbols()), "echo .noneapplication/octet-stream");
  EXPECT_EQ(*std::get<1>(outputs).Send(profile, Symbols()), "nowhere");
}

struct ProfileTaker {
  [[nodiscard]] bool TakesProfiles() const { return true; }
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    return absl::StrCat(request.profile.program, " ", request.symbols.partly_named, " ",
                        request.bytes.size());
  }
};

TEST(OutputPartsTest, AnExporterThatTakesProfilesHasNoUseForTheEncoder) {
  auto outputs =
      MakeOutputs(std::tuple<Output<RefusingEncoder, ProfileTaker>>{}, ExporterOptions{});
  Profile profile;
  profile.program = "shop";
  Symbols symbols;
  symbols.partly_named = "libz.so";
  EXPECT_EQ(*std::get<0>(outputs).Send(profile, symbols), "shop libz.so 0");
}

TEST(OutputPartsTest, AnEncodersErrorIsTheOutputs) {
  auto outputs = MakeOutputs(
      std::tuple<Output<RefusingEncoder, EchoExporter>>{{.exporter = EchoExporter{"echo"}}},
      ExporterOptions{});
  EXPECT_EQ(std::get<0>(outputs).Send(Profile(), Symbols()).status().message(), "too long");
}

}  // namespace
}  // namespace strobe::internal
