#include "strobe/runtime/control/worker_link.h"

#include <gtest/gtest.h>

#include <string>

#include "strobe/own_parts.h"

namespace strobe::internal {
namespace {

struct OtherOutputs : DefaultTraits {
  using Outputs =
      OutputList<Output<PprofEncoder, FileExporter>, Output<PprofEncoder, FileExporter>>;
};
struct OtherProviders : DefaultTraits {
  using Providers = ProviderList<CpuTimeProvider>;
};

// A worker may have other outputs than its program.
TEST(WorkerLink, PartsOnTheProgramsThreadsAreTold) {
  EXPECT_EQ(ChannelParts<DefaultTraits>(), ChannelParts<OtherOutputs>());
  EXPECT_NE(ChannelParts<DefaultTraits>(), ChannelParts<OtherProviders>());
}

// This program does not link strobe-worker.
TEST(WorkerLink, WithoutTheLibraryThereIsNoCore) {
  const absl::Status status = MakeWorkerCore({}, ChannelParts<DefaultTraits>()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("strobe-worker"), std::string::npos) << status;
}

}  // namespace
}  // namespace strobe::internal
