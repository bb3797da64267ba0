#include "inflated_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elf_format.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kInputBytes = 32 * 1024;
constexpr std::size_t kSkippedBytes = 64 * 1024;
// Content is inflated in blocks of this size. The last one is kept, because a reader of debug
// information goes back from a unit's header to the bytes behind it, and to inflate from the mark
// before each time takes seconds.
constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr std::uint64_t kMinMarkDistance = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxRatio = 1032;  // zlib's documentation, "Maximum Compression Factor"

}  // namespace

// A position in the content, which only moves forward, and earlier positions to go back to.
class InflatedSource::Stream {
 public:
  Stream(std::shared_ptr<const ByteSource> file, std::uint64_t offset, std::uint64_t bytes,
         std::uint64_t inflated_bytes)
      : file_(std::move(file)),
        offset_(offset),
        bytes_(bytes),
        inflated_bytes_(inflated_bytes),
        mark_distance_(std::max(kMinMarkDistance, inflated_bytes / kMaxMarks + 1)) {
    marks_.reserve(kMaxMarks);  // zlib's states must not be moved
    is_ok_ = inflateInit(&now_.state) == Z_OK;
  }
  ~Stream() {
    inflateEnd(&now_.state);
    for (Place& mark : marks_) inflateEnd(&mark.state);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool Read(std::uint64_t position, std::span<std::byte> out) {
    while (!out.empty()) {
      const std::uint64_t begin = position - position % kBlockBytes;
      if ((block_.empty() || begin != block_at_) && !ReadBlock(begin)) return false;
      const auto from = std::span(block_).subspan(static_cast<std::size_t>(position - begin));
      const std::size_t count = std::min(from.size(), out.size());
      std::ranges::copy(from.first(count), out.begin());
      out = out.subspan(count);
      position += count;
    }
    return true;
  }

 private:
  struct Place {
    z_stream state{};
    std::uint64_t input = 0;  // compressed bytes before the place
    std::uint64_t position = 0;
  };

  bool ReadBlock(std::uint64_t begin) {
    block_.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, inflated_bytes_ - begin)));
    if (is_ok_ && GoTo(begin) && Inflate(block_)) {
      MarkIfFar();
      block_at_ = begin;
      return true;
    }
    block_.clear();
    return false;
  }

  bool GoTo(std::uint64_t position) {
    auto mark = std::upper_bound(
        marks_.begin(), marks_.end(), position,
        [](std::uint64_t value, const Place& place) { return value < place.position; });
    const bool is_behind = now_.position > position;
    if (mark != marks_.begin() && (is_behind || (mark - 1)->position > now_.position)) {
      if (!Restore(*(mark - 1))) return false;
    } else if (is_behind) {
      if (inflateReset(&now_.state) != Z_OK) return false;
      now_.input = 0;
      now_.position = 0;
    }
    while (now_.position < position) {
      const std::uint64_t count =
          std::min<std::uint64_t>(skipped_.size(), position - now_.position);
      if (!Inflate(std::span(skipped_).first(static_cast<std::size_t>(count)))) return false;
      MarkIfFar();
    }
    return true;
  }

  bool Inflate(std::span<std::byte> out) {
    z_stream& state = now_.state;
    while (!out.empty()) {
      const std::uint64_t count = std::min<std::uint64_t>(input_.size(), bytes_ - now_.input);
      const auto input = std::span(input_).first(static_cast<std::size_t>(count));
      if (input.empty() || !file_->ReadAt(offset_ + now_.input, std::as_writable_bytes(input)))
        return is_ok_ = false;
      const auto wanted = static_cast<uInt>(std::min(out.size(), kSkippedBytes));
      state.next_in = input.data();
      state.avail_in = static_cast<uInt>(input.size());
      state.next_out = reinterpret_cast<Bytef*>(out.data());
      state.avail_out = wanted;
      const int result = inflate(&state, Z_NO_FLUSH);
      const std::size_t made = wanted - state.avail_out;
      now_.input += input.size() - state.avail_in;
      now_.position += made;
      out = out.subspan(made);
      if (result == Z_STREAM_END && out.empty()) return true;
      if (result != Z_OK) return is_ok_ = false;
    }
    return true;
  }

  [[nodiscard]] std::uint64_t LastMark() const {
    return marks_.empty() ? 0 : marks_.back().position;
  }

  void MarkIfFar() {
    if (marks_.size() < kMaxMarks && now_.position >= LastMark() + mark_distance_) Mark();
  }
  void Mark() {
    Place& mark = marks_.emplace_back();
    mark.input = now_.input;
    mark.position = now_.position;
    if (inflateCopy(&mark.state, &now_.state) != Z_OK) marks_.pop_back();
  }

  bool Restore(Place& mark) {
    inflateEnd(&now_.state);
    now_ = {};
    is_ok_ = inflateCopy(&now_.state, &mark.state) == Z_OK;
    now_.input = mark.input;
    now_.position = mark.position;
    return is_ok_;
  }

  std::shared_ptr<const ByteSource> file_;
  std::uint64_t offset_;
  std::uint64_t bytes_;
  std::uint64_t inflated_bytes_;
  std::uint64_t mark_distance_;
  bool is_ok_ = false;
  Place now_;
  std::vector<Place> marks_;      // by position
  std::vector<std::byte> block_;  // the last one that was read; empty if there is none
  std::uint64_t block_at_ = 0;
  std::array<Bytef, kInputBytes> input_{};
  std::array<std::byte, kSkippedBytes> skipped_{};
};

std::shared_ptr<const InflatedSource> InflatedSource::Open(std::shared_ptr<const ByteSource> file,
                                                           std::uint64_t offset,
                                                           std::uint64_t bytes) {
  std::array<std::uint8_t, sizeof(CompressionHeader)> buffer{};
  const std::span head = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), bytes));
  if (!file->ReadAt(offset, std::as_writable_bytes(head))) return nullptr;
  const std::optional<CompressedContent> content = FindCompressedContent(head);
  if (!content.has_value() || content->type != CompressionHeader::kZlib ||
      bytes <= content->head_bytes)
    return nullptr;
  const std::uint64_t compressed = bytes - content->head_bytes;
  if (content->size > kMaxBytes || content->size / kMaxRatio > compressed) return nullptr;
  return std::make_shared<const InflatedSource>(std::move(file), offset + content->head_bytes,
                                                compressed, content->size);
}

InflatedSource::InflatedSource(std::shared_ptr<const ByteSource> file, std::uint64_t offset,
                               std::uint64_t bytes, std::uint64_t inflated_bytes)
    : inflated_bytes_(inflated_bytes),
      stream_(std::make_unique<Stream>(std::move(file), offset, bytes, inflated_bytes)) {}
InflatedSource::~InflatedSource() = default;

bool InflatedSource::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > inflated_bytes_ || out.size() > inflated_bytes_ - offset) return false;
  return stream_->Read(offset, out);
}

}  // namespace strobe::internal
