// AttachRequest: how a process of a recording asks `strobe record` to sample, by perf events, a
// program that loads no library. Both sides are of one build.
//
//   process                                   command
//   connects, sends a request       ------->
//                                   <-------  kAtExec: one byte, once the events are there
//   executes                                  kAtExec: the events begin
//   the connection ends with that   ------->  kAfterExec: attaches to what runs by then
//   or sends a byte: exec has failed ------>  takes the events away
//
// Which process asks, the system says (SO_PEERCRED). The ids of a request are those of the asking
// process's PID namespace.
#pragma once

#include <cstdint>
#include <string_view>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The command listens there (SOCK_SEQPACKET), beside the folder that kRecordingVariable names.
inline constexpr std::string_view kAttachSocket = "attach";
// How the path of each preloaded library goes on behind its folder.
inline constexpr std::string_view kPreloadLibrary = "/libstrobe-preload";

enum class AttachTime : std::uint32_t {
  kAtExec,     // a thread of the process will execute the program
  kAfterExec,  // the same, and only then events can be opened
  kNow,        // a child of the process runs the program
};

struct AttachRequest {
  std::int32_t id = 0;  // of the thread, or of the child
  AttachTime time{};
};

}  // namespace internal
}  // namespace strobe
