#include "strobe/worker/program/client_code.h"

#include "strobe/worker/program/client_platform.h"

namespace strobe::internal {

std::uint64_t ClientCode::ForkCount() { return ClientPlatform::ForkCount(); }

absl::Status ClientCode::Add(const GeneratedCode& code) {
  if (absl::Status status = checked_.Add(code); !status.ok()) return status;
  if (!ClientPlatform::Area().Ranges().Add(code)) {
    checked_.Remove(reinterpret_cast<Address>(code.start));
    return absl::ResourceExhaustedError(
        "the profilers of this process have as much generated code as a worker can be told of");
  }
  ClientPlatform::Area().NoteChange();
  return absl::OkStatus();
}

void ClientCode::Remove(Address start) {
  if (ForkCount() != fork_count_) return;  // the area is another one
  checked_.Remove(start);
  ClientPlatform::Area().Ranges().Remove(start);
  ClientPlatform::Area().NoteChange();
}

}  // namespace strobe::internal
