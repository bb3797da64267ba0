#include "../../../src/cli/worker/worker.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(ServeIfAskedTest, ReturnsUnlessItIsAWorker) {
  std::string name = "strobe";
  std::string argument = "top";
  char* arguments[] = {name.data(), argument.data(), nullptr};
  ServeIfAsked(2, arguments);
  ServeIfAsked(1, arguments);
  SUCCEED() << "a worker would have ended this process";
}

}  // namespace
}  // namespace strobe::internal
