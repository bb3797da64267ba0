// A program of one thread that relies on the lowest free number, as in `close(0); open(path)`:
//
//   lowest_numbers SECONDS
//
// Prints "others: N": N files got another number than the lowest free one. A child that it forks
// prints the same of its own files, as "of the child: N".
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The numbers that the next files get, in order.
std::array<int, 3> NextNumbers() {
  std::array<int, 3> numbers{};
  for (int& number : numbers) number = open("/dev/null", O_RDONLY);
  for (const int number : numbers) close(number);
  return numbers;
}

long CountOthers(const std::array<int, 3>& lowest, double seconds) {
  long others = 0;
  std::vector<char*> blocks;
  while (CpuSeconds() < seconds) {
    for (const int number : lowest) others += open("/dev/null", O_RDONLY) == number ? 0 : 1;
    for (const int number : lowest) close(number);
    // Allocations, for those who sample them.
    blocks.push_back(static_cast<char*>(std::calloc(1, 1 << 16)));
    if (blocks.size() == 16) {
      for (char* const block : blocks) std::free(block);
      blocks.clear();
    }
  }
  return others;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const double seconds = std::atof(argv[1]);
  const std::array<int, 3> lowest = NextNumbers();  // before a session runs, or with nothing open
  const pid_t child = fork();                       // begins a session of its own while it runs
  const long others = CountOthers(lowest, seconds);
  std::printf("%s: %ld\n", child == 0 ? "of the child" : "others", others);
  std::fflush(stdout);
  return child == 0 || waitpid(child, nullptr, 0) == child ? 0 : 1;
}
