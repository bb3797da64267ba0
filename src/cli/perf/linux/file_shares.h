// FileShares: how many files a recording by perf events may keep open for each purpose, so that the
// rest is there for what comes last: /proc, the files of symbols, and the output.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

namespace strobe::internal {

struct FileShares {
  std::size_t images = 0;       // files of code
  std::size_t connections = 0;  // of processes that ask to be recorded
  std::size_t events = 0;

  // However many files this process may open.
  static constexpr std::size_t kMaxImages = 4096;  // those of a desktop's processes are hundreds
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxEvents = std::size_t{1} << 18;
  static constexpr std::size_t kReserve = 32;  // that none of these takes
  // Of few files, images and connections have one in so many each, and the reserve is half.
  static constexpr std::size_t kPart = 8;

  // Of `files`, the hard limit of RLIMIT_NOFILE: see RaiseDescriptorLimit.
  static constexpr FileShares Of(std::size_t files) {
    FileShares shares{.images = std::min(kMaxImages, files / kPart),
                      .connections = std::min(kMaxConnections, files / kPart)};
    const std::size_t reserve = std::min(kReserve, files / 2);
    shares.events = std::min(kMaxEvents, files - shares.images - shares.connections - reserve);
    return shares;
  }
  // Of this process.
  static FileShares OfThisProcess() {
    rlimit limit{};
    return Of(getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0);
  }
};

}  // namespace strobe::internal
