// MemoryFiles: files that a test makes of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strobe/symbolize/symbol_files.h"
#include "support/bytes.h"

namespace strobe::testing {

// A file of its own bytes. Reads that reach beyond `readable` fail, as those of a file that another
// program has made shorter meanwhile.
class MemoryFile final : public FileSource {
 public:
  explicit MemoryFile(Bytes bytes, std::string identity = "",
                      std::uint64_t readable = ~std::uint64_t{0})
      : bytes_(std::move(bytes)), identity_(std::move(identity)), readable_(readable) {}

  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    const std::uint64_t end = std::min<std::uint64_t>(bytes_.size(), readable_);
    if (offset > end || out.size() > end - offset) return false;
    std::copy_n(std::as_bytes(std::span(bytes_)).begin() + static_cast<std::ptrdiff_t>(offset),
                out.size(), out.begin());
    return true;
  }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] const std::string& identity() const override { return identity_; }

  [[nodiscard]] std::size_t reads() const { return reads_; }

 private:
  const Bytes bytes_;
  const std::string identity_;
  const std::uint64_t readable_;
  mutable std::size_t reads_ = 0;
};

// For one thread at a time.
class MemoryFiles final : public SymbolFiles {
 public:
  // Each call makes another file, also at the same path.
  void Write(const std::string& path, Bytes bytes) {
    files_[path] = {std::move(bytes), std::to_string(++written_)};
  }
  void Remove(const std::string& path) { files_.erase(path); }
  [[nodiscard]] std::size_t opened() const { return opened_; }

  [[nodiscard]] std::unique_ptr<FileSource> Open(const std::string& path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return nullptr;
    ++opened_;
    return std::make_unique<MemoryFile>(found->second.first, found->second.second);
  }
  // Of content that is not compressed.
  [[nodiscard]] std::vector<std::byte> InflateZstd(std::span<const std::byte> compressed,
                                                   std::size_t max_bytes) const override {
    if (compressed.size() > max_bytes) return {};
    return {compressed.begin(), compressed.end()};
  }

 private:
  std::map<std::string, std::pair<Bytes, std::string>> files_;  // bytes and identity
  int written_ = 0;
  mutable std::size_t opened_ = 0;
};

}  // namespace strobe::testing
