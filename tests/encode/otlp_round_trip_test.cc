// The encoder's bytes, read back without its code, against the profile: each sample's stack, lines,
// labels and value, in every value type.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "otlp_reader.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/profile_view.h"
#include "strobe/encode/short_name.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

// The values of one type, by a text of the sample's stack, from the leaf to the root, and labels.
using OtlpRows = std::map<std::string, std::int64_t>;

std::string LocationText(Address address, std::string_view path) {
  return absl::StrCat("\n", absl::Hex(address), " in ", std::string(path));
}
std::string LineText(std::string_view name, std::string_view system_name, std::string_view file,
                     std::int64_t start_line, std::int64_t line, std::int64_t column) {
  return absl::StrCat("\n  ", std::string(name), ", ", std::string(system_name), ", ",
                      std::string(file), ":", start_line, ", at ", line, ":", column);
}

OtlpRows RowsOf(const OtlpReader& read, const OtlpMessage& profile) {
  OtlpRows rows;
  for (const std::string& bytes : profile.All(2)) {
    const OtlpMessage sample(bytes);
    std::string text;
    for (const std::int64_t number : read.Table(7, sample.Number(1)).Packed(1)) {
      const OtlpMessage& location = read.Table(2, number);
      const std::int64_t mapping = location.Number(1);
      text += LocationText(static_cast<Address>(location.Number(2)),
                           mapping == 0 ? "" : read.Text(read.Table(1, mapping).Number(4)));
      for (const std::string& line_bytes : location.All(3)) {
        const OtlpMessage line(line_bytes);
        const OtlpMessage& function = read.Table(3, line.Number(1));
        text += LineText(read.Text(function.Number(1)), read.Text(function.Number(2)),
                         read.Text(function.Number(3)), function.Number(4), line.Number(2),
                         line.Number(3));
      }
    }
    std::map<std::string, std::string> labels;
    for (const std::int64_t index : sample.Packed(2)) {
      const OtlpMessage& attribute = read.Table(6, index);
      const OtlpMessage value = attribute.Child(2);
      labels[read.Text(attribute.Number(1))] =
          value.All(3).empty() ? "text " + value.Text(1) : "number " + value.Text(3);
    }
    for (const auto& [key, value] : labels) absl::StrAppend(&text, "\n", key, " = ", value);
    EXPECT_EQ(sample.Packed(4).size(), 1U);
    rows[text] += sample.Packed(4).at(0);
  }
  return rows;
}

std::string StackText(const ProfileView& view, std::size_t sample) {
  std::string text;
  const Profile& profile = view.profile();
  view.VisitStack(sample, [&](std::uint32_t frame) {
    const Frame& place = profile.frames[frame];
    const std::uint32_t module = view.ModuleOf(frame);
    text += LocationText(place.is_pseudo() ? 0 : place.address, module == ProfileView::kNone
                                                                    ? std::string_view()
                                                                    : profile.modules[module].path);
    view.VisitLines(frame, [&](const SourceLine& source) {
      const FunctionName function = view.function(source.function);
      text += LineText(ShortFunctionName(function.name), function.name, function.file,
                       function.line, source.line, source.column);
    });
  });
  return text;
}

OtlpRows RowsOf(const ProfileView& view, std::size_t column) {
  const Profile& profile = view.profile();
  OtlpRows rows;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[column];
    if (value == 0) continue;
    std::map<std::string, std::string> labels;
    for (const Label& label : profile.label_sets[profile.samples[i].labels].labels()) {
      const std::string key = label.key == kThreadIdLabel     ? "thread.id"
                              : label.key == kThreadNameLabel ? "thread.name"
                                                              : label.key;
      const auto* const number = std::get_if<std::int64_t>(&label.value);
      labels[key] = number == nullptr ? "text " + std::get<std::string>(label.value)
                                      : absl::StrCat("number ", *number);
    }
    std::string text = StackText(view, i);
    for (const auto& [key, text_value] : labels)
      absl::StrAppend(&text, "\n", key, " = ", text_value);
    rows[text] += value;
  }
  return rows;
}

TEST(OtlpRoundTripTest, WhatIsReadBackIsTheProfile) {
  for (const SampleProfile& sample : SampleProfiles()) {
    SCOPED_TRACE(sample.name);
    const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
    ASSERT_TRUE(view.ok()) << view.status();
    const OtlpReader read(sample);
    const std::vector<std::string> profiles = read.Profiles();
    ASSERT_EQ(profiles.size(), sample.profile.value_types.size());
    for (std::size_t column = 0; column < profiles.size(); ++column) {
      const OtlpMessage profile(profiles[column]);
      EXPECT_EQ(read.Text(profile.Child(1).Number(1)), sample.profile.value_types[column].type);
      EXPECT_EQ(read.Text(profile.Child(1).Number(2)), sample.profile.value_types[column].unit);
      EXPECT_EQ(profile.Number(3), sample.profile.time_ns);
      EXPECT_EQ(profile.Number(4), sample.profile.duration_ns);
      EXPECT_EQ(RowsOf(read, profile), RowsOf(*view, column));
    }
  }
}

}  // namespace
}  // namespace strobe::testing
