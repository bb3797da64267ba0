#include "amount_text.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strobe::internal {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

template <std::size_t N>
std::string Scaled(double amount, const std::array<Scale, N>& scales) {
  constexpr double kRounding = 0.0005;
  for (std::size_t i = 0; i + 1 < N; ++i) {
    // What the smaller unit would round to 1 of this one is said in this one.
    if (std::abs(amount) >= scales[i].factor - kRounding * scales[i + 1].factor)
      return absl::StrFormat("%.3f %s", amount / scales[i].factor, scales[i].unit);
  }
  return absl::StrFormat("%.0f %s", amount, scales.back().unit);
}

constexpr std::array<Scale, 4> kTimes{{{1e9, "s"}, {1e6, "ms"}, {1e3, "\u00B5s"}, {1, "ns"}}};
constexpr std::array<Scale, 4> kBytes{
    {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}};

double NanosecondsOf(std::string_view unit) {
  if (unit == "nanoseconds") return 1;
  if (unit == "microseconds") return 1e3;
  if (unit == "milliseconds") return 1e6;
  return unit == "seconds" ? 1e9 : 0;
}

}  // namespace

std::string AmountText(std::int64_t amount, std::string_view unit) {
  const double factor = NanosecondsOf(unit);
  if (factor > 0) return Scaled(static_cast<double>(amount) * factor, kTimes);
  if (unit == "bytes") return Scaled(static_cast<double>(amount), kBytes);
  if (unit == "count" || unit.empty()) return absl::StrCat(amount);
  return absl::StrCat(amount, " ", std::string(unit));
}

std::string MeanText(double amount, std::string_view unit) {
  const double factor = NanosecondsOf(unit);
  if (factor > 0 && std::abs(amount * factor) >= 1) return Scaled(amount * factor, kTimes);
  if (factor > 0) return absl::StrFormat("%.3g ns", amount * factor);
  if (unit == "bytes" && std::abs(amount) >= 1) return Scaled(amount, kBytes);
  const bool is_whole = amount == std::round(amount) && std::abs(amount) < 1e15;
  const std::string number =
      is_whole ? absl::StrFormat("%.0f", amount) : absl::StrFormat("%.6g", amount);
  if (unit == "count" || unit.empty()) return number;
  return absl::StrCat(number, " ", unit == "bytes" ? "B" : std::string(unit));
}

}  // namespace strobe::internal
