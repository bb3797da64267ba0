#include "strobe/runtime/drain/recording_columns.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {

absl::StatusOr<RecordingColumns> SelectColumns(const RecordingColumns& enabled,
                                               std::span<const ValueType> value_types,
                                               const std::vector<std::string>& names) {
  const auto name_of = [&](const RecordingColumn& column) {
    return value_types[column.index].type;
  };
  for (const std::string& name : names) {
    if (std::ranges::find(enabled, name, name_of) != enabled.end()) continue;
    std::string message = absl::StrCat("value_types: \"", name, "\" is not enabled; there are");
    const char* separator = " ";
    for (const RecordingColumn& column : enabled) {
      message += separator;
      message += name_of(column);
      separator = ", ";
    }
    return absl::InvalidArgumentError(message);
  }
  RecordingColumns columns = enabled;
  if (names.empty()) return columns;
  std::erase_if(columns, [&](const RecordingColumn& column) {
    return std::ranges::find(names, name_of(column)) == names.end();
  });
  return columns;
}

std::size_t DefaultColumn(const RecordingColumns& columns) {
  std::size_t last = 0;
  while (last + 1 < columns.size() && columns[last + 1].provider == columns[0].provider) ++last;
  return last;
}

std::vector<std::size_t> IndicesOf(const RecordingColumns& columns) {
  std::vector<std::size_t> indices;
  for (const RecordingColumn& column : columns) indices.push_back(column.index);
  return indices;
}

std::vector<ValueType> ValueTypesOf(const RecordingColumns& columns,
                                    std::span<const ValueType> value_types) {
  std::vector<ValueType> types;
  for (const RecordingColumn& column : columns) types.push_back(value_types[column.index]);
  return types;
}

}  // namespace strobe::internal
