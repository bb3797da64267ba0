#include "gcc_profile.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "count_scale.h"

namespace strobe::internal {
namespace {

// GCOV_DATA_MAGIC, AUTO_PROFILE_VERSION and the tags of gcc/auto-profile.cc.
constexpr std::uint32_t kGcovMagic = 0x67636461;
constexpr std::uint32_t kAutoProfileVersion = 2;
constexpr std::uint32_t kNamesTag = 0xAA000000;
constexpr std::uint32_t kFunctionsTag = 0xAC000000;
constexpr std::uint32_t kModulesTag = 0xAE000000;
constexpr std::uint32_t kUnread = 0;  // a length, and the kind of what is called

void AddWord(std::string& bytes, std::uint64_t word) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((word >> shift) & 0xFF);
}

void AddCounter(std::string& bytes, std::uint64_t count) {
  AddWord(bytes, count & 0xFFFFFFFF);
  AddWord(bytes, count >> 32);
}

class GccWriter {
 public:
  GccWriter(const FunctionSamplesMap& functions, double sample_amount)
      : scale_(functions, sample_amount) {
    for (const auto& [name, function] : functions) {
      if (!(function.total() > 0)) continue;
      ++function_count_;
      AddCounter(functions_, scale_.Of(function.entries));
      AddBody(name, function);
    }
  }

  [[nodiscard]] std::string Finish() const {
    std::string bytes;
    for (const std::uint32_t word : {kGcovMagic, kAutoProfileVersion, kUnread, kNamesTag, kUnread})
      AddWord(bytes, word);
    AddWord(bytes, names_.size());
    for (const std::string_view name : names_in_order_) {
      AddWord(bytes, name.size() + 1);
      bytes.append(name);
      bytes += '\0';
    }
    for (const std::uint32_t word : {kFunctionsTag, kUnread, function_count_}) AddWord(bytes, word);
    bytes += functions_;
    constexpr std::uint32_t kModules = 0;
    for (const std::uint32_t word : {kModulesTag, kUnread, kModules}) AddWord(bytes, word);
    return bytes;
  }

 private:
  std::uint32_t NumberOf(const std::string& name) {
    const auto [found, is_new] =
        names_.try_emplace(name, static_cast<std::uint32_t>(names_in_order_.size()));
    if (is_new) names_in_order_.push_back(found->first);
    return found->second;
  }

  void AddLocation(LineLocation location) {
    AddWord(functions_, location.offset << 16 | (location.discriminator & 0xFFFF));
  }

  // What is inlined has no entries of its own.
  void AddBody(const std::string& name, const FunctionSamples& function) {
    std::size_t inlined_count = 0;
    for (const auto& [location, functions] : function.inlined) {
      for (const auto& [inlined_name, inlined] : functions)
        inlined_count += inlined.total() > 0 ? 1 : 0;
    }
    AddWord(functions_, NumberOf(name));
    AddWord(functions_, function.lines.size());
    AddWord(functions_, inlined_count);
    for (const auto& [location, line] : function.lines) {
      AddLocation(location);
      AddWord(functions_, line.calls.size());
      AddCounter(functions_, scale_.Of(line.count));
      for (const auto& [called, count] : line.calls) {
        AddWord(functions_, kUnread);
        AddCounter(functions_, NumberOf(called));
        AddCounter(functions_, scale_.Of(count));
      }
    }
    for (const auto& [location, functions] : function.inlined) {
      for (const auto& [inlined_name, inlined] : functions) {
        if (!(inlined.total() > 0)) continue;
        AddLocation(location);
        AddBody(inlined_name, inlined);
      }
    }
  }

  const CountScale scale_;
  std::map<std::string, std::uint32_t> names_;
  std::vector<std::string_view> names_in_order_;
  std::string functions_;
  std::uint32_t function_count_ = 0;
};

}  // namespace

std::string GccProfile(const FunctionSamplesMap& functions, double sample_amount) {
  return GccWriter(functions, sample_amount).Finish();
}

}  // namespace strobe::internal
