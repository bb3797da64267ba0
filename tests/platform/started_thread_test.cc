#include "../../src/platform/started_thread.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

int calls = 0;

// What StartThread has passed on.
struct Creation {
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
};

void* NoteCall(void* argument) {
  *static_cast<int*>(argument) = ++calls;
  return argument;
}

TEST(StartThreadTest, TheThreadBeginsBeforeItsRoutine) {
  calls = 0;
  int began = 0;
  int ran = 0;
  Creation creation;
  EXPECT_EQ(StartThread(
                &NoteCall, &ran, [&began] { began = ++calls; },
                [&creation](void* (*routine)(void*), void* argument) {
                  creation = {routine, argument};
                  return 0;
                }),
            0);
  EXPECT_EQ(calls, 0) << "nothing runs before the thread";
  EXPECT_EQ(creation.routine(creation.argument), &ran);
  EXPECT_EQ(began, 1);
  EXPECT_EQ(ran, 2);
}

// The sanitizers find what is not freed.
TEST(StartThreadTest, PassesOnThatThereIsNoThread) {
  int ran = 0;
  EXPECT_EQ(StartThread(
                &NoteCall, &ran, [] { ADD_FAILURE() << "there is no thread"; },
                [](void* (*)(void*), void*) { return EAGAIN; }),
            EAGAIN);
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace strobe::internal
