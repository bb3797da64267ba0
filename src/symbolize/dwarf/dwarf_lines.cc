#include "dwarf_lines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxLengthBytes = 12;
constexpr std::size_t kMaxEntries = std::size_t{1} << 20;  // directories or files

enum Opcode : std::uint8_t {
  kExtended = 0,
  kCopy = 1,
  kAdvancePc = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kSetColumn = 5,
  kConstAddPc = 8,
  kFixedAdvancePc = 9,
};
enum ExtendedOpcode : std::uint8_t { kEndSequence = 1, kSetAddress = 2, kSetDiscriminator = 4 };

// Gives wanted addresses the row before them, row by row.
class RowFinder {
 public:
  RowFinder(std::span<const std::uint64_t> addresses, std::span<LineRow> rows)
      : addresses_(addresses), rows_(rows) {}

  // A row of the program: the code from `address` to that of the next row is at `row`. Resets its
  // discriminator, which is of one row only.
  void Add(std::uint64_t address, LineRow& row) {
    if (!is_in_sequence_ || address < address_) {
      // A linker moves code that it has left out to 0.
      is_live_ = is_in_sequence_ ? is_live_ : address != 0;
      const auto first = std::lower_bound(addresses_.begin(), addresses_.end(), address);
      next_ = static_cast<std::size_t>(first - addresses_.begin());
    } else {
      Take(address);
    }
    is_in_sequence_ = true;
    address_ = address;
    row_ = row;
    row.discriminator = 0;
  }

  void EndSequence(std::uint64_t address) {
    if (is_in_sequence_) Take(address);
    is_in_sequence_ = false;
  }

 private:
  void Take(std::uint64_t limit) {
    for (; next_ < addresses_.size() && addresses_[next_] < limit; ++next_) {
      if (!rows_[next_].is_known && is_live_) rows_[next_] = row_;
    }
  }

  std::span<const std::uint64_t> addresses_;
  std::span<LineRow> rows_;
  bool is_in_sequence_ = false;
  bool is_live_ = true;
  std::uint64_t address_ = 0;
  LineRow row_;
  std::size_t next_ = 0;  // the first address that is not less than address_
};

}  // namespace

std::optional<LineTable> LineTable::Read(DwarfFile& file, std::shared_ptr<const DwarfUnit> unit,
                                         std::size_t max_bytes) {
  if (!unit->line_table.is_present) return std::nullopt;
  const std::uint64_t position = unit->line_table.number;
  LineTable table(file, std::move(unit));
  if (!file.lines.Read(position, std::min<std::uint64_t>(kMaxLengthBytes, file.lines.size()),
                       table.bytes_))
    return std::nullopt;
  DwarfReader reader(table.bytes_, 0);
  const std::uint64_t length = ReadLength(reader, table.shape_.is_64);
  if (!reader.ok() || length > max_bytes ||
      !file.lines.Read(position + reader.position(), length, table.bytes_) || !table.ReadHeader())
    return std::nullopt;
  return table;
}

bool LineTable::ReadHeader() {
  DwarfReader reader(bytes_, 0);
  shape_.version = reader.Read<std::uint16_t>();
  if (!shape_.is_known()) return false;
  if (shape_.version >= 5) reader.Skip(2);  // sizes of an address and of a segment selector
  const std::uint64_t header_bytes = ReadOffset(reader, shape_.is_64);
  if (header_bytes > reader.remaining()) return false;
  program_ = reader.position() + static_cast<std::size_t>(header_bytes);
  instruction_bytes_ = reader.Read<std::uint8_t>();
  if (shape_.version >= 4) reader.Skip(1);  // operations of an instruction
  reader.Skip(1);                           // whether a row begins a statement
  line_base_ = reader.Read<std::int8_t>();
  line_range_ = reader.Read<std::uint8_t>();
  opcode_base_ = reader.Read<std::uint8_t>();
  if (!reader.ok() || line_range_ == 0 || opcode_base_ == 0) return false;
  const std::span<const std::uint8_t> counts = reader.ReadBytes(opcode_base_ - 1U);
  operand_counts_.assign(counts.begin(), counts.end());
  if (shape_.version >= 5) {
    ReadList(reader, directories_);
    ReadList(reader, files_);
  } else {
    ReadOldLists(reader);
  }
  return reader.ok();
}

