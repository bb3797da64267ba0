#include "strobe/worker/serve/worker_session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../open_area.h"
#include "strobe/default_traits.h"
#include "strobe/runtime/channels/channel_arena.h"

namespace strobe::internal {
namespace {

// Keeps how the program had ended, of each profile.
class EndExporter {
 public:
  explicit EndExporter(std::shared_ptr<std::vector<std::string>> ends = nullptr)
      : ends_(std::move(ends)) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    ends_->push_back(request.profile.stats.program_end);
    return std::string("kept");
  }

 private:
  std::shared_ptr<std::vector<std::string>> ends_;
};
struct EndTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, EndExporter>>;
};

// Serves this process, which has no threads to sample, until check(area, session, ends), which
// returns 0 if all is as it should be.
template <class Check>
int ServeASession(const Check& check) {
  using Arena = ChannelArena<WorkerTraitsOf<EndTraits>>;
  const ProfilerOptions options;
  const auto ring_bytes = static_cast<std::size_t>(*options.threads.ring_bytes);
  const absl::StatusOr<SharedArea> area =
      testing::CreateOpenArea(1, Arena::kChannelsPerChunk, Arena::ChunkBytes(ring_bytes));
  if (!area.ok()) return 1;
  constexpr int kSignal = 40;
  WorkerPlatform::Serve({.process_id = static_cast<std::uint64_t>(getpid()),
                         .name = "program",
                         .signal = kSignal,
                         .area = *area,
                         .tables = {},
                         .is_own = true});
  const auto ends = std::make_shared<std::vector<std::string>>();
  WorkerSession<EndTraits> session(options, {.exporter = EndExporter(ends)}, *area, kSignal);
  if (!session.Begin().ok() || !session.Flush().ok()) return 2;
  return check(*area, session, *ends);
}

std::string Stopped() { return "stopped"; }

using Session = WorkerSession<EndTraits>;
using Ends = std::vector<std::string>;

// In a child: the platform keeps the program that it serves.
TEST(WorkerSession, ItsLastProfileSaysHowTheProgramHasEnded) {
  const auto check = [](const SharedArea& /*area*/, Session& session, const Ends& ends) {
    if (!session.End(&Stopped).ok()) return 3;
    return ends == Ends{"", "stopped"} ? 0 : 4;
  };
  EXPECT_EXIT(std::_Exit(ServeASession(check)), ::testing::ExitedWithCode(0), "");
}

// The program counts what it has not exported as lost.
TEST(WorkerSession, ExportsNothingMoreWhenTheProgramHasTakenItsAreaBack) {
  const auto check = [](const SharedArea& area, Session& session, const Ends& ends) {
    area.TakeBack(0);
    area.GiveTo(1);
    if (!absl::IsUnavailable(session.End(&Stopped))) return 3;
    return area.IsOf(1) && ends == Ends{""} ? 0 : 4;
  };
  EXPECT_EXIT(std::_Exit(ServeASession(check)), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strobe::internal
