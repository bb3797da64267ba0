// gperftools' functions for heap profiles, and what its variables begin when the program is loaded.
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "heap_profile.h"
#include "strobe/base/memory_guard.h"
#include "strobe/gperftools/heap-profiler.h"
#include "strobe/platform/native.h"
#include "strobe/runtime/control/session_toggle.h"
#include "variables.h"

namespace strobe::internal {
namespace {

void WriteHeapProblem(const std::string& what, const absl::Status& status) {
  if (!status.ok())
    NativePlatform::WriteLine(absl::StrCat("strobe: ", what, ": ", status.message()));
}

// Each signal writes a file.
void DumpAtSignals() {
  const auto signal = NumberVariable("HEAPPROFILESIGNAL", 1, 64);
  if (!signal) return;
  // Lives as long as the process.
  static const auto* const dumps = new SessionToggle<NativePlatform>(
      "HEAPPROFILESIGNAL", static_cast<int>(*signal), [] { HeapProfilerDump("signal"); });
  WriteHeapProblem("a signal does nothing", dumps->status());
}

__attribute__((constructor)) void BeginHeapProfile() {
  static_cast<void>(HasMemoryFor([] {
    const std::optional<std::string> prefix = UniquePath("HEAPPROFILE");
    if (!prefix) return;
    HeapProfilerStart(prefix->c_str());
    DumpAtSignals();
  }));
}

}  // namespace
}  // namespace strobe::internal

using strobe::internal::HasMemoryFor;
using strobe::internal::HeapProfile;
using strobe::internal::WriteHeapProblem;

void HeapProfilerStart(const char* prefix) {
  if (prefix == nullptr) return;
  static_cast<void>(HasMemoryFor([prefix] {
    WriteHeapProblem(absl::StrCat("can't profile the heap for '", prefix, "'"),
                     HeapProfile::OfProcess().Start(prefix));
  }));
}

int IsHeapProfilerRunning() {
  bool is_running = false;
  const bool has_memory = HasMemoryFor([&] { is_running = HeapProfile::OfProcess().IsRunning(); });
  return has_memory && is_running ? 1 : 0;
}

void HeapProfilerStop() {
  static_cast<void>(HasMemoryFor([] { HeapProfile::OfProcess().Stop(); }));
}

void HeapProfilerDump(const char* reason) {
  static_cast<void>(HasMemoryFor([reason] {
    WriteHeapProblem("no heap profile",
                     HeapProfile::OfProcess().Dump(reason == nullptr ? "" : reason));
  }));
}

char* GetHeapProfile() {
  std::string text;
  if (!HasMemoryFor([&text] { text = HeapProfile::OfProcess().Text(); })) return nullptr;
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}
