// Child: a program that this process starts and stands for: what is sent to this process goes on to
// the program, and this process ends as the program does. What the program has started, and leaves
// behind, is waited for, too.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "signal_queue.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class Child {
 public:
  // Blocks signals in this process. The program gets the mask and the dispositions that this
  // process had.
  Child();
  // A program that has not been run never is.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  struct Program {
    std::string path;
    std::vector<std::string> arguments;                            // the first is the name
    std::vector<std::pair<std::string, std::string>> variables{};  // added to the environment
  };
  // Update and Await wait for the processes, too, that the program starts, and that those start,
  // daemons included: each of them whose parent has ended becomes a child of this process. A signal
  // that asks this process to end (SIGHUP, SIGINT, SIGQUIT, SIGTERM) ends the wait, if the program
  // has ended. Call it before Fork.
  void FollowTree();
  // From now on only the program is waited for.
  void StopFollowing() { is_following_ = false; }

  // Forks a process that waits for Run. The calling process must have one thread. Returns 0 or the
  // system's error.
  int Fork(const Program& program);
  // Lets it run the program. Returns 0 or exec's error. A file without a format is given to the
  // shell, as shells do.
  int Run();

  // Readable when a signal has come; the program's end is one.
  [[nodiscard]] int descriptor() const { return signals_->descriptor(); }
  // Deals with what has come, and returns true if what is waited for has ended:
  // * signals that a process sends to this one are sent on. Those of the terminal are not: the
  //   terminal sends them to the program, too;
  // * this process stops when the program stops.
  bool Update();
  // Attends to the program until what is waited for has ended. Meanwhile calls `pause` from time to
  // time. Returns false if that time came first.
  bool Await(
      std::chrono::milliseconds period, const std::function<void()>& pause,
      std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max());

  [[nodiscard]] pid_t id() const { return id_; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

  // After the program's end. Signals concern this process again.
  void ReleaseSignals() { signals_.reset(); }
  // After the program's end. Returns its exit status; ends this process if a signal has ended the
  // program.
  [[nodiscard]] int EndAsChildDid() const;

 private:
  [[noreturn]] void RunWhenTold(const Program& program) const;
  [[noreturn]] void Exec(const Program& program) const;
  void Reap();
  void PassOn(const signalfd_siginfo& signal);

  std::optional<SignalQueue> signals_;
  struct sigaction child_action_before_ {};
  Descriptor told_;        // the child's end: a byte in it lets the child run the program
  Descriptor tell_;        // the other end
  Descriptor said_error_;  // says why the program could not be run
  Descriptor say_error_;   // the child's end
  pid_t id_ = 0;
  int wait_status_ = 0;
  bool has_ended_ = false;
  bool is_reaper_ = false;
  bool is_following_ = false;
  bool has_tree_ended_ = false;
  bool is_asked_to_end_ = false;
};

}  // namespace internal
}  // namespace strobe
