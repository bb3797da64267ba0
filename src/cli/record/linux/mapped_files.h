// MappedFiles: the files that a recorded program has mapped, open until its names are read.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "strobe/process/process_table.h"

namespace strobe::internal {

// The command reads names when the program has ended. A file that has been removed or replaced by
// then is read all the same, if it was mapped at a call of Update.
class MappedFiles {
 public:
  // `program` has begun its exec.
  explicit MappedFiles(pid_t program);

  // For now and then, while the program runs.
  void Update();

 private:
  const std::uint64_t program_;
  ProcessTable table_;  // has the files open
};

}  // namespace strobe::internal
