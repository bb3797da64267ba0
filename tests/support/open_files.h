// Files that a test opens, and whether a number is one.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

namespace strobe::testing {

inline bool IsOpen(int number) { return fcntl(number, F_GETFD) >= 0; }

// Each is a file of another kind; -1 if the system refuses.
inline int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
inline int OpenZero() { return open("/dev/zero", O_RDONLY | O_CLOEXEC); }
inline int OpenSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace strobe::testing
