#include "strobe/runtime/control/current_session.h"

#include <cstdint>
#include <memory>

#include "../hanging_worker.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::HangingWorker;

class FakeSession {
 public:
  using Worker = HangingWorker;
  [[nodiscard]] const std::shared_ptr<Worker>& worker() const { return worker_; }

 private:
  std::shared_ptr<Worker> worker_ = std::make_shared<Worker>();
};

class CurrentSessionTest : public ::testing::Test {
 protected:
  void Begin() {
    ASSERT_TRUE(current_.MakeRoom().ok());
    current_.Set(std::make_shared<FakeSession>());
  }
  std::uint64_t Exports() {
    Stats stats;
    current_.AddExportsTo(stats);
    return stats.exports;
  }

  CollectorCounters counters_;
  CurrentSession<FakeSession> current_{counters_};
};

TEST_F(CurrentSessionTest, ExportsCountOnceBeforeAndAfterTheEnd) {
  EXPECT_EQ(Exports(), 0u);
  Begin();
  EXPECT_EQ(Exports(), 1u);
  current_.Clear();
  EXPECT_EQ(Exports(), 1u);
  Begin();
  EXPECT_EQ(Exports(), 2u);
}

TEST_F(CurrentSessionTest, AUserKeepsTheSessionBeyondItsEnd) {
  Begin();
  const auto session = current_.Get();
  current_.Clear();
  EXPECT_EQ(current_.Get(), nullptr);
  EXPECT_EQ(session.use_count(), 1);
}

TEST_F(CurrentSessionTest, NoSessionBeginsWhileTooManyExportersHang) {
  for (std::size_t i = 0; i < kMaxAbandonedExporters; ++i) {
    Begin();
    current_.Clear();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(current_.MakeRoom()));
}

TEST_F(CurrentSessionTest, TheDiagnosisKnowsWhatStartReturned) {
  DiagnosisFacts facts;
  current_.AddTo(facts);
  EXPECT_FALSE(facts.was_started);
  current_.NoteStart(absl::InvalidArgumentError("max_frames is 0"));
  current_.AddTo(facts);
  EXPECT_TRUE(facts.was_started);
  EXPECT_FALSE(facts.is_running);
  EXPECT_EQ(facts.last_start.message(), "max_frames is 0");
  Begin();
  current_.NoteStart(absl::OkStatus());
  current_.AddTo(facts);
  EXPECT_TRUE(facts.is_running);
  EXPECT_TRUE(facts.last_start.ok());
}

}  // namespace
}  // namespace strobe::internal
