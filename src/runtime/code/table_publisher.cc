#include "strobe/runtime/code/table_publisher.h"

#include <utility>

#include "strobe/base/keep_for_ever.h"

namespace strobe::internal {

TablePublisher::~TablePublisher() {
  if (place_ == nullptr) return;
  if (shown_ != nullptr) Show(nullptr);
  if (none_ != nullptr) old_->push_back(std::move(none_));
  FreeOld();
  if (!old_->empty()) KeepForEver(old_.release());
}

void TablePublisher::Begin(Place& place, IsCapturing is_capturing, Expose expose) {
  if (old_ == nullptr) {
    auto old = std::make_unique<Old>();
    old->reserve(kMaxOld + 2);  // Show and the destructor take no memory
    old_ = std::move(old);
  }
  is_capturing_ = std::move(is_capturing);
  expose_ = std::move(expose);
  place_ = &place;
}

bool TablePublisher::Publish(const Tables& tables) {
  FreeOld();
  if (shown_ == tables || old_->size() >= kMaxOld) return false;
  Show(tables);
  FreeOld();
  return true;
}

bool TablePublisher::Replace(const Tables& tables) {
  if (Publish(tables)) return true;
  if (shown_ == tables || (none_ != nullptr && shown_ == none_)) return false;
  if (none_ == nullptr) {
    none_ = std::make_shared<const UnwindModules>(std::vector<UnwindModules::Entry>(),
                                                  /*is_complete=*/false);
  }
  Show(none_);
  return true;
}

void TablePublisher::Show(Tables tables) {
  // A capture sets is_capturing before it loads the pointer. If no capture is seen under way after
  // this store, each later one sees the new tables.
  Tables exposed = expose_ ? expose_(tables) : tables;
  place_->store(exposed.get(), std::memory_order_seq_cst);
  shown_ = std::move(tables);
  std::swap(exposed_, exposed);
  if (exposed != nullptr && exposed != none_) old_->push_back(std::move(exposed));
}

void TablePublisher::FreeOld() {
  if (!old_->empty() && !is_capturing_()) old_->clear();
}

}  // namespace strobe::internal
