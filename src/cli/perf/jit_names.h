// JitNames: functions that processes have generated, as /tmp/perf-PID.map lists them. A process in
// a container has a /tmp and an id of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "profile/loaded_profile.h"
#include "strobe/base/address.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// The functions of one such text, which grows: lines of "START SIZE NAME", with hexadecimal numbers
// (the Linux kernel's tools/perf/Documentation/jit-interface.txt). Lines of another form are
// skipped. Where ranges overlap, the later line counts: compilers use addresses again.
class JitFunctions {
 public:
  static constexpr std::size_t kMaxFunctions = std::size_t{1} << 20;
  static constexpr std::size_t kMaxNameBytes = 4096;

  // Takes over further lines.
  void Add(std::string_view lines);
  // The function that holds `address`; empty if there is none. Valid until the next Add.
  [[nodiscard]] std::string_view Find(Address address) const;

 private:
  struct Function {
    Address limit;
    std::string name;
  };

  void Put(Address start, Address limit, std::string_view name);

  std::map<Address, Function> functions_;  // by start; no two overlap
};

// Where a process writes its list, below its own root: "/tmp/perf-N.map" with the id that it has
// for itself, the last of `ids`. Those are its ids, one in each namespace, as the line NSpid of its
// status has them; empty if that is not known.
std::string JitListPath(std::uint32_t process, std::string_view ids);

class JitNames {
 public:
  static constexpr std::size_t kMaxProcesses = 1024;
  // Lists stay open, so each is read to its end also if the process has removed it, or lives in a
  // container that is gone. Those beyond are opened for each read.
  static constexpr std::size_t kMaxOpenFiles = 64;
  static constexpr std::size_t kMaxReadBytes = std::size_t{16} << 20;  // at a time

  // The function of a process at `address`; empty if no list has it. Reads what the process's list
  // has gained since. A list counts only if this user, root or the process's user has written it.
  // Valid until the next call.
  std::string_view Find(std::uint32_t process, Address address);
  // Names the frames of a profile of `process` that are in no module.
  // What was written before the recording's begin, in nanoseconds since 1970, is another process's.
  void Name(LoadedProfile& loaded, std::uint32_t process, std::int64_t begin_ns);

 private:
  struct List {
    JitFunctions functions;
    std::uint64_t read_bytes = 0;
    std::string path;  // below the process's own root
    std::unique_ptr<ByteSource> file;
  };

  static std::unique_ptr<ByteSource> Open(std::uint32_t process, const std::string& path);
  bool ReadMore(std::uint32_t process, List& list);

  absl::flat_hash_map<std::uint32_t, List> lists_;
  std::size_t open_files_ = 0;
};

}  // namespace strobe::internal
