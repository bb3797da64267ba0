#include "copy_plugin.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "strobe/own_parts.h"

namespace strobe::testing {
namespace {

struct Sums {
  std::mutex mutex;
  std::map<std::string, std::int64_t> cpu_ns;
  std::map<std::string, std::int64_t> samples;
};
Sums sums;  // of this plug-in
thread_local std::optional<Registration> registration;

}  // namespace

// Of the same name in each plug-in, so that what the compiler makes of the templates has the same
// names, too.
class SummingExporter {
 public:
  explicit SummingExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    const Profile& profile = request.profile;
    const std::lock_guard lock(sums.mutex);
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const std::string& name = profile.Labels(i).Text(kThreadNameLabel);
      sums.samples[name] += profile.Values(i)[0];
      sums.cpu_ns[name] += profile.Values(i)[1];
    }
    return std::string("memory");
  }
};
struct SummingTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, SummingExporter>>;
};

class Copy final : public CopyOfStrobe {
 public:
  ~Copy() override = default;
  bool Start(int signal, double cpu_hz, double wall_hz) override {
    {
      const std::lock_guard lock(sums.mutex);
      sums.cpu_ns.clear();
      sums.samples.clear();
    }
    profiler_ = std::make_unique<BasicProfiler<SummingTraits>>(ProfilerOptions{
        .sampling = {
            .cpu_frequency_hz = cpu_hz, .wall_frequency_hz = wall_hz, .signal_number = signal}});
    return profiler_->Start().ok();
  }
  void Register(const char* name) override {
    registration.emplace(profiler_->RegisterThread(name));
  }
  void Unregister() override { registration.reset(); }
  bool Flush() override { return profiler_->Flush().ok(); }
  bool Stop() override { return profiler_->Stop().ok(); }
  std::int64_t CpuNs(const std::string& name) override {
    const std::lock_guard lock(sums.mutex);
    return sums.cpu_ns[name];
  }
  std::int64_t Samples(const std::string& name) override {
    const std::lock_guard lock(sums.mutex);
    return sums.samples[name];
  }
  std::string Diagnose() override { return profiler_->Diagnose(); }

 private:
  std::unique_ptr<BasicProfiler<SummingTraits>> profiler_;
};

}  // namespace strobe::testing

extern "C" __attribute__((visibility("default"))) strobe::testing::CopyOfStrobe*
StrobeTestMakeCopy() {
  return new strobe::testing::Copy;
}
