// Events of the program's own: profiles say which functions send how many bytes, beside CPU time.
#include <strobe/own_parts.h>
#include <strobe/provider/sampled_events.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace {

// The columns: one counts the events, the other adds their amounts up.
struct SendProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<strobe::ValueType, 2> kValueTypes{strobe::ValueType{"sends", "count"},
                                                                strobe::ValueType{"sent", "bytes"}};
  [[nodiscard]] bool enabled() const { return true; }
};
struct Traits : strobe::DefaultTraits {
  using Providers = strobe::ProviderList<strobe::CpuTimeProvider, SendProvider>;
};
strobe::BasicProfiler<Traits> profiler;
strobe::SampledEvents<SendProvider> sends(profiler, 256 << 10);  // a stack each 256 KiB in the mean

volatile std::uint64_t checksum = 0;

// Stands for a function that sends.
void Send(const std::string& message) {
  for (const char byte : message) checksum = checksum * 31 + static_cast<unsigned char>(byte);
  sends.Add(message.size());
}

__attribute__((noinline)) void SendAnswer() { Send(std::string(4'000, 'a')); }
__attribute__((noinline)) void SendPage() { Send(std::string(16'000, 'p')); }

}  // namespace

int main() {
  const auto registration = profiler.RegisterThread("main");
  const strobe::BasicScopedProfiler session(profiler);
  for (int i = 0; i < 50'000; ++i) {
    SendAnswer();
    SendPage();
  }
  std::printf("bytes in no profile: %lld\n", static_cast<long long>(sends.untaken().total));
}
