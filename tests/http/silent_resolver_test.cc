// A name server that does not answer. This program's getaddrinfo takes the place of the system's.
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "strobe/http/native_http.h"
#include "support/until_seen.h"

namespace {

std::atomic<bool> is_answering{false};
std::atomic<int> questions{0};
std::atomic<int> answers{0};

}  // namespace

extern "C" int getaddrinfo(const char* /*name*/, const char* /*service*/,
                           const addrinfo* /*wanted*/, addrinfo** /*found*/) {
  constexpr int kMostLooks = 60'000;
  ++questions;
  for (int i = 0; i < kMostLooks && !is_answering; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ++answers;
  return EAI_AGAIN;
}

namespace strobe {
namespace {

TEST(SilentResolver, HoldsNobodyBeyondTheDeadline) {
  is_answering = false;
  questions = answers = 0;
  std::atomic<std::int64_t> end_ns{INT64_MAX};
  std::thread deadline([&] {
    testing::WaitUntil([] { return questions > 0; });
    end_ns = 0;
  });
  const auto response =
      MakeNativeHttpClient({})->Post({.url = "http://silent.example/"}, ExportDeadline(end_ns));
  deadline.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(response.status())) << response.status();
  EXPECT_EQ(answers, 0) << "the question is still open";
  is_answering = true;
  testing::WaitUntil([] { return answers == questions; });
}

}  // namespace
}  // namespace strobe
