// What a test does in a fork's child, whose limits, files and variables are its own to spoil.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace strobe::testing {

// Runs body() in a forked child and returns its wait status: 0 where the body returned, SIGALRM
// where it did not in two minutes. -1 where there was no child.
template <class Body>
int RunInChild(Body&& body) {
  constexpr unsigned kPatienceSeconds = 120;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    body();
    _exit(0);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return status;
}

// Whether check() holds in a forked child.
template <class Check>
bool HoldsInChild(const Check& check) {
  const int status = RunInChild([&] { _exit(check() ? 0 : 1); });
  EXPECT_NE(status, -1) << "there is no child";
  return status == 0;
}

}  // namespace strobe::testing
