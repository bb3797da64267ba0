// JitNames: functions that processes have generated, as /tmp/perf-PID.map lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "strobe/base/address.h"

namespace strobe::internal {

// The functions of one such text, which grows: lines of "START SIZE NAME", in hexadecimal.
class JitFunctions {
 public:
  static constexpr std::size_t kMaxFunctions = std::size_t{1} << 20;
  static constexpr std::size_t kMaxNameBytes = 4096;

  // Takes over further lines. A later function at an address is the one that is there now. Lines
  // that are none are skipped.
  void Add(std::string_view lines);
  // The function that holds `address`; empty if there is none. Valid until the next Add.
  [[nodiscard]] std::string_view Find(Address address) const;

 private:
  struct Function {
    Address start;
    Address limit;
    std::string name;
  };

  std::vector<Function> functions_;  // by start
};

class JitNames {
 public:
  static constexpr std::size_t kMaxProcesses = 1024;
  static constexpr std::size_t kMaxReadBytes = std::size_t{16} << 20;  // at a time

  // The function of a process at `address`; empty if no list has it. Reads what the process's list
  // has gained since. A list counts only if this user or root has written it. Valid until the next
  // call.
  std::string_view Find(std::uint32_t process, Address address);

 private:
  struct List {
    JitFunctions functions;
    std::uint64_t read_bytes = 0;
  };

  static bool ReadMore(std::uint32_t process, List& list);

  absl::flat_hash_map<std::uint32_t, List> lists_;
};

}  // namespace strobe::internal
