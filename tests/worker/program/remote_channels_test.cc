#include "strobe/worker/program/remote_channels.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "strobe/arch/current_registers.h"

namespace strobe::internal {
namespace {

struct TestEvents {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"events", "count"},
                                                        ValueType{"size", "bytes"}};
  [[nodiscard]] bool enabled() const { return true; }
};
using Providers = ProviderList<CpuTimeProvider, TestEvents>;
using Traits = RemoteTraitsOf<Providers>;
constexpr std::size_t kProvider = Providers::IndexOf<TestEvents>();

bool Bring(RemoteChannels& channels, std::int64_t bytes) {
  const std::array<std::int64_t, 2> amounts{1, bytes};
  const CurrentRegisters registers;
  return channels.CaptureHere({.provider = kProvider, .amounts = amounts}, registers.get());
}

// As the worker does, with a channel of the first chunk.
void Attach(std::size_t index) {
  auto* const channels =
      reinterpret_cast<SampleChannel<Traits>*>(RemotePlatform::Area().Chunk(0).data());
  channels[index].is_active = true;
  channels[index].open_events = 1 << kProvider;
}
std::size_t UsedBytes(std::size_t index) {
  auto* const channels =
      reinterpret_cast<SampleChannel<Traits>*>(RemotePlatform::Area().Chunk(0).data());
  return channels[index].ring.used_bytes();
}

bool IsTakenInAForkedChild(RemoteChannels& channels) {
  const pid_t child = fork();
  if (child == 0) _exit(Bring(channels, 1) ? 1 : 0);
  int status = -1;
  waitpid(child, &status, 0);
  return status != 0;
}

// Returns the number of the first line that is wrong; 0 if none is.
int FirstWrongLine() {
#define STROBE_TEST_IS(condition) \
  if (!(condition)) return __LINE__
  ChannelsOf<Traits> channels(ThreadOptions{.max_threads = 10});
  STROBE_TEST_IS(channels.layout().cells == 3 && channels.layout().value_types.size() == 4);
  STROBE_TEST_IS(!Bring(channels, 1));
  STROBE_TEST_IS(channels.Open().ok());
  const SignalInUse signal;
  const auto entry = channels.Register("thread", signal, ThreadNeeds());
  STROBE_TEST_IS(entry.ok() && entry->name == "thread" && entry->index == 8);
  STROBE_TEST_IS(channels.All().size() == 9);
  channels.BeginCollecting({});
  const auto& brought = RemotePlatform::Area().header().events_brought;
  STROBE_TEST_IS(!Bring(channels, 1) && brought[3] == 0);
  // Before the worker has attached the thread, and then.
  Attach(0);
  STROBE_TEST_IS(Bring(channels, 10) && UsedBytes(0) > 0 && UsedBytes(8) == 0);
  Attach(8);
  STROBE_TEST_IS(Bring(channels, 20) && UsedBytes(8) > 0);
  STROBE_TEST_IS(brought[2] == 2 && brought[3] == 30);
  STROBE_TEST_IS(!IsTakenInAForkedChild(channels) && brought[2] == 2);
  channels.Close();
  STROBE_TEST_IS(!Bring(channels, 1));
  channels.EndCollecting();
  STROBE_TEST_IS(channels.BeginToEnd(entry->registered) == 8);
  STROBE_TEST_IS(channels.Orphan() == 1 && channels.Unregister(entry->registered));
#undef STROBE_TEST_IS
  return 0;
}

// In a child: a process has one layout of channels.
TEST(RemoteChannels, TakeEventsWhileAWorkerHasThem) {
  EXPECT_EXIT(std::exit(FirstWrongLine()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strobe::internal
