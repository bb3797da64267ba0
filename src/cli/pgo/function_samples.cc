#include "function_samples.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace strobe::internal {
namespace {

// An instruction of aarch64 has so many, and those of x86-64 in the mean.
constexpr double kInstructionBytes = 4;

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

ClangDiscriminator Decoded(std::uint32_t discriminator, DiscriminatorKind kind) {
  return kind == DiscriminatorKind::kClang ? ClangDiscriminator::Decode(discriminator)
                                           : ClangDiscriminator{.base = discriminator};
}

struct PlacedLine {
  FunctionSamples* function = nullptr;
  LineLocation location;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in the compiler's own code
  friend auto operator<=>(const PlacedLine&, const PlacedLine&) = default;
};

class Maker {
 public:
  Maker(const CodeSamples& code, DiscriminatorKind kind) : code_(code), kind_(kind) {}

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
      function = &function->inlined[LocationIn(frames[i], kind_)][frames[i - 1].function];
    return {.function = function, .location = LocationIn(frames.front(), kind_)};
  }

  void AddExecutions(const CodeSamples::Place& place, const PlacedLine& line) {
    if (line.function == nullptr) return;
    if (place.amount > 0) {
      double& count = line.function->lines[line.location].count;
      const std::uint32_t copies = Decoded(place.frames.front().discriminator, kind_).copies;
      const double amount = static_cast<double>(place.amount) * copies;
      if (place.code_bytes > 0) {
        count += amount * kInstructionBytes / static_cast<double>(place.code_bytes);
      } else {
        count = std::max(count, amount);
      }
    }
    if (place.is_entry && place.frames.size() == 1)
      entry_lines_.emplace(place.frames.front().function, line);
  }

  static double CountOf(const PlacedLine& line) {
    const auto found = line.function->lines.find(line.location);
    return found == line.function->lines.end() ? 0 : found->second.count;
  }

  // What a line called, by linkage names.
  struct LineCalls {
    std::map<std::string, double> amounts;
    double amount = 0;  // of all of them
    double count = 0;   // of the line, by its own samples
  };
  struct Calls {
    std::map<PlacedLine, LineCalls> lines;
    std::map<std::string, double> amounts_of;  // of all calls of a function
  };

  [[nodiscard]] Calls CollectCalls() const {
    Calls calls;
    for (const CodeSamples::Call& call : code_.calls) {
      const PlacedLine& line = lines_[call.caller];
      if (line.function == nullptr || lines_[call.callee].function == nullptr) continue;
      const std::string& callee = code_.places[call.callee].frames.back().function;
      const auto amount = static_cast<double>(call.amount);
      LineCalls& of_line = calls.lines[line];
      of_line.amounts[callee] += amount;
      of_line.amount += amount;
      of_line.count = CountOf(line);
      calls.amounts_of[callee] += amount;
    }
    return calls;
  }

  // By the first lines of the functions, and by the lines of their callers.
  void AddEntries(const Calls& calls) {
    for (const auto& [name, line] : entry_lines_) functions_[name].entries = CountOf(line);
    std::map<std::string, double> entries;
    for (const auto& [line, of_line] : calls.lines) {
      for (const auto& [callee, amount] : of_line.amounts)
        entries[callee] += of_line.count * amount / of_line.amount;
    }
    for (const auto& [name, count] : entries) {
      double& known = functions_[name].entries;
      known = std::max(known, count);
    }
  }

  // A function that has counts has been entered.
  void EstimateEntries() {
    for (auto& [name, function] : functions_) {
      if (function.entries == 0) function.entries = FirstCount(function);
    }
  }

  // The count of the first place of the function that has one.
  static double FirstCount(const FunctionSamples& function) {
    const auto line = std::ranges::find_if(
        function.lines, [](const auto& located) { return located.second.count > 0; });
    for (const auto& [location, functions] : function.inlined) {
      if (line != function.lines.end() && line->first < location) break;
      double sum = 0;
      for (const auto& [name, inlined] : functions) sum += FirstCount(inlined);
      if (sum > 0) return sum;
    }
    return line == function.lines.end() ? 0 : line->second.count;
  }

  // A function without samples of its own has counts once what it calls has entries: so callees
  // come before their callers. Of a longer chain of such functions the outer ones have none.
  void AddCalls() {
    constexpr int kMostRounds = 64;
    const Calls calls = CollectCalls();
    AddEntries(calls);
    bool has_more = true;
    for (int round = 0; round < kMostRounds && has_more; ++round) {
      EstimateEntries();
      has_more = CountCalls(calls);
    }
  }

  // Counts the calls that have no count, as far as that is known now. True if one has been found.
  bool CountCalls(const Calls& calls) {
    bool has_new = false;
    for (const auto& [line, of_line] : calls.lines) {
      for (const auto& [callee, amount] : of_line.amounts) {
        const double called =
            std::max(of_line.count * amount / of_line.amount,
                     functions_[callee].entries * amount / calls.amounts_of.at(callee));
        if (called == 0) continue;
        has_new |= line.function->lines[line.location].calls.try_emplace(callee, called).second;
      }
    }
    for (const auto& [line, of_line] : calls.lines) {
      const auto found = line.function->lines.find(line.location);
      if (found == line.function->lines.end()) continue;
      double called = 0;
      for (const auto& [callee, count] : found->second.calls) called += count;
      found->second.count = std::max(found->second.count, called);
    }
    return has_new;
  }

  const CodeSamples& code_;
  const DiscriminatorKind kind_;
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

LineLocation LocationIn(const SourceFrame& frame, DiscriminatorKind kind) {
  return {.offset = (frame.line - frame.declaration_line) & kOffsetMask,
          .discriminator = Decoded(frame.discriminator, kind).base};
}

bool IsLocated(const CodeSamples::Place& place) {
  return !place.frames.empty() && std::ranges::all_of(place.frames, [](const SourceFrame& frame) {
    return IsLocated(frame);
  });
}

FunctionSamplesMap MakeFunctionSamples(const CodeSamples& code, DiscriminatorKind kind) {
  return Maker(code, kind).Make();
}

}  // namespace strobe::internal
