#include "strobe/export/spool.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_directories.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ManualDirectories;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kNow = 1'700'000'000 * kSecondNs;

class SpoolTest : public ::testing::Test {
 protected:
  Spool Make(std::uint64_t max_bytes = 1 << 20, std::string name = "server.program") {
    return {directories_,
            {.directory = "/spool",
             .name = std::move(name),
             .max_bytes = max_bytes,
             .max_age_ns = 100 * kSecondNs}};
  }
  // What waits, oldest first; takes it.
  static std::vector<std::string> TakeAll(Spool& spool, std::int64_t now_ns = kNow) {
    std::vector<std::string> all;
    while (const auto entry = spool.Oldest(now_ns)) {
      const auto bytes = spool.Read(*entry);
      all.push_back(bytes.ok() ? *bytes : "damaged");
      if (bytes.ok()) spool.Remove(*entry);
    }
    return all;
  }
  void Damage(const std::string& name, void (*damage)(std::string&)) {
    directories_.With([&](ManualDirectories::State& state) {
      damage(state.directories.at("/spool/server.program.0")->at(name).bytes);
    });
  }
  static std::uint64_t Drops(const Spool& spool, ExportDrop reason) {
    return spool.drops()[static_cast<std::size_t>(reason)];
  }

  ManualDirectories directories_;
};

TEST_F(SpoolTest, ConstructionHasNoSideEffects) {
  const Spool spool = Make();
  EXPECT_EQ(spool.stats(), SpoolStats{});
  EXPECT_TRUE(directories_.With([](auto& state) { return state.directories.empty(); }));
}

TEST_F(SpoolTest, WhatIsAddedComesBackInOrder) {
  Spool spool = Make();
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  ASSERT_TRUE(spool.Add("first", 1, kNow).ok());
  ASSERT_TRUE(spool.Add(every_byte, 2, kNow).ok()) << "at the same time";
  ASSERT_TRUE(spool.Add("", 3, kNow - kSecondNs).ok()) << "the clock was set back";
  EXPECT_EQ(spool.stats().waiting, 3u);
  EXPECT_THAT(TakeAll(spool), ElementsAre("first", every_byte, ""));
  EXPECT_EQ(spool.stats(), SpoolStats{});
  EXPECT_TRUE(directories_.Names("/spool/server.program.0").empty());
}

TEST_F(SpoolTest, TheNextProcessFindsWhatAKilledOneLeft) {
  {
    Spool spool = Make();
    ASSERT_TRUE(spool.Add("first", 1, kNow).ok());
    ASSERT_TRUE(spool.Add("second", 2, kNow + kSecondNs).ok());
  }
  // Killed while it wrote.
  directories_.With([](ManualDirectories::State& state) {
    (*state.directories.at("/spool/server.program.0"))["x.spooled.tmp"] = {.bytes = "hal"};
  });
  Spool spool = Make();
  ASSERT_TRUE(spool.Open(kNow).ok());
  EXPECT_EQ(spool.stats().found, 2u);
  EXPECT_EQ(spool.stats().waiting, 2u);
  ASSERT_TRUE(spool.Add("third", 3, kNow + kSecondNs).ok());
  EXPECT_THAT(TakeAll(spool), ElementsAre("first", "second", "third"));
  EXPECT_TRUE(directories_.Names("/spool/server.program.0").empty()) << "nor the half file";
}

TEST_F(SpoolTest, EachProcessHasASlotAndTakesOverThoseThatAreFree) {
  Spool first = Make();
  ASSERT_TRUE(first.Add("of the first", 1, kNow).ok());
  {
    Spool second = Make();
    ASSERT_TRUE(second.Add("of the second", 1, kNow).ok());
    EXPECT_EQ(second.stats().found, 0u);
  }
  first.MoveOn(kNow);
  EXPECT_EQ(first.stats().found, 0u) << "it has a file of its own";
  EXPECT_THAT(TakeAll(first), ElementsAre("of the first"));
  first.MoveOn(kNow);
  EXPECT_EQ(first.stats().found, 1u);
  EXPECT_THAT(TakeAll(first), ElementsAre("of the second"));
  first.MoveOn(kNow);
  EXPECT_EQ(first.stats(), SpoolStats{.found = 1});
  Spool other = Make(1 << 20, "server.other");
  ASSERT_TRUE(other.Open(kNow).ok());
  EXPECT_EQ(other.stats().found, 0u);
}

