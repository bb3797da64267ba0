#include "strobe/worker/program/remote_code.h"

#include "strobe/worker/program/remote_platform.h"

namespace strobe::internal {

std::uint64_t RemoteCode::ForkCount() { return RemotePlatform::ForkCount(); }

absl::Status RemoteCode::Add(const GeneratedCode& code) {
  if (absl::Status status = checked_.Add(code); !status.ok()) return status;
  if (!RemotePlatform::Area().Ranges().Add(code)) {
    checked_.Remove(reinterpret_cast<Address>(code.start));
    return absl::ResourceExhaustedError(
        "the profilers of this process have as much generated code as a worker can be told of");
  }
  RemotePlatform::Area().NoteChange();
  return absl::OkStatus();
}

void RemoteCode::Remove(Address start) {
  if (ForkCount() != fork_count_) return;  // the area is another one
  checked_.Remove(start);
  RemotePlatform::Area().Ranges().Remove(start);
  RemotePlatform::Area().NoteChange();
}

}  // namespace strobe::internal
