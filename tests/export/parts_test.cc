#include "strobe/export/parts.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "strobe/testing/archetypes.h"

namespace strobe {
namespace {

using testing::ArchetypeEncoder;
using testing::ArchetypeExporter;
using testing::ArchetypeSymbolizer;

// There is none without a connection.
struct ConnectedExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) { return *connection; }
  const std::string* connection;
  explicit ConnectedExporter(const std::string& to) : connection(&to) {}
};
struct OneOutput {
  using Symbolizer = ArchetypeSymbolizer;
  using Outputs = OutputList<Output<ArchetypeEncoder, ConnectedExporter>>;
};
struct TwoOutputs {
  using Symbolizer = ArchetypeSymbolizer;
  using Outputs = OutputList<Output<ArchetypeEncoder, ArchetypeExporter>,
                             Output<ArchetypeEncoder, ConnectedExporter>>;
};

TEST(PartsTest, PartsOfOneOutputAreGivenByTheirNames) {
  const std::string connection = "one";
  const Parts<OneOutput> parts{.exporter = ConnectedExporter(connection)};
  EXPECT_EQ(std::get<0>(parts.AllOutputs()).exporter.Make({}).connection, &connection);
}

TEST(PartsTest, PartsOfSeveralOutputsAreGivenOutputByOutput) {
  const std::string connection = "two";
  const Parts<TwoOutputs> parts{.outputs = {{}, {.exporter = ConnectedExporter(connection)}}};
  EXPECT_EQ(std::get<1>(parts.AllOutputs()).exporter.Make({}).connection, &connection);
}

TEST(PartsTest, ItIsKnownWhetherAPartMustBeGiven) {
  EXPECT_TRUE(Parts<testing::ArchetypeTraits>::kCanBeMade);
  EXPECT_FALSE(Parts<OneOutput>::kCanBeMade);
  EXPECT_FALSE(Parts<TwoOutputs>::kCanBeMade);
}

}  // namespace
}  // namespace strobe
