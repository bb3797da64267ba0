#include "../../src/http/backends/pprof_file.h"

#include <string>
#include <vector>

#include "fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using testing::CheckPprof;
using ::testing::ElementsAre;
using testing::EncodedProfile;
using testing::Gunzip;
using testing::PprofProfile;
using testing::ReadPprof;

PprofProfile Read(const absl::StatusOr<std::string>& bytes) {
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const auto profile = ReadPprof(*bytes);
  EXPECT_TRUE(profile.has_value());
  EXPECT_EQ(CheckPprof(*profile), "");
  return *profile;
}

// Each sample as text: its stack and its values.
std::vector<std::string> Samples(const PprofProfile& profile) {
  std::vector<std::string> samples;
  for (const PprofProfile::Sample& sample : profile.samples) {
    std::string text;
    for (const std::string& name : profile.Stack(sample)) text += name + ";";
    for (const std::int64_t value : sample.values) text += " " + std::to_string(value);
    samples.push_back(text);
  }
  return samples;
}

TEST(PprofFile, APartWithAllIsTheWholeProfile) {
  const std::string bytes =
      *PprofEncoder().Encode(testing::SmallProfile().profile, testing::SmallProfile().symbols);
  const PprofFile file = *PprofFile::Read(bytes);
  PprofFile::Part all;
  for (std::size_t i = 0; i < file.value_types().size(); ++i) all.columns.push_back(i);
  const PprofProfile whole = Read(bytes);
  const PprofProfile part = Read(file.Write(all));
  // A sample whose values are all 0 says nothing.
  std::vector<std::string> samples = Samples(whole);
  std::erase_if(samples, [](const std::string& text) { return text.ends_with(" 0 0 0"); });
  EXPECT_EQ(Samples(part), samples);
  EXPECT_EQ(part.sample_types, whole.sample_types);
  EXPECT_EQ(part.comments, whole.comments);
  EXPECT_EQ(part.time_ns, whole.time_ns);
  EXPECT_EQ(part.duration_ns, whole.duration_ns);
  EXPECT_EQ(part.period, whole.period);
  EXPECT_EQ(part.period_type, whole.period_type);
  // Raw bytes are read as well, and equal parts are equal.
  EXPECT_EQ(*PprofFile::Read(*Gunzip(bytes))->Write(all), *file.Write(all));
}

TEST(PprofFile, APartHasItsColumnsAndItsThreads) {
  const EncodedProfile encoded;
  const PprofFile file = *PprofFile::Read(encoded.bytes);
  EXPECT_THAT(file.Threads(), ElementsAre("main", "worker"));
  const PprofProfile wall = Read(file.Write({.columns = {2}, .names = {"wall-time"}}));
  ASSERT_EQ(wall.sample_types.size(), 1u);
  EXPECT_EQ(wall.sample_types[0].type, "wall-time");
  EXPECT_EQ(wall.sample_types[0].unit, "nanoseconds");
  EXPECT_EQ(wall.default_sample_type, "wall-time");
  ASSERT_EQ(wall.samples.size(), 1u) << "the other has no wall time";
  EXPECT_THAT(wall.samples[0].values, ElementsAre(50'000'000));
  const PprofProfile main = Read(file.Write({.columns = {0, 1}, .threads = {{"main"}}}));
  ASSERT_EQ(main.samples.size(), 1u);
  EXPECT_THAT(main.samples[0].values, ElementsAre(3, 30'000'000));
  EXPECT_EQ(main.locations.size(), 1u) << "only what its samples need";
  const PprofProfile worker = Read(file.Write({.columns = {0}, .threads = {{"worker"}}}));
  for (std::size_t i = 0; i < worker.locations.size(); ++i)
    EXPECT_EQ(worker.locations[i].id, i + 1) << "Parca refuses other ids";
  for (std::size_t i = 0; i < worker.functions.size(); ++i)
    EXPECT_EQ(worker.functions[i].id, i + 1);
  EXPECT_TRUE(file.HasSamples({.columns = {0}, .threads = {{"main"}}}));
  EXPECT_FALSE(file.HasSamples({.columns = {2}, .threads = {{"main"}}}));
  EXPECT_FALSE(file.HasSamples({.columns = {0}, .threads = {{"other"}}}));
}

TEST(PprofFile, WhatIsNoProfileIsRefused) {
  const EncodedProfile encoded;
  const std::string raw = *Gunzip(encoded.bytes);
  for (const std::string& bytes :
       {std::string("hello"), std::string("\x1f\x8bhello"), encoded.bytes.substr(0, 40),
        encoded.bytes.substr(0, encoded.bytes.size() - 9), std::string("\xFF\xFF\xFF"),
        raw.substr(0, raw.size() / 2), std::string()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PprofFile::Read(bytes).status())) << bytes.size();
  }
  // No byte that is changed makes it crash.
  for (std::size_t i = 0; i < raw.size(); ++i) {
    for (const char mask : {'\x01', '\x80', '\xFF'}) {
      std::string damaged = raw;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      const auto file = PprofFile::Read(damaged);
      if (!file.ok() || file->value_types().empty()) continue;
      static_cast<void>(file->Write({.columns = {0}}));
    }
  }
}

}  // namespace
}  // namespace strobe::internal
