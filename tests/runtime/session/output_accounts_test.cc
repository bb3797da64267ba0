#include "strobe/runtime/session/output_accounts.h"

#include <array>
#include <cstddef>
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

TEST(OutputAccounts, WhatAnExporterSaysOfItselfIsAddedAndItsSpoolIsLeftAtTheEnd) {
  OutputStats output;
  output.exports = 5;
  output.exports_dropped = 1;
  ExporterAccount exporter;
  exporter.delivered = 3;
  exporter.drops[static_cast<std::size_t>(ExportDrop::kTooOld)] = 2;
  exporter.amount_dropped = 70;
  exporter.spool = {.found = 4, .waiting = 4, .waiting_bytes = 4000};
  exporter.last_error = "503";
  AddExporter(output, exporter);
  EXPECT_EQ(output.delivered, 3u);
  EXPECT_EQ(output.exports_dropped, 3u);
  EXPECT_EQ(output.drops[static_cast<std::size_t>(ExportDrop::kTooOld)], 2u);
  EXPECT_EQ(output.amount_dropped, 70);
  EXPECT_EQ(output.spool, exporter.spool);
  EXPECT_EQ(output.last_export_error, "503");
  EXPECT_EQ(output.exports + output.spool.found, output.delivered + 2 + output.spool.waiting);
  LeaveSpool(exporter);
  EXPECT_EQ(exporter.spool, (SpoolStats{.found = 4, .left = 4}));
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
