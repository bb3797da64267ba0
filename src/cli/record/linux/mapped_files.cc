#include "mapped_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

// An exec closes files before it maps the program.
constexpr int kMaxLooks = 20;
constexpr std::chrono::milliseconds kLookPause(1);

// Half of the files that this process may open are for all else.
ProcessTableOptions Options() {
  ProcessTableOptions options{.uses_process_roots = true};
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    options.max_images = std::min<rlim_t>(options.max_images, limit.rlim_cur / 2);
  return options;
}

}  // namespace

MappedFiles::MappedFiles(pid_t program)
    : program_(static_cast<std::uint64_t>(program)), table_(NativePlatform::Files(), Options()) {
  for (int i = 0; i < kMaxLooks; ++i) {
    Update();
    const std::shared_ptr<const ProcessCode> code = table_.Find(program_);
    if (code == nullptr || !code->modules().empty()) break;
    std::this_thread::sleep_for(kLookPause);
  }
}

// A program that may not be observed is named by the paths of its files.
void MappedFiles::Update() { table_.Attach(program_).IgnoreError(); }

}  // namespace strobe::internal
