// Of libstrobe-preload-exceptions.so: the default parts, and exceptions.
#include <utility>

#include "basic_preload_profiler.h"
#include "strobe/exceptions/exception_sampling.h"

namespace strobe::internal {
namespace {

class ExceptionProfiler final : public BasicPreloadProfiler<ExceptionTraits> {
 public:
  explicit ExceptionProfiler(ProfilerOptions options) : BasicPreloadProfiler(std::move(options)) {}

 private:
  const ExceptionSampling sampling_{profiler};
};

}  // namespace

PreloadProfiler& MakePreloadProfiler(ProfilerOptions options) {
  return *new ExceptionProfiler(std::move(options));
}

}  // namespace strobe::internal
