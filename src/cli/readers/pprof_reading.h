// PprofReading: the parts of one pprof file, as they come, and the profile that they make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "id_numbers.h"
#include "input.h"
#include "profile/profile_builder.h"

namespace strobe::internal {

inline absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a pprof profile, or a damaged one: ", what));
}

// What a file mapped from `path` is; the first one is the program.
ModuleKind KindOfModule(std::string_view path, bool is_first);

// A function and a mapping as the file has them. Their strings may come later.
struct RawFunction {
  std::uint64_t name = 0, system_name = 0, file = 0, line = 0;
  bool is_defined = false;
};
struct RawMapping {
  Module module;
  std::uint64_t path = 0, build_id = 0;
  bool is_defined = false;
};
struct RawType {
  std::uint64_t type = 0, unit = 0;
};
// What the labels of a row in the file are to the profile.
struct RowLabels {
  std::uint32_t set = 0;
  std::int64_t time_ns = 0;
};

// Reads the parts in any order. Numbers of functions, modules and frames are given when their ids
// are first seen.
class PprofReading {
 public:
  absl::Status Read(Input& input);
  // What was read. To be called once.
  absl::StatusOr<LoadedProfile> Finish();

 private:
  absl::Status Part(std::uint32_t field, std::uint64_t number, std::string_view content);
  bool Sample(std::string_view bytes);
  bool Location(std::string_view bytes);
  bool Line(std::string_view bytes);
  bool Function(std::string_view bytes);
  bool Mapping(std::string_view bytes);
  static bool Type(std::string_view bytes, RawType& type);

  bool FinishTypes();
  bool FinishModules();
  bool FinishFunctions();
  bool FinishFrames();
  bool ReadLabels(std::string_view bytes, RowLabels& labels);
  bool FinishRows();

  [[nodiscard]] std::string_view String(std::uint64_t index) {
    if (index < strings_.size()) return strings_[index];
    has_strings_ = false;
    return {};
  }

  ProfileBuilder builder_;
  std::vector<std::string> strings_;
  std::vector<RawType> types_;
  RawType period_type_;
  std::uint64_t default_type_ = 0, drop_frames_ = 0, keep_frames_ = 0;
  std::vector<std::uint64_t> comments_;
  IdNumbers locations_, functions_, mappings_;
  std::vector<RawFunction> raw_functions_;      // by number
  std::vector<RawMapping> raw_mappings_;        // by number
  std::optional<std::uint32_t> first_mapping_;  // the number of the file's first
  std::vector<bool> is_frame_defined_;          // by number
  // The labels of rows as the file has them, by their number in the builder's rows.
  absl::flat_hash_map<std::string, std::uint32_t> label_numbers_;
  std::vector<std::string_view> raw_labels_;
  bool has_strings_ = true;
  bool has_columns_ = false;
  std::size_t columns_ = 0;  // of the samples
  // Of the message being read.
  std::vector<std::uint32_t> frames_;
  std::vector<std::int64_t> values_;
  std::vector<SourceLine> lines_;
  std::string labels_;
};

}  // namespace strobe::internal
