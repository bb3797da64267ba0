#include "strobe/worker/shared/worker_offer.h"

#include <cstring>
#include <utility>

#include "strobe/base/address.h"

namespace strobe::internal {
namespace {

// None if the message has no such descriptor, or if it cannot be mapped.
TableMemory AdoptOrNone(int descriptor, std::size_t bytes, Address address) {
  if (descriptor < 0) return {};
  absl::StatusOr<TableMemory> memory = TableMemory::Adopt(descriptor, bytes, address);
  return memory.ok() ? *std::move(memory) : TableMemory();
}

}  // namespace

Message JoinOffer(const TableMemory& tables, const TableStore* store) {
  Message offer{.kind = MessageKind::kOffer};
  if (tables.bytes().empty()) return offer;
  const Address address = tables.address();
  offer.text.assign(reinterpret_cast<const char*>(&address), sizeof(address));
  offer.descriptors = {tables.descriptor(), store != nullptr ? store->descriptor() : -1};
  return offer;
}

absl::StatusOr<WorkerOffer> AdoptOffer(const Message& message) {
  Address address = 0;
  if (message.kind == MessageKind::kOffer && message.text.size() == sizeof(address))
    std::memcpy(&address, message.text.data(), sizeof(address));
  WorkerOffer offer;
  if (address != 0) {
    offer.tables = AdoptOrNone(message.descriptors[0], TableMemory::kBytes, address);
    offer.store = AdoptOrNone(message.descriptors[1], TableStore::kMemoryBytes, 0);
  } else {
    CloseDescriptors(message);
  }
  if (message.kind == MessageKind::kOffer) return offer;
  absl::Status refusal = StatusOf(message, MessageKind::kWelcome);
  return refusal.ok() ? absl::InternalError("the worker welcomes before it offers") : refusal;
}

}  // namespace strobe::internal
