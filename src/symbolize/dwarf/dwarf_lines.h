// LineTable: the source lines of a unit's code (DWARF 5, section 6.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dwarf_file.h"
#include "unwind/dwarf_reader.h"

namespace strobe::internal {

struct LineRow {
  bool is_known = false;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t discriminator = 0;  // tells blocks of one line apart; 0 for most rows
  std::uint64_t file = 0;           // index into the table's files
};

class LineTable {
 public:
  // The table of a unit; empty if it has none, or if its header is broken, or if it has more than
  // `max_bytes`. `file` must outlive the table.
  static std::optional<LineTable> Read(DwarfFile& file, std::shared_ptr<const DwarfUnit> unit,
                                       std::size_t max_bytes);

  // The row of each address. `addresses` are sorted.
  [[nodiscard]] std::vector<LineRow> Find(std::span<const std::uint64_t> addresses) const;

  // The path of a file; empty if there is no such file.
  [[nodiscard]] std::string PathOf(std::uint64_t file) const;

 private:
  // An entry of the lists of directories and of files.
  struct Entry {
    FormValue name;
    std::uint64_t directory = 0;
  };
  struct Format {
    DwarfLineContent content{};
    DwarfForm form{};
  };

  LineTable(DwarfFile& file, std::shared_ptr<const DwarfUnit> unit)
      : file_(&file), unit_(std::move(unit)) {}
  bool ReadHeader();
  void ReadOldLists(DwarfReader& reader);
  void ReadList(DwarfReader& reader, std::vector<Entry>& entries) const;
  [[nodiscard]] std::string TextOf(const Entry& entry) const;

  DwarfFile* file_;
  std::shared_ptr<const DwarfUnit> unit_;
  std::vector<std::uint8_t> bytes_;  // of the table
  std::size_t program_ = 0;          // where its instructions begin
  UnitShape shape_;
  std::uint8_t instruction_bytes_ = 1;
  std::int8_t line_base_ = 0;
  std::uint8_t line_range_ = 1;
  std::uint8_t opcode_base_ = 1;
  std::vector<std::uint8_t> operand_counts_;  // of the opcodes from 1 on
  std::vector<Entry> directories_;
  std::vector<Entry> files_;
};

}  // namespace strobe::internal
