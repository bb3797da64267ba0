// WorkerCode: the code that the program of a worker has generated.
#pragma once

#include <cstdint>
#include <map>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/runtime/code/code_registry.h"
#include "strobe/worker/shared/shared_ranges.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Keeps `registry` as `ranges` are.
class WorkerCode {
 public:
  // Does nothing unless they have changed. std::bad_alloc leaves the rest to the next call.
  void Update(const SharedRanges& ranges, CodeRegistry& registry);

 private:
  std::uint64_t version_ = 0;  // that of the ranges when they were read
  // Where each range begins, by its number; 0 if the registry does not have it.
  std::map<std::uint64_t, Address> known_;
};

}  // namespace internal
}  // namespace strobe
