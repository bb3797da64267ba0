#include "perf_frames.h"

#include <algorithm>
#include <optional>

#include "jit/generated_function.h"
#include "strobe/process/process_names.h"

namespace strobe::internal {
namespace {

// Estimates of what a frame and a name cost, with the tables that find them.
constexpr std::size_t kFrameBytes = 2 * (sizeof(Frame) + sizeof(FrameSymbols) + 48);
constexpr std::size_t kLaterBytes = 160;
// Samples of an address within so much time have one name, or none.
constexpr std::uint64_t kLaterSpanNs = 100'000'000;

}  // namespace

std::uint32_t PerfFrames::User(Address address, const ProcessModule* module) {
  const Placed placed = PlaceOfStack(module);
  return Number(address + placed.shift, placed.module, FrameSymbols::kNone);
}

std::uint32_t PerfFrames::Generated(Address address, const ProcessModule* module,
                                    std::string_view name) {
  const Placed placed = PlaceOfStack(module);
  return Number(address + placed.shift, placed.module, Function(name));
}

std::uint32_t PerfFrames::NamedLater(const Unnamed& code, const ProcessModule* module,
                                     std::uint64_t time) {
  const Placed placed = PlaceOfStack(module);
  const std::uint64_t span = code.dump == JitDumps::kNone ? 0 : time / kLaterSpanNs;
  const auto [place, is_new] = later_places_.try_emplace(
      {code.process, code.dump, code.address, placed.module, span}, later_.size());
  if (is_new) {
    later_.push_back({code, Add(code.address + placed.shift, placed.module, FrameSymbols::kNone)});
    if (time != 0) later_.back().code.times = {time, time};
    const Frame& frame = builder_.profile().frames.back();
    has_equal_ |=
        !frames_
             .try_emplace({frame.address, frame.module, FrameSymbols::kNone}, later_.back().frame)
             .second;
    builder_.Take(kLaterBytes);
  }
  Later& later = later_[place->second];
  if (time != 0) {
    TimeSpan& times = later.code.times;
    times = {std::min(times.first, time), std::max(times.last, time)};
  }
  return later.frame;
}

bool PerfFrames::NameLater(absl::FunctionRef<std::string_view(const Unnamed&)> find) {
  std::ranges::stable_sort(later_, {}, [](const Later& later) {
    return std::pair(later.code.dump, later.code.process);
  });
  for (const auto& [code, frame] : later_) {
    const std::string_view name = find(code);
    if (name.empty()) continue;
    builder_.symbols().frames[frame].function = Function(name);
    has_equal_ = true;  // to one that had its name at once
  }
  return has_equal_;
}

// Frames that follow each other are often in the same module.
PerfFrames::Placed PerfFrames::PlaceOfStack(const ProcessModule* module) {
  if (module == nullptr) return {.module = Frame::kNoModule};
  if (module != last_module_) {
    last_placed_ = Place(*module);
    last_module_ = module;
  }
  return last_placed_;
}

PerfFrames::Placed PerfFrames::Place(const ProcessModule& module) {
  std::vector<Module>& modules = builder_.profile().modules;
  const bool has_image = module.image_number != 0;
  const Key key{module.image_number, has_image ? module.module.file_offset : module.module.start,
                has_image ? std::string() : module.module.path};
  const auto next = static_cast<std::uint32_t>(modules.size());
  const auto [place, is_new] = modules_.try_emplace(key, next);
  if (is_new) {
    modules.push_back(ModuleToName(module));
    builder_.Take(2 * (sizeof(Module) + 2 * modules.back().path.size()));
  }
  return {place->second, modules[place->second].start - module.module.start};
}

std::uint32_t PerfFrames::Kernel(Address address) {
  const std::string_view name = kernel_ == nullptr ? std::string_view() : kernel_->Find(address);
  if (name.empty()) return Number(0, Frame::kNoModule, Function("[kernel]"));
  std::vector<Module>& modules = builder_.profile().modules;
  if (kernel_module_ == Frame::kNoModule) {
    kernel_module_ = static_cast<std::uint32_t>(modules.size());
    modules.push_back({.start = address, .limit = address + 1, .path = "[kernel]", .build_id = {}});
    modules.back().kind = ModuleKind::kGeneratedCode;  // no file has its names
  }
  Module& module = modules[kernel_module_];
  module.start = std::min(module.start, address);
  module.limit = std::max(module.limit, address + 1);
  return Number(address, kernel_module_, Function(name));
}

// Programs and libraries are files of the same kind.
void PerfFrames::UseProgram(const ProcessModule& module) {
  Module& program = builder_.profile().modules[Place(module).module];
  if (program.kind == ModuleKind::kSharedLibrary) program.kind = ModuleKind::kProgram;
}

void PerfFrames::Finish() {
  Profile& profile = builder_.profile();
  if (kernel_module_ != 0 || profile.modules.size() < 2) return;
  std::swap(profile.modules[0], profile.modules[1]);
  for (Frame& frame : profile.frames) {
    if (frame.module < 2) frame.module = 1 - frame.module;
  }
}

std::uint32_t PerfFrames::Pseudo(PseudoFrame frame) {
  return Number(static_cast<Address>(frame), Frame::kPseudo, FrameSymbols::kNone);
}

std::uint32_t PerfFrames::Number(Address address, std::uint32_t module, std::uint32_t function) {
  const auto next = static_cast<std::uint32_t>(builder_.profile().frames.size());
  const auto [place, is_new] = frames_.try_emplace({address, module, function}, next);
  if (is_new) Add(address, module, function);
  return place->second;
}

std::uint32_t PerfFrames::Add(Address address, std::uint32_t module, std::uint32_t function) {
  std::vector<Frame>& frames = builder_.profile().frames;
  frames.push_back({address, module});
  builder_.symbols().frames.push_back({.function = function});
  builder_.Take(kFrameBytes);
  return static_cast<std::uint32_t>(frames.size() - 1);
}

std::uint32_t PerfFrames::Function(std::string_view name) {
  std::vector<FunctionSymbol>& functions = builder_.symbols().functions;
  const auto next = static_cast<std::uint32_t>(functions.size());
  const auto [place, is_new] = functions_.try_emplace(std::string(name), next);
  if (is_new) {
    functions.push_back(GeneratedFunction(name));
    builder_.Take(2 * sizeof(FunctionSymbol) + 6 * name.size());
  }
  return place->second;
}

}  // namespace strobe::internal
