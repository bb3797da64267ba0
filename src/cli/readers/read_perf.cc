#include "read_perf.h"

#include <algorithm>
#include <filesystem>
#include <list>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "../../symbolize/images/byte_source.h"
#include "absl/strings/str_cat.h"
#include "input.h"
#include "memory_limit.h"
#include "perf/perf_account.h"
#include "perf/perf_fields.h"
#include "perf/perf_header.h"
#include "perf/perf_records.h"
#include "zstd.h"

namespace strobe::internal {
namespace {

// Of a directory of perf record --threads.
constexpr std::size_t kMaxParts = 4096;

// The records of a file, one after the other.
struct Part {
  PerfRecordReader reader;
  std::uint64_t size;  // of the file
  ZstdStream zstd{};
  std::vector<std::byte> begun{};  // of a compressed record whose end is in the next piece

  // How far it has been read, from 0 to 1.
  [[nodiscard]] double progress() const {
    return static_cast<double>(reader.offset()) / static_cast<double>(size);
  }
};

class PerfReading {
 public:
  PerfReading(std::span<const ByteSource* const> sources, const PerfOptions& options)
      : sources_(sources),
        options_(options),
        account_(header_, options.files, {.search = options.search}, options.kernel_symbols),
        order_([this](const PerfRecord& record, std::uint64_t time) {
          return account_.Take(record, time);
        }) {
    account_.UseGenerated(options.find_generated);
  }

  absl::StatusOr<LoadedProfile> Read();

 private:
  absl::Status ReadRecords();
  absl::StatusOr<bool> ReadRecord(Part& part);
  absl::Status Take(Part& part, const PerfRecord& record);
  absl::Status TakeFromPerf(Part& part, const PerfRecord& record);
  absl::Status Inflate(Part& part, std::span<const std::byte> compressed);
  absl::Status TakeInflated(Part& part, std::span<const std::byte> bytes);

