#pragma once

#include <mutex>

namespace strobe::internal {

// Held around our calls of the loader, and by a fork: the loader's own lock must not be ours at the instant of a fork, for in the child
// nobody would ever release it.
std::mutex& LoaderMutex();

// In a fork's child: another thread may have held the loader's own lock, which is then held for ever. The next question to the loader finds
// out, in bounded time.
void DoubtLoader();

}  // namespace strobe::internal
