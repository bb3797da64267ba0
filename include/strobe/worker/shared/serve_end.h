// ServeEnd: what became of a peer that a worker was to serve.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// All but the first two are refusals: there was no session.
enum class ServeEnd : std::uint8_t {
  kServed,
  kFailed,        // no session could begin, or its last profile was not exported
  kOtherUser,     // a process of another user
  kOtherVersion,  // its first message begins otherwise, or is of another version
  kMalformed,     // a message that is truncated or too long, no hello, or one with wrong contents
  kMemory,        // a hello without memory, or with memory that is unsealed, too short, or no area
  kSlow,          // no hello within kHelloTimeoutNs
  kLeft,          // has closed the connection before its hello
  kNoRoom,        // too many programs, or no thread, descriptor or memory for it
};
inline constexpr std::size_t kServeEnds = 9;
inline constexpr std::size_t kFirstRefusal = static_cast<std::size_t>(ServeEnd::kOtherUser);

// Why a hello was refused, or has not come: by the codes that WorkerSocket::Receive and ReadHello
// document.
ServeEnd RefusalOf(const absl::Status& status);

// How many peers had each end.
using ServeEndCounts = std::array<std::uint64_t, kServeEnds>;
// "served 3 programs; refused 2: 1 other version, 1 too slow".
std::string TextOf(const ServeEndCounts& counts);

}  // namespace internal
}  // namespace strobe
