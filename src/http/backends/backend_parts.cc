#include "backend_parts.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_format.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : ValidUtf8(text)) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += absl::StrFormat("\\u%04x", static_cast<unsigned char>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
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
