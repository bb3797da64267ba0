#include "strobe/runtime/output_accounts.h"

#include <array>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(OutputAccounts, OutputsHaveNamesWhereThereAreSeveral) {
  constexpr std::array<std::string_view, 2> kSuffixes{".txt", ".pb.gz"};
  const OutputAccounts accounts = NewAccounts(kSuffixes);
  ASSERT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts[1].name, "output 2 (.pb.gz)");
  EXPECT_EQ(NewAccounts(std::array<std::string_view, 1>{".txt"})[0].name, "");
}

TEST(OutputAccounts, AnErrorNamesItsOutput) {
  const absl::Status failed = absl::UnavailableError("503");
  EXPECT_EQ(OfOutput(failed, "output 2 (.pb.gz)").message(), "output 2 (.pb.gz): 503");
  EXPECT_EQ(OfOutput(failed, "output 2 (.pb.gz)").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(OfOutput(failed, ""), failed);
  EXPECT_TRUE(OfOutput(absl::OkStatus(), "output 2 (.pb.gz)").ok());
}

TEST(OutputAccounts, TheSumHasTheFirstErrorAndTheFirstOutputsPath) {
  constexpr std::array<std::string_view, 2> kSuffixes{".txt", ".pb.gz"};
  OutputAccounts session = NewAccounts(kSuffixes);
  session[0].exports = 1;
  session[0].last_export_path = "/first";
  session[1].exports = 2;
  session[1].exports_dropped = 1;
  session[1].amount_dropped = 20;
  session[1].last_export_error = "503";
  session[1].last_export_path = "/second";
  Stats stats;
  AddOutputs(stats, session);
  AddOutputs(stats, session);  // as of another session
  EXPECT_EQ(stats.exports, 6u);
  EXPECT_EQ(stats.exports_dropped, 2u);
  EXPECT_EQ(stats.amount_dropped, 40);
  EXPECT_EQ(stats.last_export_error, "output 2 (.pb.gz): 503");
  EXPECT_EQ(stats.last_export_path, "/first");
  ASSERT_EQ(stats.outputs.size(), 2u);
  EXPECT_EQ(stats.outputs[1].exports, 4u);
  EXPECT_EQ(stats.outputs[1].last_export_path, "/second");
}

}  // namespace
}  // namespace strobe::internal
