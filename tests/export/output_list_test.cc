#include "strobe/export/output_list.h"

#include "gtest/gtest.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/platform/file_exporter.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {
namespace {

using ToFile = Output<PprofEncoder, FileExporter>;
using ToNowhere = Output<testing::ArchetypeEncoder, testing::ArchetypeExporter>;

TEST(OutputListTest, CountsItsOutputsAndKnowsTheirFormats) {
  EXPECT_EQ((OutputList<ToFile>::kCount), 1u);
  EXPECT_EQ((OutputList<ToFile, ToNowhere>::kCount), 2u);
  EXPECT_EQ((OutputList<ToFile, ToNowhere>::kFileSuffixes[0]), ".pb.gz");
  EXPECT_EQ((OutputList<ToFile, ToNowhere>::kFileSuffixes[1]), ".none");
  EXPECT_EQ(ToFile::kContentType, "application/octet-stream");
}

}  // namespace
}  // namespace strobe
