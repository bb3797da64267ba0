#include "strobe/export/parts.h"

#include <array>
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "strobe/provider/provider_list.h"
#include "strobe/testing/fakes/archetypes.h"

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
// There is none without a queue.
struct QueueProvider {
  static constexpr std::array kValueTypes{ValueType{"queued", "count"}};
  explicit QueueProvider(const int& of) : queue(&of) {}
  [[nodiscard]] bool enabled() const { return true; }
  const int* queue;
};
struct GivenProvider : testing::ArchetypeTraits {
  using Providers = ProviderList<testing::ArchetypeProvider, QueueProvider>;
};
struct OneOutput {
  using Providers = ProviderList<testing::ArchetypeProvider>;
  using Symbolizer = ArchetypeSymbolizer;
  using Outputs = OutputList<Output<ArchetypeEncoder, ConnectedExporter>>;
};
struct TwoOutputs {
  using Providers = ProviderList<testing::ArchetypeProvider>;
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

TEST(PartsTest, ProvidersAreGivenByTheirTypes) {
  const int queue = 7;
  const Parts<GivenProvider> parts{.providers = {QueueProvider(queue)}};
  GivenProvider::Providers providers({}, parts.providers);
  const int* given = nullptr;
  providers.ForEachEnabled([&](auto& provider, auto index) {
    if constexpr (index == 1) given = provider.queue;
  });
  EXPECT_EQ(given, &queue);
}

TEST(PartsTest, ItIsKnownWhetherAPartMustBeGiven) {
  EXPECT_TRUE(Parts<testing::ArchetypeTraits>::kCanBeMade);
  EXPECT_FALSE(Parts<OneOutput>::kCanBeMade);
  EXPECT_FALSE(Parts<GivenProvider>::kCanBeMade);
  EXPECT_FALSE(Parts<TwoOutputs>::kCanBeMade);
}

}  // namespace
}  // namespace strobe
