// Where there are no workers.
#include "recording_worker.h"

namespace strobe::internal {

struct RecordingWorker::Listening {};

RecordingWorker::RecordingWorker(const std::string& /*folder*/) {}
RecordingWorker::~RecordingWorker() = default;
void RecordingWorker::Begin() {}
void RecordingWorker::End() {}

}  // namespace strobe::internal
