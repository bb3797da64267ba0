// OtlpReader: reads an ExportProfilesServiceRequest back. Shares no code with the encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

// A message whose meaning the test knows: the values of each field, in order.
class OtlpMessage {
 public:
  explicit OtlpMessage(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t tag = Varint(bytes);
      std::string& value = fields_[tag >> 3].emplace_back();
      if ((tag & 7) == 2) {
        value = Cut(bytes, Varint(bytes));
      } else if ((tag & 7) == 1) {
        std::uint64_t number = 0;
        const std::string fixed = Cut(bytes, 8);
        for (std::size_t i = fixed.size(); i-- > 0;)
          number = number << 8 | static_cast<unsigned char>(fixed[i]);
        value = std::to_string(number);
      } else {
        EXPECT_EQ(tag & 7, 0U) << "wire type";
        value = std::to_string(static_cast<std::int64_t>(Varint(bytes)));
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>& All(int field) const {
    static const std::vector<std::string>* const kNothing = new std::vector<std::string>;
    const auto found = fields_.find(static_cast<std::uint64_t>(field));
    return found == fields_.end() ? *kNothing : found->second;
  }
  [[nodiscard]] std::string Text(int field) const {
    return All(field).empty() ? "" : All(field).front();
  }
  [[nodiscard]] std::int64_t Number(int field) const {
    return All(field).empty() ? 0 : std::stoll(All(field).front());
  }
  [[nodiscard]] OtlpMessage Child(int field, std::size_t index = 0) const {
    EXPECT_LT(index, All(field).size()) << "field " << field;
    return OtlpMessage(index < All(field).size() ? All(field)[index] : "");
  }
  [[nodiscard]] std::vector<std::int64_t> Packed(int field) const {
    std::vector<std::int64_t> numbers;
    const std::string text = Text(field);
    for (std::string_view rest = text; !rest.empty();)
      numbers.push_back(static_cast<std::int64_t>(Varint(rest)));
    return numbers;
  }

 private:
  static std::uint64_t Varint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  static std::string Cut(std::string_view& bytes, std::size_t count) {
    EXPECT_LE(count, bytes.size());
    const std::string cut(bytes.substr(0, count));
    bytes.remove_prefix(cut.size());
    return cut;
  }

  std::map<std::uint64_t, std::vector<std::string>> fields_;
};

// Field numbers stand here once more, after the schema, so that the test does not repeat the
// encoder's mistakes.
class OtlpReader {
 public:
  explicit OtlpReader(const SampleProfile& sample, const OtlpOptions& options = {})
      : request_(OtlpEncoder(options).Encode(sample.profile, sample.symbols).value_or("")),
        dictionary_(request_.Child(2)) {
    for (const int table : {1, 2, 3, 4, 6, 7}) {
      for (const std::string& entry : Entries(table)) tables_[table].emplace_back(entry);
    }
  }

  [[nodiscard]] OtlpMessage Resource() const { return request_.Child(1).Child(1); }
  [[nodiscard]] std::vector<std::string> Profiles() const {
    return request_.Child(1).Child(2).All(2);
  }
  [[nodiscard]] const OtlpMessage& Table(int field, std::int64_t index) const {
    return tables_.at(field).at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] const std::vector<std::string>& Entries(int field) const {
    return dictionary_.All(field);
  }
  [[nodiscard]] std::string Text(std::int64_t index) const {
    return Entries(5).at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] std::map<std::string, std::string> Attributes(
      const std::vector<std::int64_t>& indices) const {
    std::map<std::string, std::string> attributes;
    for (const std::int64_t index : indices) {
      const OtlpMessage& entry = Table(6, index);
      const OtlpMessage value = entry.Child(2);
      attributes[Text(entry.Number(1))] = value.All(1).empty() ? value.Text(3) : value.Text(1);
    }
    return attributes;
  }
  // The functions' names, leaf first.
  [[nodiscard]] std::vector<std::string> Stack(std::int64_t index) const {
    std::vector<std::string> names;
    for (const std::int64_t number : Table(7, index).Packed(1)) {
      for (const std::string& line : Table(2, number).All(3))
        names.push_back(Text(Table(3, OtlpMessage(line).Number(1)).Number(1)));
    }
    return names;
  }

 private:
  OtlpMessage request_;
  OtlpMessage dictionary_;
  std::map<int, std::vector<OtlpMessage>> tables_;  // but for the strings
};

}  // namespace strobe::testing
