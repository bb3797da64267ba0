#include "read_perf.h"

#include <memory>
#include <span>
#include <utility>

#include "../symbolize/byte_source.h"
#include "absl/strings/str_cat.h"
#include "input.h"
#include "perf_account.h"
#include "perf_fields.h"
#include "perf_header.h"
#include "perf_records.h"

namespace strobe::internal {
namespace {

class PerfReading {
 public:
  PerfReading(const ByteSource& source, const PerfOptions& options)
      : source_(source),
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
  absl::Status TakeFromPerf(const PerfRecord& record);

  const ByteSource& source_;
  const PerfOptions& options_;
  PerfHeader header_;
  PerfAccount account_;
  PerfOrder order_;
};

absl::StatusOr<LoadedProfile> PerfReading::Read() {
  if (absl::Status status = header_.Read(source_); !status.ok()) return status;
  if (absl::Status status = ReadRecords(); !status.ok()) return status;
  if (header_.events.empty()) return absl::InvalidArgumentError("the file has no events");
  absl::StatusOr<LoadedProfile> loaded = account_.Finish();
  if (!loaded.ok()) return loaded;
  if (absl::Status status = account_.status(); !status.ok()) return status;
  const PerfCounts counts = account_.counts();
  loaded->format = "perf.data";
  loaded->comments.push_back(
      absl::StrCat("perf.data: ", counts.samples, " samples, ", counts.lost,
                   " lost, stacks deeper than their copy: ", counts.truncated_stacks));
  return loaded;
}

absl::Status PerfReading::ReadRecords() {
  PerfRecordReader reader(source_, header_);
  PerfRecord record;
  while (true) {
    const absl::StatusOr<bool> has_record = reader.Next(record);
    if (!has_record.ok()) return has_record.status();
    if (!*has_record) break;
    const absl::Status status = record.type >= PerfRecordType::kFirstOfPerf
                                    ? TakeFromPerf(record)
                                    : order_.Add(record, TimeOf(header_, record));
    if (!status.ok()) return status;
    if (options_.progress) options_.progress(reader.offset());
  }
  return order_.Finish();
}

// What perf itself has written, which has no time.
absl::Status PerfReading::TakeFromPerf(const PerfRecord& record) {
  constexpr std::size_t kSizePlace = 4;
  PerfFields fields(record.body);
  switch (record.type) {
    case PerfRecordType::kFinishedRound: return order_.EndRound();
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
    case PerfRecordType::kCompressed:
    case PerfRecordType::kCompressed2:
      return absl::InvalidArgumentError(
          "the records are compressed (perf record -z), which is not read");
    default: return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<LoadedProfile> ReadPerfData(const ByteSource& source, const PerfOptions& options) {
  return PerfReading(source, options).Read();
}

absl::StatusOr<LoadedProfile> ReadPerfFile(const std::string& path, const PerfOptions& options) {
  const auto read = [&](const ByteSource& source) -> absl::StatusOr<LoadedProfile> {
    absl::StatusOr<LoadedProfile> loaded = ReadPerfData(source, options);
    if (loaded.ok()) return loaded;
    return absl::Status(loaded.status().code(), absl::StrCat(path == "-" ? "standard input" : path,
                                                             ": ", loaded.status().message()));
  };
  if (path != "-") {
    if (const std::unique_ptr<FileSource> file = options.files.Open(path)) return read(*file);
  }
  // Standard input, and what is no regular file: why not is what opening it says.
  absl::StatusOr<ByteReader> reader = OpenFile(path, options.progress);
  if (!reader.ok()) return reader.status();
  std::string bytes;
  while (true) {
    const absl::StatusOr<std::string_view> more = (*reader)();
    if (!more.ok()) return more.status();
    if (more->empty()) break;
    if (bytes.size() + more->size() > kMaxInputBytes)
      return absl::ResourceExhaustedError("the data is longer than what can be read");
    bytes += *more;
  }
  return read(SpanSource(std::as_bytes(std::span(bytes))));
}

}  // namespace strobe::internal
