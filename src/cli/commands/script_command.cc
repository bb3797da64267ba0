// strobe script: the samples of a perf.data file, unwound and named.
#include <cstdint>
#include <memory>

#include "command_line.h"
#include "perf/jit_names.h"
#include "readers/read_perf.h"
#include "strobe/platform/native.h"
#include "ui/progress.h"

namespace strobe::internal {
namespace {

Text Script(CommandLine& line) {
  const Request& request = line.request();
  const absl::StatusOr<std::string> format = FormatOf(request);
  if (!format.ok()) return format.status();
  Progress progress(line.terminal());
  const std::string& path = request.files[0];
  const SymbolSearch search = SearchIn(request.debug_directories);
  JitNames jit_names;
  absl::StatusOr<LoadedProfile> loaded = ReadPerfFile(
      path, {.files = NativePlatform::Files(),
             .search = search,
             .find_generated = [&](std::uint32_t process,
                                   Address address) { return jit_names.Find(process, address); },
             .progress = [&](std::uint64_t bytes) { progress.Read(path, bytes); },
             .max_memory = request.max_memory_mib << 20});
  if (!loaded.ok()) return loaded.status();
  progress.Print("reading symbols");
  if (absl::Status status = SymbolizeProfile(*loaded, search); !status.ok()) return status;
  const absl::StatusOr<FilteredProfile> subject = MakeFilteredProfile(*std::move(loaded), request);
  if (!subject.ok()) return subject.status();
  return EncodeWhatIsLeft(*format, subject->loaded, request);
}

}  // namespace

void AddScript(CommandLine& line) {
  CLI::App* const script =
      line.AddReader("script", "Unwinds and names the samples of a perf.data file, and writes them",
                     [&line] { return Script(line); });
  line.AddFiles(*script, 1);
  line.AddOutput(*script);
  line.AddDebugDirectories(*script);
  script->footer(
      "  perf record --call-graph dwarf ./program && strobe script perf.data -o one.pb.gz\n\n"
      "Stacks are unwound by the frame information of the files, which are found as strobe\n"
      "symbolize finds them. A stack that is deeper than perf's copy ends in [truncated].");
}

}  // namespace strobe::internal
