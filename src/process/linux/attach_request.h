// AttachRequest: how a process of a recording asks `strobe record` to sample, by perf events, a
// program that loads no library. Both sides are of one build.
//
//   process                                   command
//   connects, sends a request       ------->
//                                   <-------  kAtExec: one byte, once the events are there
//   executes                                  kAtExec: the events begin
//   the connection ends with that   ------->  kAfterwards: attaches to what runs by then
//   or sends a byte: exec has failed ------>  takes the events away
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
  kAtExec,      // the thread will execute the program
  kAfterwards,  // the process will run it when the connection ends
};

struct AttachRequest {
  std::int32_t id = 0;  // of a thread of the process that asks; of kAfterwards, it or its child
  AttachTime time{};
};

}  // namespace internal
}  // namespace strobe
