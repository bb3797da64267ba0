// PprofBytes: the bytes of a pprof file, field by field, also of one that is damaged.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../src/encode/pprof/pprof_fields.h"
#include "../../src/encode/proto_writer.h"

namespace strobe::internal {

class PprofBytes {
 public:
  // A number of a field, also 0.
  struct Number {
    std::uint32_t field;
    std::uint64_t number;
  };
  using Numbers = std::initializer_list<Number>;

  // A message of numbers.
  static std::string Of(Numbers numbers) {
    ProtoWriter writer;
    for (const auto& [field, number] : numbers) writer.Present(field, number);
    return writer.Take();
  }

  // Each adds a part of the profile. Texts are given by their strings' indices.
  PprofBytes& Add(std::uint32_t field, Numbers numbers) { return AddBytes(field, Of(numbers)); }
  PprofBytes& AddBytes(std::uint32_t field, std::string_view content) {
    writer_.Message(field, content);
    return *this;
  }
  PprofBytes& AddNumber(std::uint32_t field, std::uint64_t number) {
    writer_.Present(field, number);
    return *this;
  }
  PprofBytes& Strings(std::initializer_list<std::string_view> strings) {
    for (const std::string_view text : strings) writer_.Message(kStringTable, text);
    return *this;
  }
  PprofBytes& Type(std::uint64_t type, std::uint64_t unit) {
    return Add(kSampleType, {{1, type}, {2, unit}});
  }
  // `labels` are messages; see Of.
  PprofBytes& Sample(std::initializer_list<std::uint64_t> locations,
                     std::initializer_list<std::int64_t> values,
                     std::initializer_list<std::string> labels = {}) {
    ProtoWriter packed;
    ProtoWriter sample;
    for (const std::uint64_t location : locations) packed.Varint(location);
    sample.Bytes(1, packed.Take());
    for (const std::int64_t value : values) packed.Varint(static_cast<std::uint64_t>(value));
    sample.Bytes(2, packed.Take());
    for (const std::string& label : labels) sample.Message(3, label);
    return AddBytes(kSample, sample.Take());
  }
  // `lines` are the functions' ids and lines, innermost first.
  PprofBytes& Location(std::uint64_t id, std::uint64_t mapping, std::uint64_t address,
                       std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> lines) {
    ProtoWriter location;
    location.Present(1, id);
    location.Field(2, mapping);
    location.Field(3, address);
    for (const auto& [function, line] : lines) location.Message(4, Of({{1, function}, {2, line}}));
    return AddBytes(kLocation, location.Take());
  }
  PprofBytes& Function(std::uint64_t id, std::uint64_t name, std::uint64_t system_name) {
    return Add(kFunction, {{1, id}, {2, name}, {3, system_name}});
  }
  PprofBytes& Mapping(std::uint64_t id, std::uint64_t start, std::uint64_t limit,
                      std::uint64_t offset, std::uint64_t path, std::uint64_t build_id = 0) {
    return Add(kMapping, {{1, id}, {2, start}, {3, limit}, {4, offset}, {5, path}, {6, build_id}});
  }

  [[nodiscard]] std::string Take() { return writer_.Take(); }

 private:
  ProtoWriter writer_;
};

}  // namespace strobe::internal
