#include "strobe/export/spool.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strobe {
namespace {

constexpr std::string_view kSuffix = ".spooled";
constexpr std::string_view kDamagedSuffix = ".damaged";
constexpr std::string_view kTemporarySuffix = ".tmp";

// The header: this text, then the length of the rest and its CRC-32, each as 16 hexadecimal digits.
constexpr std::string_view kSpoolMagic = "strobe spool 1\n";
constexpr std::size_t kHeaderBytes = kSpoolMagic.size() + 2 * 16 + 1;

std::uint32_t Checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string WithHeader(std::string_view bytes) {
  std::string file(kSpoolMagic);
  file.reserve(kHeaderBytes + bytes.size());
  file += absl::StrFormat("%016x%016x\n", bytes.size(), Checksum(bytes));
  file += bytes;
  return file;
}

// The bytes behind the header; empty if the header does not fit them.
std::optional<std::string_view> WithoutHeader(std::string_view file) {
  if (file.size() < kHeaderBytes) return std::nullopt;
  const std::string_view bytes = file.substr(kHeaderBytes);
  const std::string header = absl::StrFormat("%016x%016x\n", bytes.size(), Checksum(bytes));
  if (!file.starts_with(kSpoolMagic) || file.substr(kSpoolMagic.size(), header.size()) != header)
    return std::nullopt;
  return bytes;
}

// Takes a decimal number and the character after it off the front of `text`.
template <class T>
bool Consume(std::string_view& text, T& number, char end) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc() || length >= text.size() || text[length] != end) return false;
  text.remove_prefix(length + 1);
  return true;
}

// "<time>.<sequence>.<amount>.spooled"; names sort by time.
std::string FileName(std::int64_t time_ns, std::uint64_t sequence, std::int64_t amount) {
  return absl::StrFormat("%020d.%06d.%d%s", time_ns, sequence, amount, std::string(kSuffix));
}

bool ParseName(std::string_view name, Spool::Entry& entry) {
  std::uint64_t sequence = 0;
  return Consume(name, entry.time_ns, '.') && Consume(name, sequence, '.') &&
         Consume(name, entry.amount, '.') && name == kSuffix.substr(1);
}

bool HasSpoolsSuffix(std::string_view name) {
  return name.ends_with(kSuffix) || name.ends_with(kDamagedSuffix) ||
         name.ends_with(kTemporarySuffix);
}

}  // namespace

absl::Status Spool::Open(std::int64_t now_ns) {
  if (slot_ != nullptr) return absl::OkStatus();
  if (!TakeSlotWithFiles()) {
    if (absl::Status status = TakeAnySlot(); !status.ok()) return status;
  }
  static_cast<void>(Oldest(now_ns));
  DropBeyond(0);
  return absl::OkStatus();
}

void Spool::MoveOn(std::int64_t now_ns) {
  if (slot_ == nullptr || !entries_.empty() || !TakeSlotWithFiles()) return;
  static_cast<void>(Oldest(now_ns));
}

std::string Spool::SlotPath(std::size_t number) const {
  return absl::StrCat(options_.directory, "/", options_.name, ".", number);
}

// Slots are numbered without a gap.
bool Spool::TakeSlotWithFiles() {
  for (std::size_t number = 0; number < kMaxSlots; ++number) {
    auto slot = directories_->OpenExisting(SlotPath(number));
    if (!slot.ok()) return false;
    if (!(*slot)->TryLock()) continue;
    std::deque<Entry> entries = EntriesOf(**slot);
    if (entries.empty()) continue;
    Use(*std::move(slot), std::move(entries));
    return true;
  }
  return false;
}

absl::Status Spool::TakeAnySlot() {
  for (std::size_t number = 0; number < kMaxSlots; ++number) {
    auto slot = directories_->Open(SlotPath(number));
    if (!slot.ok()) return slot.status();
    if (!(*slot)->TryLock()) continue;
    // Another process may have left files since TakeSlotWithFiles.
    std::deque<Entry> entries = EntriesOf(**slot);
    Use(*std::move(slot), std::move(entries));
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("all ", kMaxSlots, " slots of the spool ",
                                                   options_.directory,
                                                   " are in use, or the file system has no locks"));
}

