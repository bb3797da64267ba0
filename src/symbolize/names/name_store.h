// NameStore: the names of images, read once for all symbolizers of a process that shares them.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "../images/image_names.h"

namespace strobe::internal {

// Keeps the names that were used last, up to a limit of memory, and after their symbolizers have
// ended too. Thread-safe. A lock of it does not survive a fork.
class NameStore {
 public:
  explicit NameStore(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // The names under `key`; those that `read` reads, unless they are here. Names that are not final
  // are read each time. Two threads that ask for the same names at once may both read them.
  std::shared_ptr<const ImageNames> Get(const std::string& key,
                                        const std::function<ImageNames()>& read);

  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const ImageNames> names;
    std::size_t bytes = 0;
  };

  std::shared_ptr<const ImageNames> Find(const std::string& key);
  void Keep(const std::string& key, const std::shared_ptr<const ImageNames>& names);

  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used in front
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;
  std::size_t bytes_ = 0;
};

// From the first call on, all symbolizers of the process share names, and up to `limit_bytes` of
// them are kept for as long as it runs. For a process that serves many programs and does not fork.
void ShareNames(std::size_t limit_bytes);

// nullptr before the first call of ShareNames.
NameStore* SharedNames();

}  // namespace strobe::internal
