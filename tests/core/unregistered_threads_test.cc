#include "strobe/core/unregistered_threads.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(UnregisteredThreads, NothingIsNoText) { EXPECT_EQ(internal::TextOf({}, "so far"), ""); }

TEST(UnregisteredThreads, TheTextHasTheShareAndTheThreads) {
  EXPECT_EQ(internal::TextOf({.share = 0.83, .count = 5, .names = "worker-1, worker-2, ..."},
                             "in this period"),
            "83 % of the process's CPU time in this period was in threads that are not registered "
            "(5 threads: worker-1, worker-2, ...)");
  EXPECT_EQ(internal::TextOf({.share = 1, .count = 1, .names = "worker"}, "so far"),
            "100 % of the process's CPU time so far was in threads that are not registered "
            "(1 thread: worker)");
}

TEST(UnregisteredThreads, ThreadsThatAreGoneHaveNoNames) {
  EXPECT_EQ(internal::TextOf({.share = 0.5}, "in this period"),
            "50 % of the process's CPU time in this period was in threads that are not registered "
            "(they have ended or registered since)");
}

}  // namespace
}  // namespace strobe
