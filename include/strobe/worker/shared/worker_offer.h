// WorkerOffer: the memory for tables that a worker has for a program, and how it offers that.
#pragma once

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/worker/shared/handshake.h"
#include "strobe/worker/shared/shared_tables.h"
#include "strobe/worker/shared/table_store.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// As the program has mapped it. Either may be none: captures then send their stacks along.
struct WorkerOffer {
  TableMemory tables;  // for SharedTables: at the worker's address
  TableMemory store;   // of the TableStore: at any address
};

// In the worker. Its descriptors are those of the arguments. `store` may be nullptr.
Message JoinOffer(const TableMemory& tables, const TableStore* store);

// In the program. Takes over the descriptors. What cannot be mapped is none. If the message is the
// worker's refusal in place of an offer, that status; Internal if it is neither.
absl::StatusOr<WorkerOffer> AdoptOffer(const Message& message);

}  // namespace internal
}  // namespace strobe
