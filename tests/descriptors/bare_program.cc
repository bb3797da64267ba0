// A program that knows nothing of Strobe, for `strobe record`:
//
//   bare_program ACTS SEED
#include <cstdlib>
#include <thread>
#include <vector>

#include "programs_files.h"
#include "short_threads.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const strobe::testing::ShortThreads threads([] { return 0; });
  return strobe::testing::RunProgramsFiles(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10),
                                           [] {});
}
