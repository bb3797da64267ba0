#include "strobe/worker/shared/worker_offer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "../next_descriptor.h"

namespace strobe::internal {
namespace {

using testing::NextDescriptor;

// As the message arrives in a program.
Message Arrived(Message offer) {
  for (int& descriptor : offer.descriptors)
    if (descriptor >= 0) descriptor = dup(descriptor);
  return offer;
}

TEST(WorkerOffer, AProgramMapsWhatTheWorkerHas) {
  const absl::StatusOr<std::shared_ptr<TableStore>> store = TableStore::Create();
  absl::StatusOr<TableMemory> tables = TableMemory::Create("tables", TableMemory::kBytes);
  ASSERT_TRUE(store.ok() && tables.ok());
  tables->bytes()[1] = std::byte{1};
  const Message message = Arrived(JoinOffer(*tables, store->get()));
  const Address address = tables->address();
  *tables = TableMemory();  // the program is another process
  const absl::StatusOr<WorkerOffer> offer = AdoptOffer(message);
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->tables.address(), address);
  EXPECT_EQ(offer->tables.bytes()[1], std::byte{1});
  EXPECT_EQ(offer->store.bytes().size(), TableStore::kMemoryBytes);
}

// The program is served all the same.
TEST(WorkerOffer, WhatCannotBeMappedIsNone) {
  const absl::StatusOr<TableMemory> tables = TableMemory::Create("tables", TableMemory::kBytes);
  ASSERT_TRUE(tables.ok());
  const int next = NextDescriptor();
  const Message good = JoinOffer(*tables, nullptr);
  EXPECT_EQ(good.descriptors[1], -1);
  const auto adopted_bytes = [](const Message& message) {
    const absl::StatusOr<WorkerOffer> offer = AdoptOffer(message);
    return offer.ok() ? offer->tables.bytes().size() + offer->store.bytes().size() : 1;
  };
  EXPECT_EQ(adopted_bytes(Arrived(good)), 0U) << "the worker has it there, in this process";
  Message other = good;
  other.text.pop_back();
  EXPECT_EQ(adopted_bytes(Arrived(other)), 0U);
  other = good;
  other.text.assign(sizeof(Address), '\xff');
  EXPECT_EQ(adopted_bytes(Arrived(other)), 0U);
  other = good;
  other.descriptors = {memfd_create("one", MFD_CLOEXEC), memfd_create("two", MFD_CLOEXEC)};
  EXPECT_EQ(adopted_bytes(other), 0U);
  EXPECT_EQ(adopted_bytes(JoinOffer(TableMemory(), nullptr)), 0U) << "the worker has none";
  EXPECT_EQ(NextDescriptor(), next);
}

TEST(WorkerOffer, ARefusalComesInItsPlace) {
  const absl::Status refusal = absl::ResourceExhaustedError("full");
  const int next = NextDescriptor();
  Message message = AnswerOf(MessageKind::kWelcome, refusal);
  message.descriptors = {memfd_create("one", MFD_CLOEXEC), -1};
  EXPECT_EQ(AdoptOffer(message).status(), refusal);
  EXPECT_EQ(AdoptOffer(AnswerOf(MessageKind::kWelcome, absl::OkStatus())).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(AdoptOffer({.kind = MessageKind::kFlushed}).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(NextDescriptor(), next);
}

}  // namespace
}  // namespace strobe::internal
