// HeldByThread: an object that a thread has until it ends.
#pragma once

#include <pthread.h>

#include <memory>
#include <utility>

namespace strobe::internal {

// One object for each thread. Its destructor runs however the thread ends, after those of C++.
// Never destroyed.
template <class Object>
class HeldByThread {
 public:
  // Called once, before all others. False if the system has no room for it: then nothing is held.
  [[nodiscard]] bool Begin() {
    has_key_ =
        pthread_key_create(&key_, [](void* object) { delete static_cast<Object*>(object); }) == 0;
    return has_key_;
  }

  // What the calling thread has; nullptr if it has nothing.
  [[nodiscard]] Object* Get() const {
    return has_key_ ? static_cast<Object*>(pthread_getspecific(key_)) : nullptr;
  }
  // Ends what the calling thread has.
  void End() const {
    const std::unique_ptr<Object> ended(Get());
    if (ended != nullptr) pthread_setspecific(key_, nullptr);
  }
  // Ends what the calling thread has, and gives it `object`, which ends at once without room.
  // May throw std::bad_alloc.
  void Hold(Object object) const {
    End();
    auto held = std::make_unique<Object>(std::move(object));
    if (has_key_ && pthread_setspecific(key_, held.get()) == 0) static_cast<void>(held.release());
  }

 private:
  pthread_key_t key_{};
  bool has_key_ = false;
};

}  // namespace strobe::internal
