// Amounts as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strobe::internal {

// "1.234 s", "12.3 MiB", "42", "17 widgets".
std::string AmountText(std::int64_t amount, std::string_view unit);
// The same for a mean, which may be none of whole units.
std::string MeanText(double amount, std::string_view unit);

}  // namespace strobe::internal
