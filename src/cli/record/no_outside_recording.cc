// Where there are no perf events, or ProcessTable does not unwind their stacks.
#include "linux/outside_recording.h"

namespace strobe::internal {

class OutsideRecording::Serving {};

OutsideRecording::OutsideRecording(const RecordOptions& /*options*/,
                                   const std::string& /*folder*/) {}
OutsideRecording::~OutsideRecording() = default;
absl::Status OutsideRecording::AttachAtExec(std::uint32_t /*process*/) { return {}; }
void OutsideRecording::Begin() {}
void OutsideRecording::Attach(std::uint32_t /*process*/) {}
void OutsideRecording::End() {}
std::optional<LoadedProfile> OutsideRecording::Take() { return std::nullopt; }
std::uint64_t OutsideRecording::samples() const { return 0; }
OutsideRefusal OutsideRecording::TakeRefusal() { return {}; }

}  // namespace strobe::internal
