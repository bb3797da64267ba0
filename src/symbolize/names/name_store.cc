#include "name_store.h"

#include <atomic>
#include <utility>

namespace strobe::internal {
namespace {

constinit std::atomic<NameStore*> shared_names{nullptr};

}  // namespace

std::shared_ptr<const ImageNames> NameStore::Find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->names;
}

void NameStore::Keep(const std::string& key, const std::shared_ptr<const ImageNames>& names) {
  const std::size_t bytes = sizeof(Entry) + key.size() + names->memory_bytes();
  std::list<Entry> entry;
  entry.push_back({.key = key, .names = names, .bytes = bytes});
  const std::lock_guard lock(mutex_);
  if (bytes > limit_bytes_ || !places_.emplace(entry.front().key, entry.begin()).second) return;
  entries_.splice(entries_.begin(), entry);
  bytes_ += bytes;
  for (; bytes_ > limit_bytes_; entries_.pop_back()) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().key);
  }
}

std::shared_ptr<const ImageNames> NameStore::Get(const std::string& key,
                                                 const std::function<ImageNames()>& read) {
  std::shared_ptr<const ImageNames> names = Find(key);
  if (names != nullptr) return names;
  names = std::make_shared<const ImageNames>(read());
  if (names->is_final) Keep(key, names);
  return names;
}

std::size_t NameStore::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void ShareNames(std::size_t limit_bytes) {
  // Never freed: a thread that was left behind may still use it.
  static NameStore* const store = new NameStore(limit_bytes);
  shared_names.store(store, std::memory_order_release);
}

NameStore* SharedNames() { return shared_names.load(std::memory_order_acquire); }

}  // namespace strobe::internal
