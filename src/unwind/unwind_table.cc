#include "strobe/unwind/unwind_table.h"

#include <limits>
#include <numeric>
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

std::uint64_t UnwindModules::NextSerial() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Rows that differ from the one before, each with the number of what it says. The most frequent
// have the lowest numbers.
std::vector<UnwindTable::NumberedRow> UnwindTable::NumberRows(const std::vector<UnwindRow>& rows) {
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
  dictionary_.reserve(order.size());
  saved_.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<std::uint16_t>(i);
    dictionary_.push_back(meanings[order[i]].row.rule);
    saved_.push_back(meanings[order[i]].row.special_register);
  }
  for (NumberedRow& row : numbered) row.number = rank[row.number];
  return numbered;
}

void UnwindTable::FillWide(Line& line, std::uint16_t in_force, std::span<const NumberedRow> rows) {
  const auto index = static_cast<std::uint32_t>(wide_.size());
  const auto count = static_cast<std::uint32_t>(rows.size() + 1);
  line.bytes[0] = kWide;
  std::memcpy(line.bytes.data() + kIndex, &index, sizeof(index));
  std::memcpy(line.bytes.data() + kWideCount, &count, sizeof(count));
  wide_.push_back({0, in_force});
  for (const NumberedRow& row : rows)
    wide_.push_back({static_cast<std::uint16_t>(row.offset % kLineText), row.number});
}

void UnwindTable::FillLine(Line& line, std::uint16_t in_force, std::span<const NumberedRow> rows) {
  bool is_wide = in_force >= kShortNumbers || rows.size() >= kShortNumbers;
  for (const NumberedRow& row : rows) is_wide |= row.number >= kShortNumbers;
  if (is_wide) return FillWide(line, in_force, rows);
  std::uint8_t* const bytes = line.bytes.data();
  std::uint8_t* offsets = bytes + kOffsets;
  std::uint8_t* rules = bytes + kRules;
  if (rows.size() > kRowsPerLine) {
    const auto index = static_cast<std::uint32_t>(aside_.size());
    bytes[0] = kAside;
    std::memcpy(bytes + kIndex, &index, sizeof(index));
    aside_.resize(aside_.size() + 2 * rows.size() + 1);
    offsets = aside_.data() + index;
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
                         const std::vector<SpecialRule>& specials)
    : specials_(specials.begin(), specials.end()) {
  const std::vector<NumberedRow> numbered = NumberRows(rows);
  lines_.resize(std::size_t{text_bytes} / kLineText + 1);
  std::uint16_t in_force = 0;
  std::size_t next = 0;
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    const std::size_t begin = next;
    while (next < numbered.size() && numbered[next].offset / kLineText == line) ++next;
    FillLine(lines_[line], in_force, std::span(numbered).subspan(begin, next - begin));
    if (next > begin) in_force = numbered[next - 1].number;
  }
  if (!aside_.empty()) aside_.resize(aside_.size() + sizeof(std::uint64_t) - 1);
  aside_.shrink_to_fit();
  wide_.shrink_to_fit();
}

}  // namespace strobe
