#include "input.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "zstd.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kFileChunkBytes = std::size_t{256} << 10;
constexpr std::size_t kInflatedChunkBytes = std::size_t{256} << 10;
constexpr std::string_view kGzipMagic = "\x1F\x8B";
constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";

// Reads gzip, member after member.
class Gunzip {
 public:
  explicit Gunzip(ByteReader compressed) : compressed_(std::move(compressed)) {
    is_ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  absl::StatusOr<std::string_view> Next() {
    if (!is_ready_) return absl::ResourceExhaustedError("no memory to decompress gzip");
    stream_.next_out = reinterpret_cast<Bytef*>(chunk_.data());
    stream_.avail_out = static_cast<uInt>(chunk_.size());
    while (stream_.avail_out == chunk_.size()) {
      const absl::StatusOr<bool> has_input = Refill();
      if (!has_input.ok()) return has_input.status();
      if (!*has_input) break;
      if (absl::Status status = Inflate(); !status.ok()) return status;
    }
    return std::string_view(chunk_.data(), chunk_.size() - stream_.avail_out);
  }

 private:
  // False at the end of a whole member; an error in the middle of one.
  absl::StatusOr<bool> Refill() {
    if (stream_.avail_in > 0) return true;
    const absl::StatusOr<std::string_view> bytes = compressed_();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty() && is_in_member_)
      return absl::DataLossError("the gzip data is cut off before its end");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes->data()));
    stream_.avail_in = static_cast<uInt>(bytes->size());
    return !bytes->empty();
  }

  absl::Status Inflate() {
    is_in_member_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      is_in_member_ = false;
      inflateReset(&stream_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat("the gzip data is damaged: ",
                                              stream_.msg == nullptr ? "unknown" : stream_.msg));
    }
    return absl::OkStatus();
  }

  ByteReader compressed_;
  z_stream stream_ = {};
  std::vector<char> chunk_ = std::vector<char>(kInflatedChunkBytes);
  bool is_ready_ = false;
  bool is_in_member_ = false;
};

// Reads zstd, frame after frame.
class Unzstd {
 public:
  explicit Unzstd(ByteReader compressed) : compressed_(std::move(compressed)) {}

  absl::StatusOr<std::string_view> Next() {
    while (true) {
      const absl::StatusOr<std::span<const std::byte>> bytes = stream_.Next(piece_);
      if (!bytes.ok()) return bytes.status();
      if (!bytes->empty())
        return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
      const absl::StatusOr<std::string_view> more = compressed_();
      if (!more.ok()) return more;
      if (more->empty() && !stream_.is_between_frames())
        return absl::DataLossError("the zstd data is cut off before its end");
      if (more->empty()) return std::string_view();
      piece_ = std::as_bytes(std::span(*more));
    }
  }

 private:
  ByteReader compressed_;
  ZstdStream stream_;
  std::span<const std::byte> piece_;  // what the stream has not read
};

absl::Status WhyNot(const std::string& path, const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    return absl::InvalidArgumentError(absl::StrCat(path, " is a directory"));
  if (!std::filesystem::exists(file, ignored))
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  return absl::PermissionDeniedError(absl::StrCat("cannot read ", path));
}

}  // namespace

absl::StatusOr<ByteReader> OpenFile(const std::string& path,
                                    std::function<void(std::uint64_t)> progress) {
  auto file = std::make_shared<std::ifstream>();
  if (path != "-") {
    const std::filesystem::path name(std::u8string(path.begin(), path.end()));
    std::error_code ignored;
    if (std::filesystem::is_directory(name, ignored)) return WhyNot(path, name);
    file->open(name, std::ios::binary);
    if (!file->is_open()) return WhyNot(path, name);
  }
  auto chunk = std::make_shared<std::vector<char>>(kFileChunkBytes);
  std::uint64_t total = 0;
  return [file, chunk, path, total,
          progress = std::move(progress)]() mutable -> absl::StatusOr<std::string_view> {
    std::istream& stream = path == "-" ? std::cin : *file;
    stream.read(chunk->data(), static_cast<std::streamsize>(chunk->size()));
    if (stream.bad()) return absl::UnavailableError(absl::StrCat("cannot read ", path));
    total += static_cast<std::uint64_t>(stream.gcount());
    if (progress) progress(total);
    return std::string_view(chunk->data(), static_cast<std::size_t>(stream.gcount()));
  };
}

ByteReader ReadBytes(std::string_view bytes) {
  return [bytes]() mutable -> absl::StatusOr<std::string_view> { return std::exchange(bytes, {}); };
}

ByteReader Decompressed(ByteReader compressed) {
  ByteReader content;
  return
      [compressed = std::move(compressed), content]() mutable -> absl::StatusOr<std::string_view> {
        if (content) return content();
        auto first = std::make_shared<std::string>();
        while (first->size() < kZstdMagic.size()) {
          const absl::StatusOr<std::string_view> bytes = compressed();
          if (!bytes.ok()) return bytes;
          if (bytes->empty()) break;
          first->append(*bytes);
        }
        ByteReader whole = [compressed, first,
                            is_first = true]() mutable -> absl::StatusOr<std::string_view> {
          if (std::exchange(is_first, false)) return *first;
          return compressed();
        };
        if (first->starts_with(kZstdMagic))
          content = [zstd = std::make_shared<Unzstd>(std::move(whole))] { return zstd->Next(); };
        else if (first->starts_with(kGzipMagic))
          content = [gzip = std::make_shared<Gunzip>(std::move(whole))] { return gzip->Next(); };
        else
          content = std::move(whole);
        return content();
      };
}

absl::Status Input::FillMore(std::size_t bytes) {
  buffer_.erase(0, std::exchange(begin_, 0));
  while (buffer_.size() < bytes) {
    const absl::StatusOr<std::string_view> more = reader_();
    if (!more.ok()) return more.status();
    if (more->empty()) {
      is_end_ = true;
      break;
    }
    total_ += more->size();
    if (total_ > kMaxInputBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the data is longer than ", kMaxInputBytes >> 30, " GiB"));
    }
    buffer_ += *more;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Input::Line(std::string_view& line, std::size_t max_bytes) {
  std::size_t wanted = 1;
  while (true) {
    if (absl::Status status = Fill(wanted); !status.ok()) return status;
    const std::string_view bytes = view();
    std::size_t end = bytes.find('\n');
    const bool is_last = end == std::string_view::npos && bytes.size() < wanted;
    if (std::min(end, bytes.size()) > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a line is longer than ", max_bytes, " bytes"));
    }
    if (end == std::string_view::npos && !is_last) {
      wanted = bytes.size() + 1;
      continue;
    }
    if (bytes.empty()) return false;
    end = std::min(end, bytes.size());
    line = bytes.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    Skip(std::min(end + 1, bytes.size()));
    return true;
  }
}

}  // namespace strobe::internal
