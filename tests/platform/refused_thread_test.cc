#include "strobe/platform/refused_thread.h"

#include <cerrno>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

struct Thread {
  [[nodiscard]] bool IsRunning() const { return is_running; }
  [[nodiscard]] int error() const { return 0; }
  bool is_running = false;
};

TEST(RefusedThread, SaysWhatForAndWhy) {
  const absl::Status status = RefusedThread("the export", EAGAIN);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the export"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Resource temporarily unavailable"));
}

TEST(RefusedThread, WithoutAReasonMemoryHasRunOut) {
  EXPECT_TRUE(StatusOfThread("the export", Thread{.is_running = true}).ok());
  EXPECT_EQ(StatusOfThread("the export", Thread{}), RefusedThread("the export", ENOMEM));
}

}  // namespace
}  // namespace strobe::internal
