// The TCP sockets of this process, of all its threads: a thread may have files of its own.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

namespace strobe::testing {

// The inodes of the system's established connections with that port at their own end, or at the
// other one.
inline std::set<std::string> ConnectionsWith(int port, bool is_own_end) {
  std::set<std::string> inodes;
  for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, own, other, state, skipped, inode;
      fields >> number >> own >> other >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      const std::string& end = is_own_end ? own : other;
      if (state == "01" && std::stoi(end.substr(end.rfind(':') + 1), nullptr, 16) == port)
        inodes.insert(inode);
    }
  }
  return inodes;
}

// How many of them are files of this process.
inline int CountConnections(int port, bool is_own_end) {
  const std::set<std::string> inodes = ConnectionsWith(port, is_own_end);
  std::set<std::string> found;
  // Threads end, and files are closed, meanwhile.
  std::error_code gone;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator thread("/proc/self/task", gone); thread != end;
       thread.increment(gone)) {
    for (std::filesystem::directory_iterator file(thread->path() / "fd", gone); file != end;
         file.increment(gone)) {
      std::error_code closed;
      const std::string target = std::filesystem::read_symlink(file->path(), closed).string();
      if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9)))
        found.insert(target);
    }
  }
  return static_cast<int>(found.size());
}

}  // namespace strobe::testing
