#include "kept_files.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace strobe::internal {
namespace {

class KeptFiles {
 public:
  // The first file that is kept stays: others with this key are equal.
  void Keep(const std::string& key, const std::shared_ptr<const FileSource>& file) {
    const std::lock_guard lock(mutex_);
    if (files_.size() >= kMaxKeptFiles)
      std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
    if (files_.size() >= kMaxKeptFiles && !files_.contains(key)) return;
    std::weak_ptr<const FileSource>& kept = files_[key];
    if (kept.expired()) kept = file;
  }

  std::shared_ptr<const FileSource> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(key);
    return found == files_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const FileSource>> files_;
};

constinit std::atomic<KeptFiles*> kept_files{nullptr};

// Empty if nothing tells the module's file from another.
std::string KeyOf(const Module& module) {
  if (module.format != ImageFormat::kElf || !module.has_file()) return "";
  if (!module.build_id.empty()) return module.build_id;
  return module.file_version == 0 ? "" : "version " + std::to_string(module.file_version);
}

}  // namespace

std::uint64_t VersionOfFile(const FileSource& file) {
  return std::hash<std::string>()(file.identity()) | 1;
}

void KeepFile(const Module& module, const std::shared_ptr<const FileSource>& file) {
  const std::string key = KeyOf(module);
  if (key.empty()) return;
  // Never freed: a thread that was left behind may still use it.
  static KeptFiles* const files = new KeptFiles;
  files->Keep(key, file);
  kept_files.store(files, std::memory_order_release);
}

std::shared_ptr<const FileSource> KeptFileOf(const Module& module) {
  KeptFiles* const files = kept_files.load(std::memory_order_acquire);
  const std::string key = files == nullptr ? "" : KeyOf(module);
  return key.empty() ? nullptr : files->Find(key);
}

}  // namespace strobe::internal
