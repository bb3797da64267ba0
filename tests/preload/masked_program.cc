// A program whose threads block all signals, as those of pools and libraries do. It prints what a
// test compares with a run that is not recorded: the masks that it sees, and who gets its signals.
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "program_work.h"

namespace {

using strobe::testing::ThreadCpuS;

constexpr double kBusySeconds = 0.25;

volatile unsigned long sink;

template <int kNumber>
[[gnu::noinline]] void Work(double seconds) {
  const double end = ThreadCpuS() + seconds;
  while (ThreadCpuS() < end) {
    for (unsigned long i = 0; i < 100'000; ++i) sink = sink + i * kNumber;
  }
}

// As the program sees it: by each of the two functions, and while it is changed.
void PrintMask(const char* whose) {
  for (const auto read : {&pthread_sigmask, &sigprocmask}) {
    sigset_t mask;
    read(SIG_BLOCK, nullptr, &mask);
    std::printf("%s:", whose);
    for (int signal = 1; signal <= SIGRTMAX; ++signal)
      std::fputs(sigismember(&mask, signal) == 1 ? "1" : "0", stdout);
    std::puts("");
  }
}

sigset_t All() {
  sigset_t all;
  sigfillset(&all);
  return all;
}
sigset_t Only(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  return only;
}

extern "C" {
[[gnu::noinline]] void* WorkOfInheriting(void* /*none*/) {
  PrintMask("inherited");
  Work<1>(kBusySeconds);
  return nullptr;
}
[[gnu::noinline]] void* WorkOfBlocking(void* /*none*/) {
  const sigset_t all = All();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &all, &before);
  PrintMask("blocked");
  Work<2>(kBusySeconds);
  // It and what it has changed are seen, one by one.
  const sigset_t urgent = Only(SIGURG);
  sigprocmask(SIG_UNBLOCK, &urgent, nullptr);
  PrintMask("one let through");
  sigprocmask(SIG_BLOCK, &urgent, nullptr);
  PrintMask("and blocked again");
  sigset_t last;
  pthread_sigmask(SIG_SETMASK, &before, &last);
  std::printf("last: %d\n", sigismember(&last, SIGURG));
  PrintMask("as before");
  return nullptr;
}
[[gnu::noinline]] void* WorkOfAttributes(void* /*none*/) {
  PrintMask("of attributes");
  Work<3>(kBusySeconds);
  return nullptr;
}
[[gnu::noinline]] void* WorkOfChild(void* /*none*/) {
  PrintMask("of a thread that lets it through");
  Work<4>(kBusySeconds);
  return nullptr;
}
}

void RunThread(void* (*run)(void*), const pthread_attr_t* attributes = nullptr) {
  pthread_t thread;
  pthread_create(&thread, attributes, run, nullptr);
  pthread_join(thread, nullptr);
}

int RunThreads() {
  const sigset_t all = All();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  RunThread(&WorkOfInheriting);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setsigmask_np(&attributes, &before);
  RunThread(&WorkOfAttributes, &attributes);
  RunThread(&WorkOfChild);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  RunThread(&WorkOfBlocking);
  PrintMask("main");
  return 0;
}

std::atomic<bool> has_begun{false};
std::atomic<bool> has_ended{false};

void* WorkUntilEnd(void* /*none*/) {
  has_begun.store(true);
  while (!has_ended.load()) Work<5>(0.001);
  return nullptr;
}

// Sends signals to the process, whose threads block them, and takes each by `take`. They come once
// each, to the one that waits, though another thread runs all the time.
template <class Take>
int TakeSignals(const Take& take) {
  const sigset_t all = All();
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_t busy;
  pthread_create(&busy, nullptr, &WorkUntilEnd, nullptr);
  while (!has_begun.load()) {
  }
  int others = 0;
  for (int i = 0; i < 200; ++i) {
    const int sent = i % 2 == 0 ? SIGURG : SIGUSR1;
    kill(getpid(), sent);
    const int got = take(all);
    others += static_cast<int>(got != sent);
  }
  // To a thread.
  pthread_kill(pthread_self(), SIGURG);
  others += static_cast<int>(take(all) != SIGURG);
  const timespec none{};
  std::printf("others: %d, left: %d\n", others, sigtimedwait(&all, nullptr, &none));
  has_ended.store(true);
  pthread_join(busy, nullptr);
  return 0;
}

int TakeByWait(const sigset_t& set) {
  int number = 0;
  return sigwait(&set, &number) == 0 ? number : -1;
}
int TakeFromFile(const sigset_t& set) {
  static const int file = signalfd(-1, &set, SFD_CLOEXEC);
  signalfd_siginfo info{};
  return read(file, &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : -1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "threads") return RunThreads();
  if (mode == "wait") return TakeSignals(&TakeByWait);
  if (mode == "info")
    return TakeSignals([](const sigset_t& set) { return sigwaitinfo(&set, nullptr); });
  if (mode == "file") return TakeSignals(&TakeFromFile);
  return 99;
}
