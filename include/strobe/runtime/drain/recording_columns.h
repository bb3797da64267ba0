// RecordingColumns: which value types a recording has, and which of them a viewer shows first.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/value_type.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct RecordingColumn {
  std::size_t index = 0;     // into the rows of the intake, and into all value types
  std::size_t provider = 0;  // the column's provider, as an index into the ProviderList
};
using RecordingColumns = std::vector<RecordingColumn>;

// The columns of the providers that are enabled.
template <class Providers>
RecordingColumns EnabledColumns(Providers& providers) {
  RecordingColumns columns;
  providers.ForEachEnabled([&](const auto& /*provider*/, auto index) {
    for (std::size_t i = Providers::FirstColumn(index); i < Providers::FirstColumn(index + 1); ++i)
      columns.push_back({i, index});
  });
  return columns;
}

// The columns of `enabled` whose value type has one of these names; all columns if there are no
// names. InvalidArgument for a name that no enabled column has.
absl::StatusOr<RecordingColumns> SelectColumns(const RecordingColumns& enabled,
                                               std::span<const ValueType> value_types,
                                               const std::vector<std::string>& names);

// What a viewer shows first, as an index into `columns`: the last column of the first provider,
// which stands after any count.
std::size_t DefaultColumn(const RecordingColumns& columns);

// The index of each column.
std::vector<std::size_t> IndicesOf(const RecordingColumns& columns);

// The value type of each column. `value_types` are all value types.
std::vector<ValueType> ValueTypesOf(const RecordingColumns& columns,
                                    std::span<const ValueType> value_types);

}  // namespace internal
}  // namespace strobe
