#include "strobe/testing/exporter_conformance.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strobe::testing {

// The smallest exporter that keeps the contract: a map in memory, which is the harness's.
struct MemoryHarness {
  struct Memory {
    std::map<std::string, std::string> places;
    bool is_broken = false;
  };
  struct Exporter {
    absl::StatusOr<std::string> Export(const ExportRequest& request) {
      if (memory->is_broken) return absl::UnavailableError("the map is broken");
      const std::string where = absl::StrCat("memory/", request.profile.sequence);
      memory->places[where] = std::string(request.bytes);
      return where;
    }
    Memory* memory;
  };

  Exporter Make() { return {&memory}; }
  std::vector<std::string> Delivered() const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : memory.places) names.push_back(name);
    return names;
  }
  std::string Read(const std::string& where) { return memory.places[where]; }
  void Break() { memory.is_broken = true; }
  void Mend() { memory.is_broken = false; }

  Memory memory;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, ExporterConformance, MemoryHarness);

}  // namespace strobe::testing
