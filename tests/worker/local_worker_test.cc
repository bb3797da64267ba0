#include "strobe/worker/local_worker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "strobe/worker/worker_process.h"

namespace strobe::internal {
namespace {

void GiveServe(int arguments_count) {
  char name[] = "program";
  std::string argument = kWorkerArgument;
  char* arguments[] = {name, argument.data(), nullptr};
  RunWorkerIfAsked(
      arguments_count, arguments, [](const WorkerSocket& socket, const SharedArea* own_area) {
        return socket.descriptor() == kWorkerSocket && own_area == nullptr ? ServeEnd::kServed
                                                                           : ServeEnd::kSlow;
      });
}

TEST(LocalWorker, AWorkerServesAndExits) {
  EXPECT_EXIT(GiveServe(2), ::testing::ExitedWithCode(0), "");
}

TEST(LocalWorker, AProgramKeepsWhatItCouldServeWith) {
  EXPECT_FALSE(ServeHere());
  const auto child = [] {
    GiveServe(1);
    std::exit(ServeHere() && ServeHere()(WorkerSocket(), nullptr) == ServeEnd::kSlow ? 7 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace strobe::internal
