// What the tests of backends share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fixture.h"
#include "gtest/gtest.h"
#include "strobe/http/http_backend.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::testing {

inline std::string HeaderOf(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (header.name == name) return header.value;
  }
  return "";
}

inline std::vector<HttpMessage> Build(
    const absl::StatusOr<std::shared_ptr<const HttpBackend>>& backend,
    const ExportRequest& request) {
  EXPECT_TRUE(backend.ok()) << backend.status();
  auto messages = (*backend)->Build(request);
  EXPECT_TRUE(messages.ok()) << messages.status();
  EXPECT_EQ(*messages, *(*backend)->Build(request)) << "equal profiles give equal messages";
  return *std::move(messages);
}

// What is between two texts.
inline std::string Between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  if (from == std::string_view::npos) return "";
  const std::size_t start = from + begin.size();
  return std::string(text.substr(start, text.find(end, start) - start));
}

inline std::vector<std::string> Types(const PprofProfile& profile) {
  std::vector<std::string> types;
  for (const auto& [type, unit] : profile.sample_types) types.push_back(type + "/" + unit);
  return types;
}

inline ExportRequest RequestOf(const Profile& profile, const Symbols& symbols) {
  return {
      .bytes = "", .file_suffix = "", .content_type = "", .profile = profile, .symbols = symbols};
}

// A backend that takes profiles must refuse those that no encoder takes.
inline void ExpectRefusesWrongProfiles(const HttpBackend& backend) {
  EncodedProfile wrong;
  wrong.profile.samples.back().labels = 99;
  const absl::Status status = backend.Build(RequestOf(wrong.profile, wrong.symbols)).status();
  EXPECT_TRUE(RefusesProfile(status)) << status;
}

}  // namespace strobe::testing
