// What a plug-in that has linked a copy of Strobe of its own does for copies_test.
#pragma once

#include <cstdint>
#include <string>

namespace strobe::testing {

class CopyOfStrobe {
 public:
  virtual ~CopyOfStrobe() = default;
  // Forgets earlier sessions. False where the session does not begin.
  virtual bool Start(int signal, double cpu_hz, double wall_hz) = 0;
  // Registers the calling thread; on the same thread, ends that.
  virtual void Register(const char* name) = 0;
  virtual void Unregister() = 0;
  // Ends a period, or the session. False where its profile was not exported.
  virtual bool Flush() = 0;
  virtual bool Stop() = 0;
  // Of all threads of that name.
  virtual std::int64_t CpuNs(const std::string& name) = 0;
  virtual std::int64_t Samples(const std::string& name) = 0;
  virtual std::string Diagnose() = 0;
};

// The symbol that a plug-in has.
inline constexpr const char* kMakeCopy = "StrobeTestMakeCopy";
using MakeCopy = CopyOfStrobe* (*)();

}  // namespace strobe::testing