void LineTable::ReadOldLists(DwarfReader& reader) {
  const auto read_name = [&] { return ReadForm(reader, DwarfForm::kString, 0, shape_); };
  const auto is_empty = [&](const FormValue& name) {
    return !reader.ok() || bytes_[static_cast<std::size_t>(name.number)] == 0;
  };
  directories_.emplace_back();  // [0] is the unit's own directory
  for (FormValue name = read_name(); !is_empty(name); name = read_name()) {
    directories_.push_back({.name = name});
  }
  files_.emplace_back();  // files are counted from 1
  for (FormValue name = read_name(); !is_empty(name); name = read_name()) {
    files_.push_back({.name = name, .directory = reader.ReadUleb()});
    reader.ReadUleb();  // time of its last change
    reader.ReadUleb();  // bytes
  }
}

void LineTable::ReadList(DwarfReader& reader, std::vector<Entry>& entries) const {
  std::vector<Format> formats(reader.Read<std::uint8_t>());
  for (Format& format : formats) {
    format.content = static_cast<DwarfLineContent>(reader.ReadUleb());
    format.form = static_cast<DwarfForm>(reader.ReadUleb());
  }
  const std::uint64_t count = reader.ReadUleb();
  if (count > kMaxEntries || (formats.empty() && count != 0)) return reader.Fail();
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    Entry& entry = entries.emplace_back();
    for (const Format& format : formats) {
      const FormValue value = ReadForm(reader, format.form, 0, shape_);
      if (format.content == DwarfLineContent::kPath) entry.name = value;
      if (format.content == DwarfLineContent::kDirectoryIndex) entry.directory = value.number;
    }
  }
}

std::vector<LineRow> LineTable::Find(std::span<const std::uint64_t> addresses) const {
  std::vector<LineRow> rows(addresses.size());
  RowFinder finder(addresses, rows);
  DwarfReader reader(bytes_, 0);
  reader.Seek(program_);
  const std::uint64_t const_add =
      std::uint64_t{(255U - opcode_base_) / line_range_} * instruction_bytes_;
  const LineRow first{.is_known = true, .line = 1, .column = 0, .discriminator = 0, .file = 1};
  LineRow row = first;
  std::uint64_t address = 0;
  while (reader.remaining() != 0) {
    const auto opcode = reader.Read<std::uint8_t>();
    if (opcode >= opcode_base_) {
      const unsigned adjusted = opcode - opcode_base_;
      address += std::uint64_t{adjusted / line_range_} * instruction_bytes_;
      row.line += static_cast<std::uint32_t>(line_base_ + static_cast<int>(adjusted % line_range_));
      finder.Add(address, row);
      continue;
    }
    switch (opcode) {
      case kExtended: {
        DwarfReader operands = reader.Sub(reader.ReadUleb());
        const auto extended = operands.Read<std::uint8_t>();
        if (extended == kSetAddress) address = operands.Read<std::uint64_t>();
        if (extended == kSetDiscriminator)
          row.discriminator = static_cast<std::uint32_t>(operands.ReadUleb());
        if (extended == kEndSequence) {
          finder.EndSequence(address);
          row = first;
          address = 0;
        }
        break;
      }
      case kCopy: finder.Add(address, row); break;
      case kAdvancePc: address += reader.ReadUleb() * instruction_bytes_; break;
      case kAdvanceLine: row.line += static_cast<std::uint32_t>(reader.ReadSleb()); break;
      case kSetFile: row.file = reader.ReadUleb(); break;
      case kSetColumn: row.column = static_cast<std::uint32_t>(reader.ReadUleb()); break;
      case kConstAddPc: address += const_add; break;
      case kFixedAdvancePc: address += reader.Read<std::uint16_t>(); break;
      default:
        for (unsigned i = 0; i < operand_counts_[opcode - 1U]; ++i) reader.ReadUleb();
        break;
    }
  }
  return rows;
}

std::string LineTable::TextOf(const Entry& entry) const {
  return std::string(file_->TextOf(*unit_, entry.name, bytes_));
}

std::string LineTable::PathOf(std::uint64_t file) const {
  if (file >= files_.size()) return "";
  const auto is_absolute = [](std::string_view path) {
    return path.starts_with('/') || path.starts_with('\\') ||
           (path.size() > 2 && path[1] == ':');  // of Windows
  };
  const auto join = [&](const std::string& directory, const std::string& path) {
    if (directory.empty() || is_absolute(path)) return path;
    return absl::StrCat(directory, directory.ends_with('/') ? "" : "/", path);
  };
  const Entry& entry = files_[static_cast<std::size_t>(file)];
  std::string path = TextOf(entry);
  if (path.empty()) return "";
  if (entry.directory < directories_.size())
    path = join(TextOf(directories_[static_cast<std::size_t>(entry.directory)]), path);
  return join(unit_->directory, path);
}

}  // namespace strobe::internal
