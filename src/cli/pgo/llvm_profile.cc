#include "llvm_profile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "count_scale.h"

namespace strobe::internal {
namespace {

bool IsName(std::string_view name) {
  return !name.empty() && std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7F';
  });
}

class Writer {
 public:
  explicit Writer(const CountScale& scale) : scale_(scale) {}

  void Write(const std::string& name, const FunctionSamples& function) {
    absl::StrAppend(&text_, name, ":", Total(function), ":", scale_.Of(function.entries), "\n");
    WriteLines(function, 1);
  }
  std::string Take() { return std::move(text_); }

 private:
  // The sum of what is written.
  [[nodiscard]] std::uint64_t Total(const FunctionSamples& function) const {
    std::uint64_t sum = 0;
    for (const auto& [location, line] : function.lines) sum += scale_.Of(line.count);
    for (const auto& [location, functions] : function.inlined) {
      for (const auto& [name, inlined] : functions) sum += IsName(name) ? Total(inlined) : 0;
    }
    return sum;
  }

  void WriteLocation(LineLocation location, std::size_t depth) {
    text_.append(depth, ' ');
    absl::StrAppend(&text_, location.offset);
    if (location.discriminator != 0) absl::StrAppend(&text_, ".", location.discriminator);
    text_ += ": ";
  }

  void WriteLines(const FunctionSamples& function, std::size_t depth) {
    for (const auto& [location, line] : function.lines) {
      WriteLocation(location, depth);
      absl::StrAppend(&text_, scale_.Of(line.count));
      for (const auto& [name, count] : line.calls) {
        if (IsName(name)) absl::StrAppend(&text_, " ", name, ":", scale_.Of(count));
      }
      text_ += '\n';
    }
    for (const auto& [location, functions] : function.inlined) {
      for (const auto& [name, inlined] : functions) {
        const std::uint64_t total = Total(inlined);
        if (!IsName(name) || total == 0) continue;
        WriteLocation(location, depth);
        absl::StrAppend(&text_, name, ":", total, "\n");
        WriteLines(inlined, depth + 1);
      }
    }
  }

  const CountScale scale_;
  std::string text_;
};

}  // namespace

std::string LlvmProfileText(const FunctionSamplesMap& functions, double sample_amount) {
  std::vector<std::pair<double, const FunctionSamplesMap::value_type*>> order;
  for (const auto& named : functions) {
    const double total = named.second.total();
    if (IsName(named.first) && total > 0) order.emplace_back(total, &named);
  }
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
  Writer writer(CountScale(functions, sample_amount));
  for (const auto& [total, named] : order) writer.Write(named->first, named->second);
  return writer.Take();
}

}  // namespace strobe::internal
