// Where the bytes of an image come from: a file, or memory. What asks the operating system is under
// platform/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace strobe::internal {

// ReadAt fills all of `out` from `offset`, or is false. Every read is checked anew: a file may be
// cut short at any time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

class SpanSource final : public ByteSource {
 public:
  explicit SpanSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

// A regular file, read call by call and never mapped: a file that somebody cuts short would turn a
// mapping into a SIGBUS. Paths are UTF-8.
class FileSource final : public ByteSource {
 public:
  // Null for anything but a regular file that can be read.
  static std::unique_ptr<FileSource> Open(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override;
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  // Differs for two files, or for one before and after a change of its content.
  [[nodiscard]] const std::string& identity() const { return identity_; }

 private:
  FileSource(std::intptr_t handle, std::uint64_t size, std::string identity)
      : handle_(handle), size_(size), identity_(std::move(identity)) {}

  std::intptr_t handle_;  // the system's
  std::uint64_t size_;
  std::string identity_;
};

// The image that the kernel has put into this very process, if [start, limit) lies in it; otherwise
// empty.
std::span<const std::byte> OwnVdso(std::uint64_t load_bias, std::uint64_t start,
                                   std::uint64_t limit);

}  // namespace strobe::internal
