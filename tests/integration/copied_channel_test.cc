// What a channel's captures wrote is drained by another process, from a copy of its bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <new>
#include <span>

#include "forked_child.h"
#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "strobe/runtime/drain/sample_intake.h"
#include "strobe/runtime/session/session.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::RunInChild;
using testing::WorkUntil;
using Channel = internal::SampleChannel<DefaultTraits>;
using Providers = DefaultTraits::Providers;

constexpr std::int64_t kRequests = 5;

// Drains the ring of the channel `offset` bytes into the mapping; the amount of its records.
std::int64_t Drain(std::span<std::byte> mapping, std::size_t offset) {
  auto& channel = *std::launder(reinterpret_cast<Channel*>(mapping.data() + offset));
  internal::SampleIntake intake(Providers::Layout(), {0, 1, 2}, std::size_t{1} << 20, {});
  intake.SetModules(1, ModuleMap(NativePlatform::Modules()));
  const std::uint32_t thread = intake.AddThread(channel.thread_id, "copied");
  std::int64_t amount = 0;
  for (auto record = channel.ring.Peek(); !record.empty(); record = channel.ring.Peek()) {
    const auto finish = [](std::span<const std::byte>, StackDelta& stack) {
      stack.end = StackEnd::kNoUnwindInfo;
      return true;
    };
    amount += intake.Add(thread, record, finish).values[1];
    channel.ring.Pop();
  }
  return amount;
}

TEST(CopiedChannel, IsDrainedInAnotherProcess) {
  const int signal = NativePlatform::DefaultSignal();
  ASSERT_TRUE(NativePlatform::InstallHandler(signal).ok());
  internal::ThreadRegistry<DefaultTraits> registry(4, 32768);
  const auto registered = registry.Register(NativePlatform::CurrentThread(), "thread");
  ASSERT_TRUE(registered.ok());
  auto& thread = **registered;
  Channel& channel = *thread.channel;
  registry.arena()->max_frames = 64;
  registry.arena()->code().generation = 1;
  thread.next = internal::RegistrationLinks();
  internal::RegistrationLinks() = &thread;
  channel.is_active = true;
  for (std::int64_t i = 0; i < kRequests; ++i) {
    channel.cells[0].requested.fetch_add(i + 1);
    ASSERT_TRUE(NativePlatform::Interrupt(channel.thread_id, channel.token.Pack(), signal, false));
    ASSERT_TRUE(WorkUntil([&] { return !channel.is_requested(); }, [] { BurnCpu(100'000); }));
  }
  channel.is_active = false;
  internal::RegistrationLinks() = thread.next;
  const std::int64_t recorded = channel.cells[0].credited;
  EXPECT_GT(recorded, 0);

  const std::span<std::byte> own = registry.arena()->MappingOf(channel).bytes;
  const auto offset = static_cast<std::size_t>(reinterpret_cast<std::byte*>(&channel) - own.data());
  const int shared = memfd_create("strobe-test-channel", MFD_CLOEXEC);
  ASSERT_GE(shared, 0);
  ASSERT_EQ(ftruncate(shared, static_cast<off_t>(own.size())), 0);
  ASSERT_EQ(pwrite(shared, own.data(), own.size(), 0), static_cast<ssize_t>(own.size()));
  EXPECT_EQ(RunInChild([&] {
              void* mapped =
                  mmap(nullptr, own.size(), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
              STROBE_CHILD_CHECK(mapped != MAP_FAILED);
              // The first is gone here: an address of it would fault.
              STROBE_CHILD_CHECK(munmap(own.data(), own.size()) == 0);
              const std::span<std::byte> mapping(static_cast<std::byte*>(mapped), own.size());
              STROBE_CHILD_CHECK(Drain(mapping, offset) == recorded);
            }),
            0);
  // The child has drained the memory that both see.
  void* seen = mmap(nullptr, own.size(), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(Drain({static_cast<std::byte*>(seen), own.size()}, offset), 0);
  munmap(seen, own.size());
  close(shared);
  EXPECT_EQ(Drain(own, offset), recorded) << "the first is as it was";
  registry.Unregister(&thread);
}

}  // namespace
}  // namespace strobe
