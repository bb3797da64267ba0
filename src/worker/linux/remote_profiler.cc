#include "strobe/worker/remote_profiler.h"

#include <memory>
#include <string>

#include "strobe/base/memory_guard.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/worker/program/remote_core.h"

namespace strobe {
namespace internal {
namespace {

class WorkerCoreFactory final : public CoreFactory {
 public:
  [[nodiscard]] std::unique_ptr<AbstractCore> Make(const ProfilerOptions& options) const override {
    return std::make_unique<RemoteCore>(options);
  }
  [[nodiscard]] ProfilerOptions WithEnvironment(ProfilerOptions options) const override {
    ApplyEnvironment(
        options, [](const char* name) { return RemotePlatform::EnvironmentVariable(name); },
        [](const std::string& line) { RemotePlatform::WriteLine(line); });
    WarnOfUnknownVariables<RemotePlatform>();
    return options;
  }
  void WriteLine(const std::string& line) const override { RemotePlatform::WriteLine(line); }
};

}  // namespace

template <>
std::unique_ptr<const CoreFactory> MakeCoreFactory<RemoteTraits>() {
  std::unique_ptr<const CoreFactory> factory;
  static_cast<void>(HasMemoryFor([&] { factory = std::make_unique<const WorkerCoreFactory>(); }));
  return factory;
}

}  // namespace internal
}  // namespace strobe
