// A program outside this tree that knows gperftools alone. It calls none of its functions that a
// linker would have to look for.
#include <gperftools/profiler.h>

#include <thread>

int main() {
  std::thread([] {}).join();
  const ProfilerState none = {};
  return none.enabled;
}
