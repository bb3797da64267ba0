// SharedSymbolizer: one symbolizer for all programs of a worker, so that the names of an image are
// read once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/symbolize/symbolizer.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Programs with the same options share the symbolizer and its memory (symbols.memory_bytes). It
// works for one of them at a time. It tells files apart by their identities, not by their names.
template <class S>
class SharedSymbolizer {
 public:
  // Those of other options that are kept for the next program.
  static constexpr std::size_t kMaxKept = 4;

  explicit SharedSymbolizer(const SymbolOptions& options) : shared_(Find(options)) {}

  absl::StatusOr<Symbols> Symbolize(const Profile& profile) {
    const std::lock_guard lock(shared_->mutex);
    return shared_->symbolizer.Symbolize(profile);
  }

 private:
  struct Shared {
    explicit Shared(const SymbolOptions& options) : symbolizer(options) {}
    std::mutex mutex;
    S symbolizer;
  };
  struct Kept {
    std::string options;
    std::shared_ptr<Shared> shared;
  };
  struct All {
    std::mutex mutex;
    std::vector<Kept> kept;  // that of the last program at the end
  };

  static std::shared_ptr<Shared> Find(const SymbolOptions& options) {
    static All* const all = new All;  // never freed: a thread that hangs may still use one
    const std::string key = absl::StrCat(static_cast<int>(*options.mode), ":", *options.time_s, ":",
                                         *options.memory_bytes, ":", *options.debug_directories);
    const std::lock_guard lock(all->mutex);
    const auto known = std::ranges::find(all->kept, key, &Kept::options);
    if (known != all->kept.end()) {
      std::rotate(known, known + 1, all->kept.end());
      return all->kept.back().shared;
    }
    if (all->kept.size() == kMaxKept) all->kept.erase(all->kept.begin());
    all->kept.push_back({key, std::make_shared<Shared>(options)});
    return all->kept.back().shared;
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