TEST_F(SpoolTest, SlotsHaveALimit) {
  directories_.With([](ManualDirectories::State& state) {
    for (std::size_t i = 0; i < Spool::kMaxSlots; ++i)
      state.locked.insert(absl::StrCat("/spool/server.program.", i));
  });
  Spool spool = Make();
  const absl::Status status = spool.Add("bytes", 1, kNow).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(SpoolTest, BeyondTheBytesTheOldestAreDroppedAndCounted) {
  Spool spool = Make(/*max_bytes=*/1000);
  ASSERT_TRUE(spool.Add(std::string(400, '1'), 10, kNow).ok());
  ASSERT_TRUE(spool.Add(std::string(400, '2'), 20, kNow).ok());
  ASSERT_TRUE(spool.Add(std::string(400, '3'), 30, kNow).ok());
  EXPECT_LE(spool.stats().waiting_bytes, 1000u);
  EXPECT_EQ(Drops(spool, ExportDrop::kSpoolFull), 1u);
  EXPECT_EQ(spool.amount_dropped(), 10);
  const absl::Status status = spool.Add(std::string(1000, '4'), 40, kNow).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(TakeAll(spool), ElementsAre(std::string(400, '2'), std::string(400, '3')))
      << "none was dropped for one that has no room at all";
}

TEST_F(SpoolTest, TheLimitsHoldForWhatIsFound) {
  {
    Spool spool = Make();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(spool.Add(std::string(400, 'x'), 1, kNow).ok());
  }
  Spool spool = Make(/*max_bytes=*/1000);
  ASSERT_TRUE(spool.Open(kNow).ok());
  EXPECT_EQ(spool.stats().found, 4u);
  EXPECT_EQ(spool.stats().waiting, 2u);
  EXPECT_EQ(Drops(spool, ExportDrop::kSpoolFull), 2u);
}

TEST_F(SpoolTest, WhatIsTooOldIsDroppedAndCounted) {
  Spool spool = Make();
  ASSERT_TRUE(spool.Add("old", 10, kNow).ok());
  ASSERT_TRUE(spool.Add("new", 20, kNow + 50 * kSecondNs).ok());
  EXPECT_EQ(spool.Oldest(kNow + 100 * kSecondNs)->amount, 10);
  EXPECT_THAT(TakeAll(spool, kNow + 101 * kSecondNs), ElementsAre("new"));
  EXPECT_EQ(Drops(spool, ExportDrop::kTooOld), 1u);
  EXPECT_EQ(spool.amount_dropped(), 10);
}

TEST_F(SpoolTest, ADamagedFileIsSetAsideAndCounted) {
  for (const auto& [damage, what] : std::vector<std::pair<void (*)(std::string&), const char*>>{
           {[](std::string& bytes) { bytes.back() ^= 1; }, "one bit"},
           {[](std::string& bytes) { bytes.pop_back(); }, "cut"},
           {[](std::string& bytes) { bytes.resize(10); }, "cut in the header"},
           {[](std::string& bytes) { bytes.clear(); }, "empty"},
           {[](std::string& bytes) { bytes += "more"; }, "more than it was"},
           {[](std::string& bytes) { bytes[0] = 'S'; }, "another format"},
           {[](std::string& bytes) { bytes[20] ^= 1; }, "another length"}}) {
    directories_.Reset();
    Spool spool = Make();
    ASSERT_TRUE(spool.Add("first", 10, kNow).ok());
    const auto second = spool.Add("second", 20, kNow);
    ASSERT_TRUE(second.ok());
    Damage(spool.Oldest(kNow)->file, damage);
    const absl::Status status = spool.Read(*spool.Oldest(kNow)).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/spool/server.program.0/")) << what;
    EXPECT_EQ(Drops(spool, ExportDrop::kUnreadable), 1u) << what;
    EXPECT_EQ(spool.amount_dropped(), 10) << what;
    EXPECT_THAT(TakeAll(spool), ElementsAre("second")) << what;
    const std::vector<std::string> names = directories_.Names("/spool/server.program.0");
    ASSERT_EQ(names.size(), 1u) << what;
    EXPECT_TRUE(names[0].ends_with(".damaged")) << names[0];
  }
}

TEST_F(SpoolTest, AFileThatIsGoneIsCounted) {
  Spool spool = Make();
  ASSERT_TRUE(spool.Add("first", 10, kNow).ok());
  directories_.With([](ManualDirectories::State& state) {
    state.directories.at("/spool/server.program.0")->clear();
  });
  EXPECT_THAT(TakeAll(spool), ElementsAre("damaged"));
  EXPECT_EQ(Drops(spool, ExportDrop::kUnreadable), 1u);
}

TEST_F(SpoolTest, FewDamagedFilesAreKeptAndForeignOnesAreLeftAlone) {
  ASSERT_TRUE(directories_.Open("/spool/server.program.0").ok());
  directories_.With([](ManualDirectories::State& state) {
    ManualDirectories::Files& files = *state.directories.at("/spool/server.program.0");
    for (std::size_t i = 0; i < Spool::kMaxDamagedFiles + 4; ++i)
      files[absl::StrCat(1000 + i, ".damaged")] = {.bytes = "x"};
    files["notes.txt"] = {.bytes = "the user's"};
    files["12.x.1.spooled"] = {.bytes = "not a name of ours"};
  });
  Spool spool = Make();
  ASSERT_TRUE(spool.Open(kNow).ok());
  EXPECT_EQ(spool.stats().waiting, 0u);
  EXPECT_EQ(directories_.Names("/spool/server.program.0").size(), Spool::kMaxDamagedFiles + 1);
  EXPECT_TRUE(directories_.Read("/spool/server.program.0/notes.txt").has_value());
}

TEST_F(SpoolTest, ADiskWithoutRoomIsAnErrorAndLeavesNothing) {
  Spool spool = Make();
  ASSERT_TRUE(spool.Open(kNow).ok());
  directories_.With([](ManualDirectories::State& state) { state.room_bytes = 10; });
  EXPECT_TRUE(absl::IsResourceExhausted(spool.Add("bytes", 1, kNow).status()));
  directories_.With([](ManualDirectories::State& state) {
    state.room_bytes = 1000;
    state.sync_status = absl::DataLossError("I/O error");
  });
  EXPECT_TRUE(absl::IsDataLoss(spool.Add("bytes", 1, kNow).status()));
  directories_.With([](ManualDirectories::State& state) {
    state.sync_status = absl::OkStatus();
    state.rename_status = absl::UnavailableError("no");
  });
  EXPECT_TRUE(absl::IsUnavailable(spool.Add("bytes", 1, kNow).status()));
  EXPECT_EQ(spool.stats().waiting, 0u);
  EXPECT_TRUE(directories_.Names("/spool/server.program.0").empty());
}

}  // namespace
}  // namespace strobe
