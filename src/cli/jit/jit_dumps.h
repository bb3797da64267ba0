// JitDumps: the jitdump files of several processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit_dump.h"
#include "strobe/base/address.h"
#include "strobe/process/process_table.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// A process maps its dump for others to find. The file stays open, so it is read to its end even if
// the process has removed it, or lives in a container that is gone.
class JitDumps {
 public:
  static constexpr std::size_t kMaxDumps = 64;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The number of the dump that a process has mapped; kNone if there is none that may be read.
  std::uint32_t Of(std::uint32_t process, const std::shared_ptr<const ProcessCode>& code);
  // As JitDump::Find, but the name is valid until the next call. What was read of one dump is
  // forgotten when another is asked.
  std::optional<std::string_view> Find(std::uint32_t number, Address address, TimeSpan times);

 private:
  struct Dump {
    std::uint32_t process;
    std::string path;
    std::unique_ptr<ByteSource> file;
  };

  std::uint32_t Open(std::uint32_t process, const std::string& path);

  std::vector<Dump> dumps_;
  std::uint32_t read_number_ = kNone;  // whose code this is
  JitDump code_;
  // Samples that follow each other are often of the same process.
  std::shared_ptr<const ProcessCode> last_code_;
  std::uint32_t last_process_ = 0;
  std::uint32_t last_ = kNone;
};

}  // namespace strobe::internal
