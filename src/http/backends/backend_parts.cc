#include "backend_parts.h"

#include <algorithm>
#include <variant>

#include "../../encode/json_writer.h"

namespace strobe::internal {

std::string JsonString(std::string_view text) {
  JsonWriter json;
  json.String(text);
  return json.Take();
}

std::vector<KeyValue> WithMachine(std::vector<KeyValue> labels, const LabelSet& machine,
                                  MachinePart part) {
  const std::size_t own = labels.size();
  VisitMachine(machine, part, [&](const MachineTag& tag, const Label& label) {
    const auto is_tag = [&](const KeyValue& one) { return one.key == tag.key; };
    if (std::any_of(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(own), is_tag))
      return;
    const auto* const number = std::get_if<std::int64_t>(&label.value);
    labels.push_back({std::string(tag.key), number != nullptr
                                                ? absl::StrCat(*number)
                                                : std::get<std::string>(label.value)});
  });
  return labels;
}

}  // namespace strobe::internal
