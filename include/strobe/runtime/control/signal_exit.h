// SignalExit: exports a session before a signal from outside ends the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/runtime/control/exit_list.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of a platform without such signals.
struct NoEndingSignals {};
template <class P>
struct EndingSignalsOf {
  using Type = NoEndingSignals;
};
template <EndsBySignals P>
struct EndingSignalsOf<P> {
  using Type = typename P::EndingSignals;
};

// Does nothing on a platform without such signals. One object of a process at a time has the
// signals; the others' sessions are in the ExitList.
template <class Platform>
class SignalExit {
 public:
  // When a signal has come, calls stop() on a thread of this object, and stops the sessions in the
  // ExitList. Then the process ends by that signal, at the latest after `patience`. stop() throws
  // nothing.
  SignalExit(std::chrono::nanoseconds patience, std::function<void()> stop)
      : patience_(patience), stop_(std::move(stop)) {}
  // Does not return if a signal has come.
  ~SignalExit() {
    if constexpr (EndsBySignals<Platform>) signals_.Close();
    thread_.Join();
  }
  SignalExit(const SignalExit&) = delete;
  SignalExit& operator=(const SignalExit&) = delete;

  // A session begins: takes the signals whose action is the default now.
  void Take() {
    if constexpr (EndsBySignals<Platform>) {
      if (!signals_.Take(patience_.count()) || thread_.IsRunning()) return;
      thread_ = Platform::RunOnOwnThread("strobe-signal", [this] {
        if (!signals_.Await()) return;
        stop_();
        ExitList::StopAll();
        signals_.EndProcess();
      });
      if (thread_.IsRunning()) return;
      signals_.GiveBack();
      Platform::WriteLine(
          "strobe: " +
          std::string(RefusedThread("exporter.export_on_signal", thread_.error()).message()));
    }
  }

 private:
  const std::chrono::nanoseconds patience_;
  const std::function<void()> stop_;
  typename EndingSignalsOf<Platform>::Type signals_;
  typename Platform::OwnThread thread_;
};

}  // namespace internal
}  // namespace strobe
