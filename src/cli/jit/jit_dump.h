// JitDump: the code that a process has generated, and when, as its jitdump file says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// From one time to another, both included, in nanoseconds of CLOCK_MONOTONIC. Any time, if it is
// not known.
struct TimeSpan {
  std::uint64_t first = 0;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
};

// The format is that of the Linux kernel's tools/perf/Documentation/jitdump-specification.txt, in
// this machine's order of bytes. Loads and moves of code are read; lines and unwinding information
// are skipped.
class JitDump {
 public:
  static constexpr std::size_t kMaxRecords = std::size_t{1} << 20;
  static constexpr std::size_t kMaxParts = std::size_t{4} << 20;
  static constexpr std::size_t kMaxVersions = 4096;  // of code at one address
  static constexpr std::size_t kMaxNameBytes = 4096;
  static constexpr std::size_t kMaxNamesBytes = std::size_t{64} << 20;  // of all together

  // True for the path of such a file, as processes map it for others to find: ".../jit-PID.dump".
  static bool IsPath(std::string_view path);

  // Takes over the whole records that `file`, the same each time, has gained.
  void Read(const ByteSource& file);
  // The function that was at `address` all the time; empty if there were several, or none at first.
  // Nothing if there never was one. Valid as long as the dump.
  [[nodiscard]] std::optional<std::string_view> Find(Address address, TimeSpan times) const;

 private:
  struct Version {
    std::uint64_t since;
    std::string_view name;  // empty for code that has moved away
  };
  using Versions = std::vector<Version>;  // in the order of time
  using Parts = std::map<Address, Versions>;

  bool ReadHeader(const ByteSource& file);
  bool ReadRecord(const ByteSource& file);
  void Load(std::uint64_t time, Address start, std::uint64_t bytes, std::string_view name);
  void Move(std::uint64_t time, Address from, Address to, std::uint64_t bytes);
  void Put(std::uint64_t time, Address start, std::uint64_t bytes, std::string_view name);
  // How many versions the part that begins at the address or before it has.
  [[nodiscard]] std::size_t VersionsAt(Address address) const;
  // The part that begins there. If none does, that of the address is divided, and both have its
  // versions.
  Parts::iterator SplitAt(Address address);

  std::uint64_t read_bytes_ = 0;
  bool has_monotonic_times_ = true;
  std::size_t records_ = 0;
  std::size_t parts_ = 0;  // versions, of all addresses
  std::size_t names_bytes_ = 0;
  std::deque<std::string> names_;
  Parts code_;  // each from its address to the next
};

}  // namespace strobe::internal