  const std::span<const ByteSource* const> sources_;  // the first has the header
  const PerfOptions& options_;
  PerfHeader header_;
  PerfAccount account_;
  PerfOrder order_;
  std::uint64_t inflated_bytes_ = 0;
};

absl::StatusOr<LoadedProfile> PerfReading::Read() {
  if (absl::Status status = header_.Read(*sources_[0]); !status.ok()) return status;
  if (absl::Status status = ReadRecords(); !status.ok()) return status;
  if (header_.events.empty()) return absl::InvalidArgumentError("the file has no events");
  const PerfCounts counts = account_.counts();
  absl::StatusOr<LoadedProfile> loaded = account_.Finish();
  if (!loaded.ok()) return loaded;
  if (absl::Status status = account_.status(); !status.ok()) return status;
  loaded->format = "perf.data";
  loaded->comments.push_back(absl::StrCat("perf.data: ", counts.Text()));
  return loaded;
}

// The files of a directory are read side by side, because their records are in the order of their
// times together.
absl::Status PerfReading::ReadRecords() {
  std::list<Part> parts;
  parts.push_back({PerfRecordReader(*sources_[0], header_), header_.end});
  for (const ByteSource* const source : sources_.subspan(1)) {
    if (source->size() > 0) parts.push_back({PerfRecordReader(*source), source->size()});
  }
  while (!parts.empty()) {
    const auto next = std::ranges::min_element(parts, {}, &Part::progress);
    const absl::StatusOr<bool> has_record = ReadRecord(*next);
    if (!has_record.ok()) return has_record.status();
    if (*has_record) continue;
    if (!next->begun.empty() && !header_.is_cut_off)
      return absl::InvalidArgumentError("the compressed records end within one");
    parts.erase(next);
  }
  return order_.Finish();
}

absl::StatusOr<bool> PerfReading::ReadRecord(Part& part) {
  PerfRecord record;
  const absl::StatusOr<bool> has_record = part.reader.Next(record);
  if (!has_record.ok() || !*has_record) return has_record;
  if (options_.progress) options_.progress(part.reader.offset());
  if (absl::Status status = Take(part, record); !status.ok()) return status;
  return true;
}

absl::Status PerfReading::Take(Part& part, const PerfRecord& record) {
  return record.type >= PerfRecordType::kFirstOfPerf ? TakeFromPerf(part, record)
                                                     : order_.Add(record, TimeOf(header_, record));
}

absl::Status PerfReading::Inflate(Part& part, std::span<const std::byte> compressed) {
  while (true) {
    const auto bytes = part.zstd.Next(compressed);
    if (!bytes.ok())
      return absl::Status(bytes.status().code(),
                          absl::StrCat("compressed records: ", bytes.status().message()));
    if (bytes->empty()) return absl::OkStatus();
    inflated_bytes_ += bytes->size();
    if (inflated_bytes_ > kMaxInputBytes)
      return absl::ResourceExhaustedError("the data is longer than what can be read");
    if (absl::Status status = TakeInflated(part, *bytes); !status.ok()) return status;
  }
}

// Compressed records follow each other without regard to the pieces.
absl::Status PerfReading::TakeInflated(Part& part, std::span<const std::byte> bytes) {
  part.begun.insert(part.begun.end(), bytes.begin(), bytes.end());
  const std::vector<std::byte> all = std::exchange(part.begun, {});
  std::span<const std::byte> left = all;
  PerfRecord record;
  while (true) {
    const absl::StatusOr<std::size_t> size = ParseRecord(left, record);
    if (!size.ok()) return size.status();
    if (*size == 0) break;
    if (record.type == PerfRecordType::kCompressed || record.type == PerfRecordType::kCompressed2)
      return absl::InvalidArgumentError("compressed records hold compressed ones");
    if (absl::Status status = Take(part, record); !status.ok()) return status;
    left = left.subspan(*size);
  }
  part.begun.assign(left.begin(), left.end());
  return absl::OkStatus();
}

// What perf itself has written, which has no time.
absl::Status PerfReading::TakeFromPerf(Part& part, const PerfRecord& record) {
  constexpr std::size_t kSizePlace = 4;
  PerfFields fields(record.body);
  switch (record.type) {
    // The rounds of one file say nothing of the others.
    case PerfRecordType::kFinishedRound:
      return sources_.size() == 1 ? order_.EndRound() : absl::OkStatus();
    case PerfRecordType::kAttributes: {
      PerfFields size_fields(record.body);
      size_fields.TakeBytes(kSizePlace);
      const std::span<const std::byte> attributes =
          fields.TakeBytes(size_fields.Take<std::uint32_t>());
      if (account_.has_columns()) return absl::OkStatus();
      return header_.AddEvent(attributes, fields.TakeBytes(fields.remaining()));
    }
    case PerfRecordType::kFeature: {
      const auto number = fields.Take<std::uint64_t>();
      if (fields.ok())
        header_.TakeFeature(static_cast<std::uint32_t>(number),
                            fields.TakeBytes(fields.remaining()));
      return absl::OkStatus();
    }
    case PerfRecordType::kBuildId:
      header_.TakeBuildId(record.misc, record.body);
      return absl::OkStatus();
    case PerfRecordType::kCompressed: return Inflate(part, record.body);
    case PerfRecordType::kCompressed2: {
      const std::span<const std::byte> data = fields.TakeBytes(fields.Take<std::uint64_t>());
      return fields.ok() ? Inflate(part, data)
                         : absl::InvalidArgumentError("a compressed record is cut off");
    }
    default: return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<LoadedProfile> ReadPerfData(std::span<const ByteSource* const> sources,
                                           const PerfOptions& options) {
  MemoryLimit limit(options.max_memory, kLeastPerfMemory);
  std::uint64_t bytes = 0;
  for (const ByteSource* const source : sources) bytes += source->size();
  limit.HasFileBytes(bytes);
  return limit.Within([&] { return PerfReading(sources, options).Read(); });
}

namespace {

using Files = std::vector<std::unique_ptr<FileSource>>;

// What perf record --threads has written: the file "data", and those of its threads.
absl::StatusOr<Files> OpenDirectory(const std::string& path, const SymbolFiles& symbol_files) {
  Files files;
  for (std::string name = "/data"; files.size() < kMaxParts;
       name = absl::StrCat("/data.", files.size() - 1)) {
    std::unique_ptr<FileSource> file = symbol_files.Open(path + name);
    if (file == nullptr) break;
    files.push_back(std::move(file));
  }
  if (files.empty())
    return absl::InvalidArgumentError("a directory without a file of perf, named data");
  return files;
}

// Standard input, and what is no regular file.
absl::StatusOr<std::string> ReadWhole(const std::string& path, const PerfOptions& options) {
  absl::StatusOr<ByteReader> reader = OpenFile(path, options.progress);
  if (!reader.ok()) return reader.status();
  std::string bytes;
  while (true) {
    const absl::StatusOr<std::string_view> more = (*reader)();
    if (!more.ok()) return more.status();
    if (more->empty()) return bytes;
    if (bytes.size() + more->size() > kMaxInputBytes)
      return absl::ResourceExhaustedError("the data is longer than what can be read");
    bytes += *more;
  }
}

}  // namespace

absl::StatusOr<LoadedProfile> ReadPerfFile(const std::string& path, const PerfOptions& options) {
  const auto named = [&path](absl::StatusOr<LoadedProfile> loaded) {
    if (loaded.ok()) return loaded;
    const std::string name = path == "-" ? "standard input" : path;
    return absl::StatusOr<LoadedProfile>(
        absl::Status(loaded.status().code(), absl::StrCat(name, ": ", loaded.status().message())));
  };
  Files files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    absl::StatusOr<Files> of_directory = OpenDirectory(path, options.files);
    if (!of_directory.ok()) return named(of_directory.status());
    files = *std::move(of_directory);
  } else if (std::unique_ptr<FileSource> file = path == "-" ? nullptr : options.files.Open(path)) {
    files.push_back(std::move(file));
  }
  std::vector<const ByteSource*> sources;
  for (const auto& file : files) sources.push_back(file.get());
  if (!sources.empty()) return named(ReadPerfData(sources, options));
  const absl::StatusOr<std::string> bytes = ReadWhole(path, options);
  if (!bytes.ok()) return bytes.status();
  const SpanSource source(std::as_bytes(std::span(*bytes)));
  sources.push_back(&source);
  return named(ReadPerfData(sources, options));
}

}  // namespace strobe::internal
