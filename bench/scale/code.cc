// The axes of loaded code: shared libraries, and the functions of one module.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../no_export.h"
#include "point.h"
#include "strobe/unwind/cfi_modules.h"

namespace strobe::testing {
namespace {

// Updates and builds the tables of `modules`, all of them, and reports what that costs.
std::unique_ptr<internal::CfiModules> MeasureTables(const ModuleMap& modules,
                                                    AnyMemoryReader read) {
  const ResidentGrowth growth;
  auto tables =
      std::make_unique<internal::CfiModules>(kNativeArchitecture, std::move(read), nullptr);
  MeasureCpu("CPU to build all tables", [&] {
    tables->Update(modules);
    tables->BuildAll();
  });
  const auto snapshot = tables->Snapshot();
  ReportPoint("memory of the tables",
              static_cast<double>(snapshot->memory_bytes() + tables->memory_bytes()), "B");
  growth.Report();
  return tables;
}

std::string LibraryPath(const Point& point, std::size_t number) {
  return point.path + "/" + std::to_string(number) + ".so";
}

bool Load(const Point& point, std::size_t number) {
  if (dlopen(LibraryPath(point, number).c_str(), RTLD_NOW) != nullptr) return true;
  std::fprintf(stderr, "%s\n", dlerror());
  return false;
}

// Reports what a session costs that begins among these libraries, and what one library more costs
// it.
bool MeasureSession(const Point& point) {
  BasicProfiler<NoExportTraits> profiler;
  bool is_good = true;
  MeasureCpu("CPU to start", [&] { is_good &= profiler.Start().ok() && profiler.Flush().ok(); });
  const std::uint64_t refreshes = profiler.stats().module_refreshes;
  is_good &= Load(point, point.size);
  MeasureCpu("CPU of one library more", [&] { is_good &= profiler.Flush().ok(); });
  is_good &= profiler.stats().module_refreshes > refreshes;
  return is_good && profiler.Stop().ok();
}

// An image of functions as a compiler writes them: each saves the frame pointer, takes some stack,
// and gives it back. Only its frame information is there, in the encodings of x86-64 Linux: an
// index of offsets from its own address, then one CIE, then the FDEs with offsets from themselves.
// (Linux Standard Base, "Exception Frames"; DWARF 5, section 7.24.)
class FrameImage {
 public:
  static constexpr std::size_t kFunctionBytes = 1024;
  static constexpr std::size_t kRowsOfFunction = 4;

  explicit FrameImage(std::size_t functions) {
    hdr_ = kText + functions * kFunctionBytes;
    Add({1, 0x1B, 0x03, 0x3B});  // version; pcrel sdata4, udata4, datarel sdata4
    constexpr std::size_t kHeaderBytes = 12, kIndexEntryBytes = 8;
    const std::size_t frames = kHeaderBytes + functions * kIndexEntryBytes;
    Add32(frames - bytes_.size());
    Add32(functions);
    for (std::size_t i = 0; i < functions; ++i) {
      Add32(kText + i * kFunctionBytes - hdr_);
      Add32(frames + sizeof(kCie) + i * sizeof(kFde));
    }
    bytes_.insert(bytes_.end(), std::begin(kCie), std::end(kCie));
    for (std::size_t i = 0; i < functions; ++i) AddFde(frames, i);
    Add32(0);
  }

  [[nodiscard]] ModuleMap Modules() const {
    Module module;
    module.start = kText;
    module.limit = hdr_;
    module.path = "/lib/image.so";
    module.unwind_address = hdr_;
    return ModuleMap({module});
  }
  std::size_t Read(Address address, std::span<std::uint8_t> bytes) const {
    if (address < hdr_ || address - hdr_ >= bytes_.size()) return 0;
    const std::size_t count = std::min<std::size_t>(bytes.size(), bytes_.size() - (address - hdr_));
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(address - hdr_), count, bytes.begin());
    return count;
  }

 private:
  static constexpr Address kText = 0x10000000;
  // Length, id, version, "zR", alignments 1 and -8, return address in 16, pointers pcrel sdata4;
  // CFA = rsp + 8, return address at CFA - 8; padding.
  static constexpr std::uint8_t kCie[] = {20, 0,    0,    0, 0,    0,    0, 0, 1,    'z', 'R', 0,
                                          1,  0x78, 0x10, 1, 0x1B, 0x0C, 7, 8, 0x90, 1,   0,   0};
  // Length, the distance to the CIE, the function's distance and length, no augmentation; then
  // from byte 1 on CFA + 16 and the saved frame pointer, from 4 on what the function takes, and
  // before its last byte CFA + 8.
  static constexpr std::uint8_t kFde[] = {32, 0, 0,    0, 0, 0,    0,    0,  0,    0, 0,    0,
                                          0,  0, 0,    0, 0, 0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0E,
                                          0,  1, 0x03, 0, 2, 0x0C, 7,    8,  0,    0, 0,    0};
  static constexpr std::size_t kIdAt = 4, kBeginAt = 8, kLengthAt = 12, kTakenAt = 24;

  void Add(std::initializer_list<std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Add32(std::uint64_t value) {
    bytes_.resize(bytes_.size() + 4);
    Put32(bytes_.size() - 4, value);
  }
  void Put32(std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < 4; ++i)
      bytes_[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  // The sizes of stack frames repeat, as in real code.
  void AddFde(std::size_t frames, std::size_t number) {
    const std::size_t at = bytes_.size();
    bytes_.insert(bytes_.end(), std::begin(kFde), std::end(kFde));
    Put32(at + kIdAt, at + kIdAt - frames);
    Put32(at + kBeginAt, kText + number * kFunctionBytes - (hdr_ + at + kBeginAt));
    Put32(at + kLengthAt, kFunctionBytes);
    bytes_[at + kTakenAt] = static_cast<std::uint8_t>(0xA0 + 8 * (number % 11));
  }

  Address hdr_ = 0;
  std::vector<std::uint8_t> bytes_;  // from hdr_ on
};

}  // namespace

Outcome MeasureModules(const Point& point) {
  for (std::size_t i = 0; i < point.size; ++i) {
    if (!Load(point, i)) return Outcome::kImpossible;
  }
  ModuleMap modules;
  MeasureCpu("CPU to list the modules", [&] { modules = ModuleMap(NativePlatform::Modules()); });
  const auto tables = MeasureTables(modules, &NativePlatform::ReadMemory);
  const auto ours = std::count_if(
      modules.modules().begin(), modules.modules().end(),
      [&](const Module& module) { return module.path.starts_with(point.path + "/"); });
  const bool is_whole = static_cast<std::size_t>(ours) == point.size &&
                        tables->built() >= point.size && tables->unread().empty();
  return is_whole && MeasureSession(point) ? Outcome::kRight : Outcome::kWrong;
}

Outcome MeasureText(const Point& point) {
  const FrameImage image(point.size);
  const auto tables = MeasureTables(
      image.Modules(),
      [&](Address address, std::span<std::uint8_t> bytes) { return image.Read(address, bytes); });
  const CfiStatistics found = tables->statistics();
  const bool is_right = found.fdes == point.size && found.broken_entries == 0 &&
                        found.rows == point.size * FrameImage::kRowsOfFunction;
  return is_right ? Outcome::kRight : Outcome::kWrong;
}

}  // namespace strobe::testing
