#include "strobe/testing/exporter_conformance.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strobe::testing {

// The smallest exporter that keeps the contract: a map in memory, found by the name of the
// directory.
struct MemoryHarness {
  struct Exporter {
    explicit Exporter(const ExporterOptions& options) : directory(*options.directory) {}
    absl::StatusOr<std::string> Export(const ExportRequest& request) {
      if (is_broken) return absl::UnavailableError("the map is broken");
      const std::string where = absl::StrCat(directory, "/", request.profile.sequence);
      places[where] = std::string(request.bytes);
      return where;
    }
    std::string directory;
    static inline std::map<std::string, std::string> places;
    static inline bool is_broken = false;
  };

  MemoryHarness() { Exporter::places.clear(); }
  ExporterOptions options() { return {.directory = "memory"}; }
  std::vector<std::string> Delivered() {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : Exporter::places) names.push_back(name);
    return names;
  }
  std::string Read(const std::string& where) { return Exporter::places[where]; }
  void Break() { Exporter::is_broken = true; }
  void Mend() { Exporter::is_broken = false; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, ExporterConformance, MemoryHarness);

}  // namespace strobe::testing
