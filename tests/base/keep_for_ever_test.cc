#include "strobe/base/keep_for_ever.h"

#include <memory>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

struct List {
  std::unique_ptr<List> next;
};

// With LeakSanitizer, this program fails at its end if either object counts as a leak.
TEST(KeepForEver, NeitherTheObjectNorWhatItPointsToIsALeak) {
  auto list = std::make_unique<List>();
  list->next = std::make_unique<List>();
  KeepForEver(list.release());
}

}  // namespace
}  // namespace strobe::internal
