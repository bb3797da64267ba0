// Bytes as the sections of debug information: the lines and functions that are read of it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf/dwarf_file.h"
#include "dwarf/dwarf_index.h"
#include "dwarf/dwarf_source.h"
#include "dwarf/dwarf_split.h"
#include "elf/inflated_source.h"
#include "fuzz_input.h"
#include "images/section_bytes.h"
#include "support/check.h"

namespace strobe::testing {
namespace {

using internal::DwarfFile;
using internal::SectionBytes;

constexpr std::array<std::string_view, 10> kSections = {
    ".debug_info",        ".debug_abbrev", ".debug_line",   ".debug_str",      ".debug_line_str",
    ".debug_str_offsets", ".debug_addr",   ".debug_ranges", ".debug_rnglists", ".debug_cu_index"};
constexpr std::size_t kMaxUnitBytes = std::size_t{1} << 20;

class Bytes final : public ByteSource {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// The first byte: 1 if .debug_info is compressed, 2 if the file has its own split units. Then the
// lengths of the sections, and their bytes.
struct Input {
  bool is_compressed = false;
  bool is_split = false;
  std::array<std::shared_ptr<const ByteSource>, kSections.size()> sections;

  explicit Input(FuzzInput input) {
    const auto mode = input.Take<std::uint8_t>();
    is_compressed = (mode & 1) != 0;
    is_split = (mode & 2) != 0;
    std::array<std::uint16_t, kSections.size()> lengths{};
    for (std::uint16_t& length : lengths) length = input.Take<std::uint16_t>();
    for (std::size_t i = 0; i < kSections.size(); ++i)
      sections[i] = std::make_shared<Bytes>(input.TakeBytes(lengths[i]));
  }

  [[nodiscard]] SectionBytes Find(std::string_view name) const {
    const std::string_view plain = name.substr(0, name.find(".dwo"));
    for (std::size_t i = 0; i < kSections.size(); ++i) {
      if (kSections[i] != plain) continue;
      std::shared_ptr<const ByteSource> source = sections[i];
      if (i == 0 && is_compressed)
        source = internal::InflatedSource::Open(source, 0, source->size());
      if (source == nullptr) return {};
      const std::uint64_t size = source->size();
      return {std::move(source), 0, size};
    }
    return {};
  }
};

void Run(const Input& input) {
  const DwarfFile::SectionFinder find = [&](const std::string& name) { return input.Find(name); };
  internal::SplitUnits split(
      [&](const std::string& /*path*/) -> std::optional<DwarfFile::SectionFinder> {
        return input.is_split ? std::optional(find) : std::nullopt;
      },
      "package");
  internal::DwarfIndex index;
  internal::DwarfSource source({std::make_unique<DwarfFile>(find, ""),
                                std::make_unique<DwarfFile>(find, ""), std::move(split)},
                               index, kMaxUnitBytes);
  const std::vector<std::uint64_t> addresses = {0,      1,      0x1000, 0x1004,  0x1008,
                                                0x1010, 0x1023, 0x1040, 0x10000, ~std::uint64_t{0}};
  std::size_t answers = 0;
  bool is_late = true;
  bool is_done = false;
  // The first calls have no time, and must come to an end all the same.
  for (int call = 0; call < 1000 && !is_done; ++call) {
    answers = 0;
    is_late = call < 100;
    is_done = source.Find(
        addresses, [&] { return is_late; },
        [&](std::uint64_t /*address*/, std::span<const SourceFrame> frames) {
          ++answers;
          testing::Check(frames.size() <= 1000, "more functions than are kept");
        });
  }
  testing::Check(is_done && answers == addresses.size(), "an address without an answer");
}

}  // namespace
}  // namespace strobe::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  strobe::testing::Run(strobe::testing::Input({data, size}));
  return 0;
}