// Removes what a killed process was writing: the slot is locked, so no process writes there now.
std::deque<Spool::Entry> Spool::EntriesOf(const ProfileDirectory& slot) {
  std::deque<Entry> entries;
  std::vector<std::string> damaged;
  for (DirectoryFile& file : slot.List(2 * kMaxFiles, &HasSpoolsSuffix)) {
    Entry entry{.file = std::move(file.name), .bytes = file.bytes};
    if (ParseName(entry.file, entry)) {
      entries.push_back(std::move(entry));
    } else if (entry.file.ends_with(kTemporarySuffix)) {
      static_cast<void>(slot.Remove(entry.file));
    } else {
      damaged.push_back(std::move(entry.file));
    }
  }
  std::ranges::sort(damaged);
  for (std::size_t i = 0; i + kMaxDamagedFiles < damaged.size(); ++i)
    static_cast<void>(slot.Remove(damaged[i]));
  std::ranges::sort(entries, {}, &Entry::file);
  return entries;
}

void Spool::Use(std::unique_ptr<ProfileDirectory> slot, std::deque<Entry> entries) {
  slot_ = std::move(slot);
  entries_ = std::move(entries);
  found_ += entries_.size();
  bytes_ = 0;
  for (const Entry& entry : entries_) bytes_ += entry.bytes;
}

absl::StatusOr<Spool::Entry> Spool::Add(std::string_view bytes, std::int64_t amount,
                                        std::int64_t now_ns) {
  if (absl::Status status = Open(now_ns); !status.ok()) return status;
  const std::string file = WithHeader(bytes);
  if (file.size() > options_.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a profile of ", bytes.size(),
                                                     " bytes is larger than the whole spool of ",
                                                     options_.max_bytes, " bytes"));
  }
  DropBeyond(file.size());
  // Names sort in the order of arrival, even if the system's clock is set back.
  const std::int64_t time_ns =
      entries_.empty() ? now_ns : std::max(now_ns, entries_.back().time_ns);
  Entry entry{.file = FileName(time_ns, sequence_++, amount),
              .bytes = file.size(),
              .time_ns = time_ns,
              .amount = amount};
  auto temporary = slot_->Write(absl::StrCat(entry.file, std::string(kTemporarySuffix)), file);
  if (!temporary.ok()) return temporary.status();
  if (absl::Status status = (*temporary)->Sync(); !status.ok()) return status;
  if (absl::Status status = (*temporary)->RenameTo(entry.file); !status.ok()) return status;
  entries_.push_back(entry);
  bytes_ += entry.bytes;
  // If the names cannot be synced, only a power cut can cost the file.
  static_cast<void>(slot_->Sync());
  return entry;
}

std::optional<Spool::Entry> Spool::Oldest(std::int64_t now_ns) {
  while (!entries_.empty() && entries_.front().time_ns < now_ns - options_.max_age_ns)
    Drop(Entry(entries_.front()), ExportDrop::kTooOld);
  if (entries_.empty()) return std::nullopt;
  return entries_.front();
}

absl::StatusOr<std::string> Spool::Read(const Entry& entry) {
  const absl::StatusOr<std::string> file = slot_->Read(entry.file, entry.bytes);
  const std::optional<std::string_view> bytes = file.ok() ? WithoutHeader(*file) : std::nullopt;
  if (bytes) return std::string(*bytes);
  const std::string path = PathOf(entry);
  SetAside(entry);
  return absl::DataLossError(file.ok() ? absl::StrCat(path, " is damaged")
                                       : std::string(file.status().message()));
}

void Spool::Remove(const Entry& entry) {
  // A file that cannot be removed would be sent again and again, so it is forgotten in any case.
  static_cast<void>(slot_->Remove(entry.file));
  Forget(entry);
}

void Spool::Drop(const Entry& entry, ExportDrop reason) {
  ++drops_[static_cast<std::size_t>(reason)];
  amount_dropped_ += entry.amount;
  Remove(entry);
}

void Spool::DropBeyond(std::uint64_t more_bytes) {
  const std::size_t max_files = more_bytes == 0 ? kMaxFiles : kMaxFiles - 1;
  while (!entries_.empty() &&
         (bytes_ + more_bytes > options_.max_bytes || entries_.size() > max_files))
    Drop(Entry(entries_.front()), ExportDrop::kSpoolFull);
}

void Spool::SetAside(const Entry& entry) {
  ++drops_[static_cast<std::size_t>(ExportDrop::kUnreadable)];
  amount_dropped_ += entry.amount;
  const std::string aside =
      entry.file.substr(0, entry.file.size() - kSuffix.size()) + std::string(kDamagedSuffix);
  if (!slot_->Rename(entry.file, aside).ok()) static_cast<void>(slot_->Remove(entry.file));
  Forget(entry);
}

void Spool::Forget(const Entry& entry) {
  const auto found = std::ranges::find(entries_, entry.file, &Entry::file);
  if (found == entries_.end()) return;
  bytes_ -= found->bytes;
  entries_.erase(found);
}

}  // namespace strobe
