// Machine tags: what a profile says of the machine and the process that it comes from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/core/label_set.h"

namespace strobe {

// A row for each label that Profile::machine may have.
struct MachineTag {
  std::string_view key;   // of the label, and of the tag of a backend
  std::string_view otlp;  // the resource attribute of OpenTelemetry
  bool is_of_machine;     // true if all processes on the machine have the same: see MachinePart
};

inline constexpr std::array<MachineTag, 10> kMachineTags{{
    {"cpus", "strobe.cpus", true},             // that the process may run on, by its affinity
    {"cpu_quota", "strobe.cpu_quota", false},  // of its control group, in CPUs: "1.5"
    {"cpu_model", "host.cpu.model.name", true},
    {"memory_bytes", "strobe.memory_bytes", true},
    {"os", "os.name", true},  // "Debian GNU/Linux"
    {"os_version", "os.version", true},
    {"kernel", "strobe.kernel", true},  // its release: "6.1.0-18-amd64"
    {"architecture", "host.arch", true},
    {"container_id", "container.id", false},
    {"process_name", "strobe.process_name", false},  // as the system says it; a program may set it
}};

enum class MachinePart : std::uint8_t {
  kAll,
  // What all processes of the machine share: fit for a profile of processes that run elsewhere, and
  // for a server that keeps a series for each set of labels.
  kShared,
};

// Calls visit(tag, label) for each label of `part` that `machine` has, in the order of the table.
template <class Visitor>
void VisitMachine(const LabelSet& machine, MachinePart part, const Visitor& visit) {
  for (const MachineTag& tag : kMachineTags) {
    const Label* const label = machine.Find(tag.key);
    if (label != nullptr && (tag.is_of_machine || part == MachinePart::kAll)) visit(tag, *label);
  }
}

// The comment of a profile that has machine tags: "machine: architecture=x86_64; cpus=4". Empty for
// an empty set.
std::string MachineComment(const LabelSet& machine);
// The tags of such a comment; empty if it is another one. Labels that are no machine tags are left
// out.
LabelSet MachineIn(std::string_view comment);

}  // namespace strobe
