#include "../../src/gperftools/session_file.h"

#include <filesystem>
#include <memory>

#include "gtest/gtest.h"
#include "read_profile.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

ExportRequest RequestOf(const SampleProfile& sample) {
  return {.bytes = "",
          .file_suffix = "",
          .content_type = "",
          .profile = sample.profile,
          .symbols = sample.symbols};
}

TEST(SessionFileTest, HasAllPeriods) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "strobe_session_file_test";
  auto current = std::make_shared<internal::CurrentFile>();
  internal::SessionFileExporter exporter(current);
  const SampleProfile sample = SmallProfile();
  const ExportRequest request = RequestOf(sample);
  EXPECT_EQ(exporter.Export(request).status().code(), absl::StatusCode::kInvalidArgument);
  current->Begin({.path = path});
  ASSERT_TRUE(exporter.Export(request).ok());
  const std::int64_t once = AmountOf(ProfileAt(path), "main", "cpu");
  ASSERT_TRUE(exporter.Export(request).ok());
  EXPECT_EQ(AmountOf(ProfileAt(path), "main", "cpu"), 2 * once);
  std::filesystem::remove(path);
}

TEST(SessionFileTest, ARowWithoutFramesMayBeLeftOut) {
  const SampleProfile sample = SmallProfile();
  for (const bool drops : {false, true}) {
    internal::SessionFile file({.drops_empty_stacks = drops});
    ASSERT_TRUE(file.Add(sample.profile, sample.symbols).ok());
    file.Visit([&](const Profile& profile) {
      EXPECT_EQ(profile.samples.size(), sample.profile.samples.size() - (drops ? 1 : 0));
    });
  }
}

TEST(SessionFileTest, AnErrorRefusesThePeriodAndKeepsItForTheNext) {
  auto current = std::make_shared<internal::CurrentFile>();
  internal::SessionFileExporter exporter(current);
  current->Begin({.path = "/none/profile"});
  const SampleProfile sample = SmallProfile();
  const auto sent = exporter.Export(RequestOf(sample));
  EXPECT_TRUE(RefusesProfile(sent.status()));
  EXPECT_EQ(sent.status().message(), "No such file or directory");
  current->Get()->Visit(
      [&](const Profile& profile) { EXPECT_EQ(profile.values, sample.profile.values); });
}

}  // namespace
}  // namespace strobe::testing
