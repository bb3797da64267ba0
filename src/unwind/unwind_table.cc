#include "strobe/unwind/unwind_table.h"

#include <limits>
#include <numeric>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace strobe {
namespace {

constexpr std::size_t kShortNumbers = 256;
constexpr std::size_t kMaxNumbers = std::numeric_limits<std::uint16_t>::max();

// What a row says, as one number. Where no caller is found, its special register is not needed.
std::uint64_t KeyOf(const UnwindRow& row) {
  if (row.rule == UnwindRule::Unknown() || row.rule == UnwindRule::Stop()) return row.rule.bits();
  const std::uint32_t saved =
      row.special_register.where | static_cast<std::uint32_t>(row.special_register.distance) << 2;
  return std::uint64_t{saved} << 32 | row.rule.bits();
}

// Numbers keys in the order in which they come. Most rows say what one of the last few said.
class KeyNumbers {
 public:
  // Where the key's number stands, and whether it is new.
  std::pair<std::uint32_t*, bool> Find(std::uint64_t key) {
    Recent& recent = recent_[key * 0x9E3779B97F4A7C15 >> (64 - kRecentBits)];
    if (recent.number != nullptr && recent.key == key) return {recent.number, false};
    const auto [found, is_new] = numbers_.try_emplace(key);
    recent = {key, &found->second};
    return {&found->second, is_new};
  }

 private:
  static constexpr unsigned kRecentBits = 8;
  struct Recent {
    std::uint64_t key = 0;
    std::uint32_t* number = nullptr;
  };
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // an insertion may throw
  std::array<Recent, 1 << kRecentBits> recent_{};
};

}  // namespace

struct UnwindTable::Parts {
  std::vector<NumberedRow> NumberRows(const std::vector<UnwindRow>& rows);
  void FillLine(Line& line, std::uint16_t in_force, std::span<const NumberedRow> rows);
  void FillWide(Line& line, std::uint16_t in_force, std::span<const NumberedRow> rows);

  std::vector<Line> lines;
  std::vector<std::uint8_t> aside;
  std::vector<WideRow> wide;
  std::vector<UnwindRule> dictionary;
  std::vector<SavedRegister> saved;
};

std::uint64_t UnwindModules::NextSerial() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Rows that differ from the one before, each with the number of what it says. The most frequent
// have the lowest numbers.
std::vector<UnwindTable::NumberedRow> UnwindTable::Parts::NumberRows(
    const std::vector<UnwindRow>& rows) {
  struct Meaning {
    UnwindRow row;
    std::size_t count = 0;
  };
  std::vector<Meaning> meanings(1);
  KeyNumbers numbers;
  std::uint64_t last_key = KeyOf({});
  *numbers.Find(last_key).first = 0;
  std::vector<NumberedRow> numbered;
  numbered.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const UnwindRow& row = rows[i];
    const std::uint64_t key = KeyOf(row);
    if (key == last_key || (i + 1 < rows.size() && rows[i + 1].offset == row.offset)) continue;
    last_key = key;
    const auto [number, is_new] = numbers.Find(key);
    if (is_new) {
      // So many have never been seen; the rest is unknown.
      *number = meanings.size() < kMaxNumbers ? static_cast<std::uint32_t>(meanings.size()) : 0;
      if (*number != 0) meanings.push_back({row});
    }
    ++meanings[*number].count;
    numbered.push_back({row.offset, static_cast<std::uint16_t>(*number)});
  }

  std::vector<std::uint16_t> order(meanings.size());
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::sort(order.begin() + 1, order.end(), [&](std::uint16_t a, std::uint16_t b) {
    return meanings[a].count > meanings[b].count;
  });
  std::vector<std::uint16_t> rank(order.size());
  dictionary.reserve(order.size());
  saved.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<std::uint16_t>(i);
    dictionary.push_back(meanings[order[i]].row.rule);
    saved.push_back(meanings[order[i]].row.special_register);
  }
  for (NumberedRow& row : numbered) row.number = rank[row.number];
  return numbered;
}

void UnwindTable::Parts::FillWide(Line& line, std::uint16_t in_force,
                                  std::span<const NumberedRow> rows) {
  const auto index = static_cast<std::uint32_t>(wide.size());
  const auto count = static_cast<std::uint32_t>(rows.size() + 1);
  line.bytes[0] = kWide;
  std::memcpy(line.bytes.data() + kIndex, &index, sizeof(index));
  std::memcpy(line.bytes.data() + kWideCount, &count, sizeof(count));
  wide.push_back({0, in_force});
  for (const NumberedRow& row : rows)
    wide.push_back({static_cast<std::uint16_t>(row.offset % kLineText), row.number});
}

