// RemoteCode: the code that a program with a worker has generated, where its worker finds it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/runtime/code/code_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What a program with a worker has registered. It may end after its profiler.
class RemoteCode final : public GeneratedCodeOwner {
 public:
  // As a CodeRegistry. The area must be open: see RemotePlatform.
  absl::Status Add(const GeneratedCode& code) override;
  void Remove(Address start) override;

 private:
  const std::uint64_t fork_count_ = ForkCount();
  CodeRegistry checked_{&ForkCount};

  static std::uint64_t ForkCount();
};

}  // namespace internal
}  // namespace strobe
