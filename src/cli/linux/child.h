// Child: a program that this process has started and stands for: what is sent to this process goes
// on to the program, and this process ends as the program does.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace strobe::internal {

class Child {
 public:
  // Blocks signals in this process, for as long as the object lives. The program gets the mask and
  // the dispositions that this process had.
  Child();
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts the file at `path` with `arguments`, of which the first is the name, and with the
  // environment, to which `variables` are added. Returns 0 or exec's error. A file without a format
  // is given to the shell, as shells do.
  int Start(const std::string& path, const std::vector<std::string>& arguments,
            const std::vector<std::pair<std::string, std::string>>& variables);

  // Returns when the program has ended. Meanwhile
  // * signals that a process sends to this one are sent on. Those of the terminal are not: the
  //   terminal sends them to the program, too;
  // * this process stops when the program stops;
  // * `pause` is called from time to time.
  void Await(std::chrono::milliseconds period, const std::function<void()>& pause);

  [[nodiscard]] pid_t id() const { return id_; }

  // After Await. Returns the exit status; ends this process if the program was ended by a signal.
  [[nodiscard]] int EndAlike() const;

 private:
  [[noreturn]] void Exec(int error_pipe, const std::string& path,
                         const std::vector<std::string>& arguments) const;
  // True if the program has ended.
  bool Reap();
  void PassOn(const siginfo_t& signal) const;

  sigset_t mask_before_{};
  struct sigaction child_action_before_ {};
  pid_t id_ = 0;
  int wait_status_ = 0;
};

}  // namespace strobe::internal
