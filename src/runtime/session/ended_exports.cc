#include "strobe/runtime/session/ended_exports.h"

#include "strobe/runtime/session/output_accounts.h"

namespace strobe::internal {

void AddExports(Stats& stats, const Stats& more) {
  AddOutputs(stats, more.outputs);
  if (!more.partly_named_module.empty()) stats.partly_named_module = more.partly_named_module;
  stats.dumps += more.dumps;
  stats.dumps_failed += more.dumps_failed;
  stats.out_of_memory += more.out_of_memory;
}

}  // namespace strobe::internal
