// SplitUnits: the entries that a compiler has left out of a program, in .dwo files or in the
// program's .dwp file (DWARF 5, sections 3.1.3 and 7.3.5).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dwarf_file.h"

namespace strobe::internal {

class SplitUnits {
 public:
  // Opens a file; empty if it is not there. The result must not depend on the opener's life.
  using Opener = std::function<std::optional<DwarfFile::SectionFinder>(const std::string& path)>;

  struct Split {
    std::unique_ptr<DwarfFile> file;
    std::shared_ptr<const DwarfUnit> unit;  // knows its skeleton's addresses
  };

  // `package` is where the .dwp file would be.
  SplitUnits(Opener open, std::string package)
      : open_(std::move(open)), package_path_(std::move(package)) {}

  // The entries of `skeleton`, a unit of `main`; empty if they are not there.
  std::optional<Split> Open(DwarfFile& main, const DwarfUnit& skeleton);

 private:
  std::optional<Split> OpenIn(const DwarfFile::SectionFinder& find, DwarfFile& main,
                              const DwarfUnit& skeleton);
  std::optional<DwarfFile::SectionFinder> InPackage(std::uint64_t dwo_id);

  Opener open_;
  std::string package_path_;
  bool has_opened_package_ = false;
  std::optional<DwarfFile::SectionFinder> package_;
};

}  // namespace strobe::internal
