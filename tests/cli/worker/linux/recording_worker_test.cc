#include "../../../../src/cli/worker/linux/recording_worker.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/worker/shared/listening_socket.h"

namespace strobe::internal {
namespace {

TEST(RecordingWorkerTest, ProgramsMayConnectBeforeItServesAndUntilItsEnd) {
  const testing::TemporaryDirectory folder;
  RecordingWorker worker(folder.path().string());
  ASSERT_FALSE(worker.path().empty());
  EXPECT_TRUE(ConnectToWorker(worker.path()).ok());
  worker.Begin();
  EXPECT_TRUE(ConnectToWorker(worker.path()).ok());
  worker.End();
  EXPECT_FALSE(ConnectToWorker(worker.path()).ok());
  worker.End();  // does nothing
}

TEST(RecordingWorkerTest, WithoutAFolderThereIsNone) {
  RecordingWorker worker("");
  EXPECT_TRUE(worker.path().empty());
  worker.Begin();
  worker.End();
  RecordingWorker elsewhere("/nonexistent");
  EXPECT_TRUE(elsewhere.path().empty());
}

}  // namespace
}  // namespace strobe::internal
