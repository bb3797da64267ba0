// AwaitWorkers: the end of the workers of recorded programs.
#pragma once

#include <chrono>
#include <string>

namespace strobe::internal {

// Waits until each worker with `variable` ("NAME=value") in its environment has ended: it has then
// exported all that its program has left. Returns after `longest` in any case: a program that lives
// on keeps its worker.
void AwaitWorkers(const std::string& variable, std::chrono::milliseconds longest);

}  // namespace strobe::internal
