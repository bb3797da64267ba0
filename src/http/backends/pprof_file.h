// PprofFile: an encoded pprof profile, cut into parts for servers that want one value type, or one
// thread, in each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace strobe::internal {

class ProtoReader;

// Knows only what it must: all other fields are copied as they are. A part has the locations,
// functions, mappings and strings that its samples need. Their ids are 1, 2, 3 and so on: Parca
// refuses others.
class PprofFile {
 public:
  // The longest message, and the longest that Read decompresses.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  struct ValueType {
    std::string_view type;
    std::string_view unit;
  };

  // A part: the columns with their new names, and the samples of some threads or of all.
  struct Part {
    std::vector<std::size_t> columns;
    std::vector<std::string> names = {};  // of the columns; empty keeps the name
    // Their names; an empty name is that of samples without one.
    std::optional<std::vector<std::string>> threads = {};
  };

  // `bytes` are gzipped or not. InvalidArgument if they are no profile.
  static absl::StatusOr<PprofFile> Read(std::string_view bytes);

  [[nodiscard]] std::vector<ValueType> value_types() const;
  // The thread names of the samples, distinct, sorted.
  [[nodiscard]] std::vector<std::string> Threads() const;
  // True if a sample of the part has a value.
  [[nodiscard]] bool HasSamples(const Part& part) const;
  // The part, gzipped.
  [[nodiscard]] absl::StatusOr<std::string> Write(const Part& part) const;

 private:
  // A message of a table: its fields but the ids, and what it refers to.
  struct Entry {
    std::uint64_t id = 0;
    std::string rest;
    std::vector<std::uint64_t> strings;
    // Of a location only.
    std::uint64_t mapping = 0;
    std::vector<std::pair<std::uint64_t, std::string>> lines;  // the function, and the line's rest
  };
  struct Sample {
    std::string rest;  // all fields but the values and the locations
    std::vector<std::int64_t> values;
    std::vector<std::uint64_t> locations;
    std::vector<std::uint64_t> strings;
    std::string_view thread;
  };
  class Used;

  bool Parse();
  bool ParseField(const ProtoReader& reader);
  bool ParseSample(std::string_view bytes, Sample& sample) const;
  bool ParseLabel(std::string_view bytes, Sample& sample) const;
  [[nodiscard]] bool Wants(const Part& part, const Sample& sample) const;
  [[nodiscard]] std::string_view String(std::uint64_t index) const {
    return index < strings_.size() ? strings_[index] : std::string_view();
  }

  std::string message_;  // what the views below point into
  std::vector<std::string_view> strings_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> types_;  // indices of strings
  std::vector<std::string_view> raw_samples_;
  std::vector<Sample> samples_;
  std::vector<Entry> mappings_;
  std::vector<Entry> locations_;
  std::vector<Entry> functions_;
  std::string rest_;                         // all other fields
  std::vector<std::uint64_t> rest_strings_;  // the strings that they refer to
};

}  // namespace strobe::internal
