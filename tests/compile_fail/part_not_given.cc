// refused: a part of these Traits has to be given
#include "strobe/own_parts.h"

struct MyExporter {
  explicit MyExporter(int socket) : socket_(socket) {}
  absl::StatusOr<std::string> Export(const strobe::ExportRequest&) { return "nowhere"; }
  int socket_;
};
struct MyTraits : strobe::DefaultTraits {
  using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, MyExporter>>;
};
#ifdef REFUSED
strobe::BasicProfiler<MyTraits> profiler;  // It cannot know the socket.
#else
strobe::BasicProfiler<MyTraits> profiler({}, {.exporter = MyExporter(1)});
#endif