void UnwindTable::Parts::FillLine(Line& line, std::uint16_t in_force,
                                  std::span<const NumberedRow> rows) {
  bool is_wide = in_force >= kShortNumbers || rows.size() >= kShortNumbers;
  for (const NumberedRow& row : rows) is_wide |= row.number >= kShortNumbers;
  if (is_wide) return FillWide(line, in_force, rows);
  std::uint8_t* const bytes = line.bytes.data();
  std::uint8_t* offsets = bytes + kOffsets;
  std::uint8_t* rules = bytes + kRules;
  if (rows.size() > kRowsPerLine) {
    const auto index = static_cast<std::uint32_t>(aside.size());
    bytes[0] = kAside;
    std::memcpy(bytes + kIndex, &index, sizeof(index));
    aside.resize(aside.size() + 2 * rows.size() + 1);
    offsets = aside.data() + index;
    rules = offsets + rows.size();
  }
  *rules++ = static_cast<std::uint8_t>(in_force);
  for (const NumberedRow& row : rows) {
    const std::uint32_t within = row.offset % kLineText;
    ++bytes[1 + within / kEighth];
    *offsets++ = static_cast<std::uint8_t>(within % kEighth);
    *rules++ = static_cast<std::uint8_t>(row.number);
  }
  for (std::size_t eighth = 2; eighth <= 8; ++eighth)
    bytes[eighth] = static_cast<std::uint8_t>(bytes[eighth] + bytes[eighth - 1]);
}

UnwindTable::UnwindTable(std::uint32_t text_bytes, const std::vector<UnwindRow>& rows,
                         const std::vector<SpecialRule>& specials) {
  Parts parts;
  const std::vector<NumberedRow> numbered = parts.NumberRows(rows);
  parts.lines.resize(std::size_t{text_bytes} / kLineText + 1);
  std::uint16_t in_force = 0;
  std::size_t next = 0;
  for (std::size_t line = 0; line < parts.lines.size(); ++line) {
    const std::size_t begin = next;
    while (next < numbered.size() && numbered[next].offset / kLineText == line) ++next;
    parts.FillLine(parts.lines[line], in_force, std::span(numbered).subspan(begin, next - begin));
    if (next > begin) in_force = numbered[next - 1].number;
  }
  if (!parts.aside.empty()) parts.aside.resize(parts.aside.size() + sizeof(std::uint64_t) - 1);
  Join(parts, specials);
}

// Parts of larger elements come first, so that each part is aligned.
void UnwindTable::Join(const Parts& parts, const std::vector<SpecialRule>& specials) {
  static_assert(alignof(SpecialRule) <= alignof(UnwindRule) &&
                alignof(SavedRegister) <= alignof(UnwindRule) &&
                alignof(WideRow) <= alignof(SpecialRule));
  const auto place = [&]<class T>(const std::vector<T>& part) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::exchange(layout_.bytes,
                         layout_.bytes + static_cast<std::uint32_t>(part.size() * sizeof(T)));
  };
  layout_.lines = static_cast<std::uint32_t>(parts.lines.size());
  layout_.rules = static_cast<std::uint32_t>(parts.dictionary.size());
  static_cast<void>(place(parts.lines));
  layout_.dictionary = place(parts.dictionary);
  layout_.saved = place(parts.saved);
  layout_.specials = place(specials);
  layout_.wide = place(parts.wide);
  layout_.aside = place(parts.aside);
  const std::shared_ptr<Line[]> block(
      std::make_unique<Line[]>((layout_.bytes + sizeof(Line) - 1) / sizeof(Line)));
  auto* const bytes = reinterpret_cast<std::byte*>(block.get());
  const auto copy = [&](const auto& part, std::uint32_t at) {
    if (!part.empty()) std::memcpy(bytes + at, part.data(), part.size() * sizeof(part[0]));
  };
  copy(parts.lines, 0);
  copy(parts.dictionary, layout_.dictionary);
  copy(parts.saved, layout_.saved);
  copy(specials, layout_.specials);
  copy(parts.wide, layout_.wide);
  copy(parts.aside, layout_.aside);
  block_ = {block, bytes};
}

}  // namespace strobe
