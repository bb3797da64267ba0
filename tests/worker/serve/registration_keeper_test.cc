#include "strobe/worker/serve/registration_keeper.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "../manual_worker.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/testing/profile_check.h"

namespace strobe::internal {
namespace {

using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualSharing;
using testing::ManualWorker;
using testing::ManualWorkerTraits;
using testing::TheArea;

class RegistrationKeeperTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { sharing_ = new ManualSharing(2); }

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ManualWorker::used_chunks = 0;
    ASSERT_TRUE(registry_.Open().ok());
    session_.emplace(options_, registry_, code_, counters_, 23);
    registry_.BeginCollecting();
    session_->Begin();
  }
  void TearDown() override {
    Finish();
    ManualWorker::GiveBack(0);
    ManualWorker::GiveBack(1);
  }

  void Update() { keeper_.Update(*session_); }
  // The CPU time of all threads.
  std::int64_t Finish() {
    session_->End();
    session_->FinishAll();
    Profile profile;
    profile.value_types =
        ValueTypesOf(session_->columns(), ManualWorkerTraits::Providers::AllValueTypes());
    FillProfile(session_->TakePeriod().samples, profile);
    EXPECT_EQ(testing::CheckProfile(profile), "");
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) sum += profile.Values(i)[1];
    return sum;
  }
  static SharedRegistrationState StateOf(std::uint32_t index) {
    return TheArea().At(index)->state.load();
  }
  [[nodiscard]] Stats Now() {
    Stats stats;
    registry_.AddTo(stats);
    return stats;
  }
  [[nodiscard]] std::uint64_t Refused() { return Now().threads_refused; }

  static inline ManualSharing* sharing_ = nullptr;
  ProfilerOptions options_;
  CodeRegistry generated_;
  CollectorCounters counters_;
  ThreadRegistry<ManualWorkerTraits> registry_{1000, testing::kSharedRingBytes};
  LoadedCode<ManualWorkerTraits> code_{generated_, counters_.code};  // asks the registry at its end
  std::optional<Session<ManualWorkerTraits>> session_;
  RegistrationKeeper<ManualWorkerTraits> keeper_{TheArea(), registry_, counters_};
};

TEST_F(RegistrationKeeperTest, AThreadHasItsClocksFromItsRegistration) {
  sharing_->Take(0);
  Update();
  EXPECT_EQ(registry_.live_count(), 1U);
  EXPECT_EQ(Now().threads_blocking, 0U) << "one look at what a thread blocks says nothing";
  ManualSharing::Leave(0, 700);
  Update();
  EXPECT_EQ(StateOf(0), SharedRegistrationState::kLeft) << "its last records have not been drained";
  session_->Drain();
  EXPECT_EQ(StateOf(0), SharedRegistrationState::kFree);
  EXPECT_TRUE(ManualWorker::noted.empty());
  EXPECT_EQ(Finish(), 700);
}

TEST_F(RegistrationKeeperTest, ARegistrationThatTheWorkerStillUsesBeginsNoOtherAccount) {
  sharing_->Take(0);
  Update();
  ManualSharing::Leave(0, 700);
  Update();
  // The account is not settled yet, and the program has another thread there.
  sharing_->Take(0);
  Update();
  EXPECT_EQ(registry_.live_count(), 0U);
  EXPECT_EQ(Refused(), 1U);
  EXPECT_EQ(Finish(), 700);
}

TEST_F(RegistrationKeeperTest, ARegistrationWithoutAThreadIsGivenBackAtItsEnd) {
  // The worker has room for fewer chunks than the area: the system has no memory for more.
  const std::uint32_t index = 64;
  ManualWorker::used_chunks = testing::kSharedChunks;
  sharing_->Take(index);
  Update();
  EXPECT_EQ(registry_.live_count(), 0U);
  EXPECT_EQ(StateOf(index), SharedRegistrationState::kTaken) << "the thread may still write";
  ManualSharing::Leave(index, 700);
  Update();
  EXPECT_EQ(StateOf(index), SharedRegistrationState::kFree);
  EXPECT_EQ(Refused(), 1U);
}

TEST_F(RegistrationKeeperTest, AnEndThatIsSeenBeforeItIsAnnouncedIsNoOtherThread) {
  sharing_->Take(0);
  ManualSharing::Leave(0, 700);
  Update();  // by the announcement of its begin
  TheArea().Announce(0);
  Update();
  EXPECT_EQ(StateOf(0), SharedRegistrationState::kLeft)
      << "the program may not have another thread there yet";
  EXPECT_EQ(Refused(), 0U);
  session_->Drain();
  EXPECT_EQ(StateOf(0), SharedRegistrationState::kFree);
  EXPECT_EQ(Finish(), 700);
}

// What a program may write while the worker uses the channel: nothing of it leads elsewhere.
TEST_F(RegistrationKeeperTest, AChannelFullOfRubbishIsDrained) {
  sharing_->Take(0);
  Update();
  auto& channel = *sharing_->At(0).channel;
  const ChannelToken token = channel.token;
  const std::uint32_t memo_distance = channel.memo_distance;
  channel.token.index = 0x12345678;
  channel.thread_id = 99;
  channel.memo_distance = channel.ring_room_bytes = 0x7FFFFFF8;
  // The producer's half, and the consumer's.
  auto* const ring = reinterpret_cast<std::byte*>(&channel.ring);
  std::memset(ring, 0x77, sizeof(channel.ring) / 2);
  std::memset(ring + sizeof(channel.ring) / 2, 0x33, sizeof(channel.ring) / 2);
  registry_.arena()->MarkAgain(0);
  for (int i = 0; i < 3; ++i) session_->Drain();
  Stats stats;
  counters_.AddTo(stats);
  EXPECT_GE(stats.drops[static_cast<std::size_t>(DropReason::kUnreadable)], 1U);
  ManualSharing::Leave(0, 700);
  Update();
  session_->Drain();
  EXPECT_EQ(StateOf(0), SharedRegistrationState::kFree);
  EXPECT_TRUE(ManualWorker::noted.empty()) << "the clock of the thread that was noted is forgotten";
  EXPECT_EQ(Finish(), 700) << "the amounts are those of the clocks";
  channel.token = token;
  channel.memo_distance = memo_distance;
  channel.ring_room_bytes = testing::kSharedRingBytes;
}

TEST_F(RegistrationKeeperTest, ClocksOfARegistrationAreBounded) {
  SharedRegistration& shared = *TheArea().At(0);
  sharing_->Take(0);
  shared.begin_ns = shared.since_ns = INT64_MIN;
  shared.since_cpu_ns = INT64_MIN;
  shared.name_bytes = 0xFFFFFFFF;
  Update();
  ManualSharing::Leave(0, INT64_MAX);
  Update();
  session_->Drain();
  EXPECT_LE(Finish(), kMaxSharedClockNs);
}

}  // namespace
}  // namespace strobe::internal
