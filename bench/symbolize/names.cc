// Question: how long does it take to name 50,000 distinct addresses over 100 modules? Strobe's
// symbolizer, which is given them as one profile, against absl::Symbolize, which is asked one by
// one. The modules are libraries that symbolize.py has built; each has the functions function_0 to
// function_499. The names are compared.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "../report.h"
#include "absl/debugging/symbolize.h"
#include "strobe/core/module_map.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"

namespace strobe {
namespace {

constexpr int kFunctions = 500;
constexpr int kRounds = 5;

Profile ProfileOf(int count, char** paths) {
  std::vector<Address> addresses;
  for (int i = 0; i < count; ++i) {
    void* const library = dlopen(paths[i], RTLD_NOW);
    for (int f = 0; library != nullptr && f < kFunctions; ++f) {
      const std::string name = "function_" + std::to_string(f);
      addresses.push_back(reinterpret_cast<Address>(dlsym(library, name.c_str())) + 1);
    }
  }
  Profile profile;
  const ModuleMap modules(NativePlatform::Modules());
  profile.modules = modules.modules();
  for (const Address address : addresses)
    profile.frames.push_back({address, modules.Find(address).value_or(Frame::kNoModule)});
  return profile;
}

int Run(int count, char** paths) {
  absl::InitializeSymbolizer(paths[-1]);
  const Profile profile = ProfileOf(count, paths);
  std::vector<double> ours, theirs, kept;
  std::size_t equal = 0;
  for (int round = 0; round < kRounds; ++round) {
    PlatformSymbolizer<NativePlatform> symbolizer;
    std::int64_t begin = testing::ThreadCpuNs();
    const Symbols symbols = *symbolizer.Symbolize(profile);
    ours.push_back(static_cast<double>(testing::ThreadCpuNs() - begin) / 1e6);
    begin = testing::ThreadCpuNs();
    static_cast<void>(*symbolizer.Symbolize(profile));
    kept.push_back(static_cast<double>(testing::ThreadCpuNs() - begin) / 1e6);
    begin = testing::ThreadCpuNs();
    std::vector<std::string> names(profile.frames.size());
    std::array<char, 1024> name{};
    for (std::size_t i = 0; i < names.size(); ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      const auto* const code = reinterpret_cast<const void*>(profile.frames[i].address);
      if (absl::Symbolize(code, name.data(), static_cast<int>(name.size()))) names[i] = name.data();
    }
    theirs.push_back(static_cast<double>(testing::ThreadCpuNs() - begin) / 1e6);
    equal = 0;
    for (std::size_t i = 0; i < names.size(); ++i)
      equal += symbols.functions[symbols.frames[i].function].name == names[i] ? 1 : 0;
  }
  if (equal != profile.frames.size() || profile.frames.empty()) {
    std::fprintf(stderr, "only %zu of %zu names are equal\n", equal, profile.frames.size());
    return 1;
  }
  const std::string name = std::to_string(equal) + " names";
  testing::Report(name, "strobe", "time", testing::Median(ours), "ms");
  testing::Report(name, "strobe, the next profile", "time", testing::Median(kept), "ms");
  testing::Report(name, "absl::Symbolize", "time", testing::Median(theirs), "ms");
  return 0;
}

}  // namespace
}  // namespace strobe

int main(int count, char** arguments) { return strobe::Run(count - 1, arguments + 1); }
