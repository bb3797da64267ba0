#include "strobe/runtime/code/table_publisher.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace strobe::internal {
namespace {

using Tables = TablePublisher::Tables;

Tables NewTables() { return std::make_shared<const UnwindModules>(); }

class TablePublisherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    publisher_ = std::make_unique<TablePublisher>();
    publisher_->Begin(place_, [this] { return is_capturing_; });
  }

  TablePublisher::Place place_{nullptr};
  bool is_capturing_ = false;
  std::unique_ptr<TablePublisher> publisher_;
};

TEST_F(TablePublisherTest, WhatIsReplacedIsFreedAtOnceWhereNoCaptureIsUnderWay) {
  Tables first = NewTables();
  const std::weak_ptr<const UnwindModules> watch = first;
  EXPECT_TRUE(publisher_->Publish(first));
  EXPECT_EQ(place_.load(), first.get());
  EXPECT_FALSE(publisher_->Publish(first)) << "captures see it already";
  first.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_TRUE(publisher_->Publish(NewTables()));
  EXPECT_TRUE(watch.expired());
}

TEST_F(TablePublisherTest, WhatACaptureMayReadStaysUntilItEnds) {
  const std::weak_ptr<const UnwindModules> watch = [&] {
    const Tables first = NewTables();
    publisher_->Publish(first);
    return first;
  }();
  is_capturing_ = true;
  const Tables second = NewTables();
  EXPECT_TRUE(publisher_->Publish(second));
  EXPECT_EQ(place_.load(), second.get());
  EXPECT_FALSE(watch.expired());
  is_capturing_ = false;
  publisher_->Publish(second);
  EXPECT_TRUE(watch.expired());
}

TEST_F(TablePublisherTest, ACaptureThatStandsStillKeepsABoundedNumber) {
  publisher_->Publish(NewTables());
  is_capturing_ = true;
  std::vector<std::weak_ptr<const UnwindModules>> all;
  for (std::size_t i = 0; i < 3 * TablePublisher::kMaxOld; ++i) {
    const Tables next = NewTables();
    all.push_back(next);
    const bool is_shown = publisher_->Publish(next);
    EXPECT_EQ(is_shown, i < TablePublisher::kMaxOld);
    EXPECT_EQ(place_.load() == next.get(), is_shown);
  }
  std::size_t kept = 0;
  for (const auto& tables : all) kept += tables.expired() ? 0 : 1;
  EXPECT_EQ(kept, TablePublisher::kMaxOld) << "the last of them is shown";
  // Of code that has gone, captures must not be told anything.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(publisher_->Replace(NewTables()), i == 0);
  EXPECT_TRUE(place_.load()->entries().empty() && !place_.load()->is_complete());
  is_capturing_ = false;
  const Tables last = NewTables();
  EXPECT_TRUE(publisher_->Publish(last));
  EXPECT_EQ(place_.load(), last.get());
  for (const auto& tables : all) EXPECT_TRUE(tables.expired());
}

TEST_F(TablePublisherTest, ItsEndLeavesNothingToCaptures) {
  const Tables tables = NewTables();
  publisher_->Publish(tables);
  publisher_.reset();
  EXPECT_EQ(place_.load(), nullptr);
  EXPECT_EQ(tables.use_count(), 1);
  const TablePublisher never_begun;
  EXPECT_EQ(never_begun.shown(), nullptr);
}

TEST_F(TablePublisherTest, WhatAStoppedCaptureMayReadOutlivesThePublisher) {
  is_capturing_ = true;
  const Tables first = NewTables();
  publisher_->Publish(first);
  for (std::size_t i = 0; i < TablePublisher::kMaxOld; ++i) publisher_->Publish(NewTables());
  publisher_->Replace(NewTables());
  const UnwindModules* const nothing_known = place_.load();
  publisher_.reset();
  EXPECT_EQ(place_.load(), nullptr);
  EXPECT_GT(first.use_count(), 1);
  EXPECT_FALSE(nothing_known->is_complete()) << "a sanitizer would tell";
}

}  // namespace
}  // namespace strobe::internal
