// The conformance suite of Encoder. An encoder of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyEncoder, EncoderConformance, MyEncoder);
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "strobe/encode/encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

template <class E>
class EncoderConformance : public ::testing::Test {
 protected:
  static_assert(Encoder<E>);

  static std::string Encode(E& encoder, const SampleProfile& sample) {
    absl::StatusOr<std::string> bytes = encoder.Encode(sample.profile, sample.symbols);
    EXPECT_TRUE(bytes.ok()) << sample.name << ": " << bytes.status().ToString();
    return bytes.ok() ? *std::move(bytes) : std::string();
  }
};
TYPED_TEST_SUITE_P(EncoderConformance);

// An encoder accepts every profile whose indices are in range, even an empty one, and symbols
// without frames.
TYPED_TEST_P(EncoderConformance, AcceptsEveryProfile) {
  TypeParam encoder;
  for (const SampleProfile& sample : SampleProfiles())
    EXPECT_FALSE(this->Encode(encoder, sample).empty()) << sample.name;
  EXPECT_TRUE(encoder.Encode(Profile{}, Symbols{}).ok()) << "a default-constructed profile";
}

// Equal input gives equal bytes: for copies at other addresses, with another encoder, and whatever
// the encoder has encoded before.
TYPED_TEST_P(EncoderConformance, EqualProfilesGiveEqualBytes) {
  TypeParam used;
  for (const SampleProfile& sample : SampleProfiles()) {
    const std::string first = this->Encode(used, sample);
    const SampleProfile copy = sample;
    TypeParam fresh;
    EXPECT_EQ(first, this->Encode(fresh, copy)) << sample.name;
    EXPECT_EQ(first, this->Encode(used, copy)) << sample.name;
  }
}

// The bytes depend on the values.
TYPED_TEST_P(EncoderConformance, DifferentValuesGiveDifferentBytes) {
  TypeParam encoder;
  SampleProfile sample = SmallProfile();
  const std::string before = this->Encode(encoder, sample);
  for (std::size_t i = 0; i < sample.profile.value_types.size(); ++i) sample.profile.values[i] *= 2;
  EXPECT_NE(before, this->Encode(encoder, sample));
}

// Encoding does not change its input.
TYPED_TEST_P(EncoderConformance, LeavesTheProfileAlone) {
  TypeParam encoder;
  const SampleProfile sample = SmallProfile();
  const SampleProfile copy = sample;
  this->Encode(encoder, sample);
  EXPECT_EQ(sample.profile.values, copy.profile.values);
  EXPECT_EQ(sample.profile.frames, copy.profile.frames);
  EXPECT_EQ(sample.profile.modules, copy.profile.modules);
}

// kFileSuffix can end a file name, and kContentType is a media type.
TYPED_TEST_P(EncoderConformance, NamesItsFormat) {
  const std::string_view suffix = TypeParam::kFileSuffix;
  const std::string_view content_type = TypeParam::kContentType;
  EXPECT_TRUE(suffix.starts_with('.')) << suffix;
  EXPECT_EQ(suffix.find('/'), std::string_view::npos) << suffix;
  EXPECT_NE(content_type.find('/'), std::string_view::npos) << content_type;
}

REGISTER_TYPED_TEST_SUITE_P(EncoderConformance, AcceptsEveryProfile, EqualProfilesGiveEqualBytes,
                            DifferentValuesGiveDifferentBytes, LeavesTheProfileAlone,
                            NamesItsFormat);

}  // namespace strobe::testing
