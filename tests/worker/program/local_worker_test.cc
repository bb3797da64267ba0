#include "strobe/worker/program/local_worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "strobe/platform/linux/descriptor.h"
#include "strobe/worker/program/worker_process.h"

namespace strobe::internal {
namespace {

// Of what stands in for the socket in the test.
FileIdentity Null() { return FileIdentity::Of(Descriptor(open("/dev/null", O_RDWR)).get()); }

void GiveServe(int arguments_count) {
  if (arguments_count == 2) dup2(Descriptor(open("/dev/null", O_RDWR)).get(), kWorkerSocket);
  char name[] = "program";
  std::string argument = kWorkerArgument;
  char* arguments[] = {name, argument.data(), nullptr};
  RunWorkerIfAsked(arguments_count, arguments,
                   [](const WorkerSocket& socket, const SharedArea* own_area) {
                     return FileIdentity::Of(socket.descriptor()) == Null() && own_area == nullptr
                                ? ServeEnd::kServed
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
