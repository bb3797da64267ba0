// refused: ring.Commit(bytes)
// refused: noexcept | throw
#include "strobe/ring/sample_ring.h"

struct MyRing {
  void Reset(std::span<std::byte>) noexcept {}
  std::byte* Reserve(std::size_t) noexcept { return nullptr; }
#ifdef REFUSED
  void Commit(std::size_t) {}  // Called in a signal handler, which no exception can leave.
#else
  void Commit(std::size_t) noexcept {}
#endif
  std::span<const std::byte> Peek() noexcept { return {}; }
  void Pop() noexcept {}
  std::size_t used_bytes() const noexcept { return 0; }
  std::uint64_t corruptions() const noexcept { return 0; }
  static std::size_t MaxRecordBytes(std::size_t capacity) { return capacity; }
};
static_assert(strobe::SampleRing<MyRing>);
