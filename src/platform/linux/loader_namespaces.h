// The images of all namespaces of the loader. dl_iterate_phdr lists those of the caller's alone,
// and dlmopen makes others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct LoadedImage {
  Address load_bias = 0;
  Address headers = 0;  // of its program headers
  std::size_t header_count = 0;
  std::string name;  // as the loader has it
};

// By the loader's list for debuggers, which the program's dynamic section names: `dynamic` is where
// that is in memory. It is read without the loader's lock, and as memory that may not be there: an
// image that is loaded or unloaded meanwhile may be missing. The program itself, whose namespace is
// the first, need not be in it. Empty before glibc 2.35, which lists one namespace only, and with
// musl, which has no others.
std::vector<LoadedImage> ImagesOfNamespaces(Address dynamic);

}  // namespace internal
}  // namespace strobe
