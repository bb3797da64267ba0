// LevelMemory: the memory that a LevelProvider's levels lie in where another process, a worker,
// profiles the program.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Joins two libraries that a program may have or not: the one that keeps levels, and the one that
// shares memory with a worker. Thread-safe; needs no memory.
class LevelMemory {
 public:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;
  // Finds such memory; empty if there is none.
  using Find = std::span<std::byte> (*)();
  using Moved = void (*)(std::span<std::byte> memory);

  // In the program, by what shares memory: there is some, of kBytes zeros, which `find` finds. In a
  // fork's child, it finds none until the child has memory of its own, and calls Share again.
  static void Share(Find find) {
    shared_.store(find, std::memory_order_seq_cst);
    if (const Moved moved = moved_.load(std::memory_order_seq_cst)) moved(find());
  }
  // In the program, by what keeps levels: calls moved(memory) at each Share from now on.
  static void Tell(Moved moved) { moved_.store(moved, std::memory_order_seq_cst); }
  // This process's.
  static std::span<std::byte> Shared() {
    const Find find = shared_.load(std::memory_order_seq_cst);
    return find != nullptr ? find() : std::span<std::byte>();
  }

  // In a worker: `find` finds that of the program that the calling thread serves. The program may
  // write anything there at any time.
  static void Serve(Find find) { served_.store(find, std::memory_order_release); }
  static std::span<const std::byte> Served() {
    const Find find = served_.load(std::memory_order_acquire);
    return find != nullptr ? find() : std::span<std::byte>();
  }

 private:
  static constinit inline std::atomic<Find> shared_{nullptr};
  static constinit inline std::atomic<Moved> moved_{nullptr};
  static constinit inline std::atomic<Find> served_{nullptr};
};

}  // namespace internal
}  // namespace strobe
