#include "strobe/c.h"

#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/core/label_set.h"
#include "strobe/platform/native.h"
#include "strobe/scoped_labels.h"

namespace strobe {
namespace {

std::string LastStatus() {
  std::array<char, STROBE_STATUS_BYTES> text{};
  strobe_last_status(text.data(), text.size());
  return text.data();
}

TEST(C, LabelsNest) {
  ASSERT_EQ(strobe_push_text_label("endpoint", "/pay"), STROBE_OK);
  ASSERT_EQ(strobe_push_number_label("shard", -7), STROBE_OK);
  ASSERT_EQ(strobe_push_text_label("endpoint", "/refund"), STROBE_OK);
  EXPECT_EQ(CurrentLabels().set().Text("endpoint"), "/refund");
  EXPECT_EQ(CurrentLabels().set().Number("shard"), -7);
  EXPECT_EQ(strobe_pop_label(), STROBE_OK);
  EXPECT_EQ(CurrentLabels().set().Text("endpoint"), "/pay");
  EXPECT_EQ(strobe_pop_label(), STROBE_OK);
  EXPECT_EQ(strobe_pop_label(), STROBE_OK);
  EXPECT_TRUE(CurrentLabels().set().empty());
  EXPECT_EQ(strobe_pop_label(), STROBE_FAILED_PRECONDITION);
  EXPECT_NE(LastStatus(), "");
}

TEST(C, ZonesNestAndKeepLabels) {
  ASSERT_EQ(strobe_push_zone("request"), STROBE_OK);
  ASSERT_EQ(strobe_push_text_label("endpoint", "/pay"), STROBE_OK);
  ASSERT_EQ(strobe_push_zone("parse"), STROBE_OK);
  EXPECT_EQ(CurrentLabels().set().Text(kZoneLabel), "request;parse");
  EXPECT_EQ(CurrentLabels().set().Text("endpoint"), "/pay");
  EXPECT_EQ(strobe_pop_label(), STROBE_OK);
  EXPECT_EQ(CurrentLabels().set().Text(kZoneLabel), "request");
  EXPECT_EQ(strobe_pop_label(), STROBE_OK);
  EXPECT_EQ(strobe_pop_label(), STROBE_OK);
  EXPECT_TRUE(CurrentLabels().set().empty());
  EXPECT_EQ(strobe_push_zone(nullptr), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_push_zone(""), STROBE_INVALID_ARGUMENT);
}

TEST(C, MoreLabelsThanTheLimitAreRefusedAndChangeNothing) {
  for (int i = 0; i < STROBE_MAX_LABEL_DEPTH; ++i)
    ASSERT_EQ(strobe_push_number_label("depth", i), STROBE_OK) << i;
  EXPECT_EQ(strobe_push_number_label("depth", -1), STROBE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(CurrentLabels().set().Number("depth"), STROBE_MAX_LABEL_DEPTH - 1);
  for (int i = 0; i < STROBE_MAX_LABEL_DEPTH; ++i) ASSERT_EQ(strobe_pop_label(), STROBE_OK) << i;
  EXPECT_TRUE(CurrentLabels().set().empty());
}

TEST(C, WrongArgumentsAreErrors) {
  EXPECT_EQ(strobe_register_thread(nullptr), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_push_text_label(nullptr, "text"), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_push_text_label("", "text"), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_push_text_label("key", nullptr), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_push_number_label(nullptr, 1), STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(CurrentLabels().set().empty());
}

TEST(C, WrongOptionsAreNamed) {
  for (const char* text : {"no_such.option=1", "exporter.directory", "=", "exporter.period_s=soon",
                           "exporter.period_s=1\nexporter.directory=", "enabled=maybe",
                           " exporter.period_s=1", "threads.ring_bytes=4096"}) {
    EXPECT_EQ(strobe_start(text), STROBE_INVALID_ARGUMENT) << text;
    EXPECT_NE(LastStatus(), "") << text;
  }
  strobe_start("exporter.period_s=1\nexporter.directory=");
  EXPECT_EQ(LastStatus(), "exporter.directory is \"\": accepted is a path of 1 to 4095 bytes");
}

TEST(C, TheLastStatusFitsItsBuffer) {
  const std::string line(10'000, 'x');
  EXPECT_EQ(strobe_start(line.c_str()), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(LastStatus().size(), STROBE_STATUS_BYTES - 1u);
  std::array<char, 4> small{'?', '?', '?', '?'};
  EXPECT_EQ(strobe_last_status(small.data(), 3), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(small.data()), "st");
  EXPECT_EQ(small[3], '?');
  EXPECT_EQ(strobe_last_status(small.data(), 0), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_last_status(nullptr, 3), STROBE_INVALID_ARGUMENT);
  std::thread([] { EXPECT_EQ(strobe_last_status(nullptr, 0), STROBE_OK); }).join();
}

TEST(C, ASessionByTheOptionsOfTheCode) {
  const testing::TemporaryDirectory directory;
  testing::SetVariable("STROBE_OUTPUT_DIRECTORY", (directory.path() / "elsewhere").string());
  const std::string options =
      "\nexporter.directory=" + (directory.path() / "a=b").string() + "\nsymbols.mode=none\n\n";
  const int started = strobe_start(options.c_str());
  testing::UnsetVariable("STROBE_OUTPUT_DIRECTORY");
  if (!NativePlatform::Available().ok()) {
    EXPECT_EQ(started, STROBE_UNIMPLEMENTED);
    GTEST_SKIP() << LastStatus();
  }
  ASSERT_EQ(started, STROBE_OK) << LastStatus();
  EXPECT_EQ(LastStatus(), "");
  EXPECT_EQ(strobe_start(nullptr), STROBE_FAILED_PRECONDITION);
  EXPECT_EQ(strobe_start(options.c_str()), STROBE_FAILED_PRECONDITION);
  EXPECT_EQ(strobe_unregister_thread(), STROBE_FAILED_PRECONDITION);
  EXPECT_EQ(strobe_register_thread("main"), STROBE_OK);
  EXPECT_EQ(strobe_register_thread("again"), STROBE_ALREADY_EXISTS);
  std::thread([] {
    EXPECT_EQ(strobe_unregister_thread(), STROBE_FAILED_PRECONDITION);
    EXPECT_EQ(strobe_register_thread("worker"), STROBE_OK);
    EXPECT_EQ(strobe_unregister_thread(), STROBE_OK);
  }).join();
  EXPECT_EQ(strobe_unregister_thread(), STROBE_OK);
  EXPECT_EQ(strobe_unregister_thread(), STROBE_FAILED_PRECONDITION);
  EXPECT_EQ(strobe_flush(), STROBE_OK) << LastStatus();
  EXPECT_EQ(strobe_stop(), STROBE_OK) << LastStatus();
  EXPECT_EQ(strobe_stop(), STROBE_FAILED_PRECONDITION);
  EXPECT_EQ(strobe_flush(), STROBE_FAILED_PRECONDITION);
  EXPECT_FALSE(std::filesystem::is_empty(directory.path() / "a=b"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "elsewhere"));
  // With the options that the profiler has, another session.
  EXPECT_EQ(strobe_start(nullptr), STROBE_OK) << LastStatus();
  EXPECT_EQ(strobe_stop(), STROBE_OK) << LastStatus();
}

}  // namespace
}  // namespace strobe
