// FakeImage: a library of one function, as the bytes of an ELF file. FakeFiles: where it is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "strobe/symbolize/symbol_files.h"
#include "unwind/eh_frame_builder.h"

namespace strobe::testing {

// The code is `text_bytes` long, and every frame of it is `words` words long.
struct FakeImage {
  static constexpr Address kText = 0x1000;          // in the file's address space
  static constexpr std::uint64_t kOffset = 0x1000;  // in the file

  std::uint32_t words = 2;
  std::uint8_t build_id = 0;  // 0: none
  std::uint64_t text_bytes = 0x1000;
  std::uint16_t machine = kX86_64;  // e_machine; aarch64's frames keep x29 and x30 at their top

  static constexpr std::uint16_t kX86_64 = 62;
  static constexpr std::uint16_t kAarch64 = 183;

  [[nodiscard]] std::string BuildId() const {
    constexpr char kDigits[] = "0123456789abcdef";
    if (build_id == 0) return "";
    std::string text;
    for (int i = 0; i < 4; ++i) {
      text += kDigits[build_id >> 4];
      text += kDigits[build_id & 15];
    }
    return text;
  }

  [[nodiscard]] Bytes File() const {
    constexpr std::uint64_t kNote = 0x180;
    constexpr std::uint64_t kHeader = 0x200;
    EhFrameBuilder builder;
    if (machine == kAarch64) {
      builder.Fde(builder.Cie(Aarch64Cie()), kText, text_bytes,
                  Join({DefCfaOffset(words * 8), Offset(kX29, 2), Offset(kX30, 1)}));
    } else {
      builder.Fde(builder.Cie(), kText, text_bytes, DefCfaOffset(words * 8));
    }
    builder.Terminate();
    const Bytes frames =
        Join({{1, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{12}), Bytes(8), builder.bytes});
    const Bytes note = build_id == 0 ? Bytes()
                                     : Join({Fixed(std::uint32_t{4}),
                                             Fixed(std::uint32_t{4}),
                                             Fixed(std::uint32_t{3}),
                                             {'G', 'N', 'U', 0},
                                             Bytes(4, build_id)});
    const Bytes file = Join({{0x7F, 'E', 'L', 'F', 2, 1, 1},
                             Bytes(9),
                             Fixed(std::uint16_t{3}),
                             Fixed(machine),
                             Fixed(std::uint32_t{1}),
                             Fixed(std::uint64_t{0}),
                             Fixed(std::uint64_t{64}),
                             Fixed(std::uint64_t{0}),
                             Fixed(std::uint32_t{0}),
                             Fixed(std::uint16_t{64}),
                             Fixed(std::uint16_t{56}),
                             Fixed(std::uint16_t{4}),
                             Bytes(6),
                             Segment(1, 4, 0, 0, 0x1000),
                             Segment(1, 5, kOffset, kText, text_bytes),
                             Segment(0x6474E550, 4, kHeader, kHeader, frames.size()),
                             Segment(4, 4, kNote, kNote, note.size())});
    Bytes whole(kOffset + text_bytes);
    std::copy(file.begin(), file.end(), whole.begin());
    std::copy(note.begin(), note.end(), whole.begin() + kNote);
    std::copy(frames.begin(), frames.end(), whole.begin() + kHeader);
    return whole;
  }

 private:
  static Bytes Segment(std::uint32_t type, std::uint32_t flags, std::uint64_t offset,
                       Address address, std::uint64_t bytes) {
    return Join({Fixed(type), Fixed(flags), Fixed(offset), Fixed(address), Fixed(address),
                 Fixed(bytes), Fixed(bytes), Fixed(std::uint64_t{0x1000})});
  }
};

// Used by any thread.
class FakeFiles final : public SymbolFiles {
 public:
  // Each call makes another file, even at the same path.
  void Write(const std::string& path, const FakeImage& image) {
    const std::lock_guard lock(mutex_);
    files_[path] = {std::make_shared<const Bytes>(image.File()), std::to_string(++written_)};
  }
  [[nodiscard]] std::uint64_t reads() const { return reads_; }

  [[nodiscard]] std::unique_ptr<FileSource> Open(const std::string& path) const override {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(path);
    if (found == files_.end()) return nullptr;
    return std::make_unique<File>(found->second.first, found->second.second, reads_);
  }

 private:
  class File final : public FileSource {
   public:
    File(std::shared_ptr<const Bytes> bytes, std::string identity,
         std::atomic<std::uint64_t>& reads)
        : bytes_(std::move(bytes)), identity_(std::move(identity)), reads_(reads) {}
    [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
      ++reads_;
      if (offset > bytes_->size() || out.size() > bytes_->size() - offset) return false;
      std::copy_n(std::as_bytes(std::span(*bytes_)).begin() + static_cast<std::ptrdiff_t>(offset),
                  out.size(), out.begin());
      return true;
    }
    [[nodiscard]] std::uint64_t size() const override { return bytes_->size(); }
    [[nodiscard]] const std::string& identity() const override { return identity_; }

   private:
    const std::shared_ptr<const Bytes> bytes_;
    const std::string identity_;
    std::atomic<std::uint64_t>& reads_;
  };

  mutable std::mutex mutex_;
  std::map<std::string, std::pair<std::shared_ptr<const Bytes>, std::string>> files_;
  int written_ = 0;
  mutable std::atomic<std::uint64_t> reads_ = 0;
};

}  // namespace strobe::testing
