#include "function_samples.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace strobe::internal {
namespace {

constexpr std::uint32_t kOffsetMask = 0xFFFF;  // of LLVM's LineLocation

// A number of 5 or of 12 bits; an odd one stands for 0.
std::uint32_t FirstComponent(std::uint32_t packed) {
  if ((packed & 1) != 0) return 0;
  packed >>= 1;
  return (packed & 0x20) != 0 ? ((packed >> 1) & 0xFE0) | (packed & 0x1F) : packed & 0x1F;
}

std::uint32_t WithoutFirstComponent(std::uint32_t packed) {
  if ((packed & 1) != 0) return packed >> 1;
  return packed >> ((packed & 0x40) != 0 ? 14 : 7);
}

struct PlacedLine {
  FunctionSamples* function = nullptr;
  LineLocation location;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in the compiler's own code
  friend auto operator<=>(const PlacedLine&, const PlacedLine&) = default;
};

class Maker {
 public:
  explicit Maker(const CodeSamples& code) : code_(code) {}

  FunctionSamplesMap Make() {
    for (const CodeSamples::Place& place : code_.places) {
      lines_.push_back(IsLocated(place) ? LineOf(place) : PlacedLine());
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) AddExecutions(code_.places[i], lines_[i]);
    AddCalls();
    std::erase_if(functions_, [](const auto& named) { return named.second.total() == 0; });
    return std::move(functions_);
  }

 private:
  PlacedLine LineOf(const CodeSamples::Place& place) {
    const std::vector<SourceFrame>& frames = place.frames;
    FunctionSamples* function = &functions_[frames.back().function];
    for (std::size_t i = frames.size(); --i > 0;)
      function = &function->inlined[LocationIn(frames[i])][frames[i - 1].function];
    return {.function = function, .location = LocationIn(frames.front())};
  }

  void AddExecutions(const CodeSamples::Place& place, const PlacedLine& line) {
    if (line.function == nullptr) return;
    if (place.amount > 0) {
      double& count = line.function->lines[line.location].count;
      const std::uint32_t copies =
          ClangDiscriminator::Decode(place.frames.front().discriminator).copies;
      count = std::max(count, static_cast<double>(place.amount) * copies);
    }
    if (place.is_entry && place.frames.size() == 1)
      entry_lines_.emplace(place.frames.front().function, line);
  }

  static double CountOf(const PlacedLine& line) {
    const auto found = line.function->lines.find(line.location);
    return found == line.function->lines.end() ? 0 : found->second.count;
  }

  void AddCalls() {
    std::map<PlacedLine, std::map<std::string, double>> calls;  // amounts
    std::map<std::string, double> amounts_of;                   // of all calls of a function
    std::map<PlacedLine, double> amounts_at;                    // of all calls of a line
    for (const CodeSamples::Call& call : code_.calls) {
      const PlacedLine& line = lines_[call.caller];
      if (line.function == nullptr || lines_[call.callee].function == nullptr) continue;
      const std::string& callee = code_.places[call.callee].frames.back().function;
      const auto amount = static_cast<double>(call.amount);
      calls[line][callee] += amount;
      amounts_of[callee] += amount;
      amounts_at[line] += amount;
    }
    for (const auto& [name, line] : entry_lines_) functions_[name].entries = CountOf(line);
    std::map<std::string, double> entries;
    for (const auto& [line, callees] : calls) {
      for (const auto& [callee, amount] : callees)
        entries[callee] += CountOf(line) * amount / amounts_at[line];
    }
    for (const auto& [name, count] : entries) {
      double& known = functions_[name].entries;
      known = std::max(known, count);
    }
    for (const auto& [line, callees] : calls) {
      const double count = CountOf(line);
      for (const auto& [callee, amount] : callees) {
        const double called = std::max(count * amount / amounts_at[line],
                                       functions_[callee].entries * amount / amounts_of[callee]);
        if (called == 0) continue;
        FunctionSamples::Line& counted = line.function->lines[line.location];
        counted.calls[callee] = called;
      }
    }
    for (const auto& [line, callees] : calls) {
      const auto found = line.function->lines.find(line.location);
      if (found == line.function->lines.end()) continue;
      double called = 0;
      for (const auto& [callee, count] : found->second.calls) called += count;
      found->second.count = std::max(found->second.count, called);
    }
  }

  const CodeSamples& code_;
  FunctionSamplesMap functions_;
  std::vector<PlacedLine> lines_;  // of each place; without a function if it is not located
  std::map<std::string, PlacedLine> entry_lines_;
};

}  // namespace

double FunctionSamples::total() const {
  double sum = 0;
  for (const auto& [location, line] : lines) sum += line.count;
  for (const auto& [location, functions] : inlined) {
    for (const auto& [name, function] : functions) sum += function.total();
  }
  return sum;
}

void FunctionSamples::Add(const FunctionSamples& other) {
  entries += other.entries;
  for (const auto& [location, line] : other.lines) {
    Line& sum = lines[location];
    sum.count += line.count;
    for (const auto& [name, count] : line.calls) sum.calls[name] += count;
  }
  for (const auto& [location, functions] : other.inlined) {
    for (const auto& [name, function] : functions) inlined[location][name].Add(function);
  }
}

ClangDiscriminator ClangDiscriminator::Decode(std::uint32_t packed) {
  const std::uint32_t copies = FirstComponent(WithoutFirstComponent(packed));
  return {.base = FirstComponent(packed), .copies = std::max(copies, 1U)};
}

bool IsLocated(const SourceFrame& frame) {
  return !frame.function.empty() && frame.line != 0 && frame.declaration_line != 0;
}

LineLocation LocationIn(const SourceFrame& frame) {
  return {.offset = (frame.line - frame.declaration_line) & kOffsetMask,
          .discriminator = ClangDiscriminator::Decode(frame.discriminator).base};
}

bool IsLocated(const CodeSamples::Place& place) {
  return !place.frames.empty() && std::ranges::all_of(place.frames, [](const SourceFrame& frame) {
    return IsLocated(frame);
  });
}

FunctionSamplesMap MakeFunctionSamples(const CodeSamples& code) { return Maker(code).Make(); }

}  // namespace strobe::internal
