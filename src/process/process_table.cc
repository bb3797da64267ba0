#include "strobe/process/process_table.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "../core/deleted_mark.h"
#include "absl/strings/str_cat.h"
#include "image.h"
#include "mapped_file.h"
#include "strobe/base/cache_line.h"
#include "strobe/process/stack_copy.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"
#include "strobe/unwind/frame_pointer_step.h"
#include "strobe/unwind/rule_cache.h"

namespace strobe {
namespace {

using internal::Image;

// Of one walk, beyond one for each frame: code that other threads map meanwhile may need more.
constexpr std::size_t kMaxFurtherBuilds = 64;
// To note which images walks lead through costs as much as a walk, so only every so many do it.
constexpr std::uint64_t kWalksPerMark = 16;

constexpr std::size_t kPrefetchedBytes = 4096;
// How often it is seen which processes have a cache, in walks, and how many may.
constexpr std::uint64_t kWalksPerCaches = 1024;
constexpr std::uint64_t kMaxCaches = 8;

ModuleKind KindOf(const Mapping& mapping, const Image* image) {
  if (image != nullptr) return image->kind();
  return mapping.path == "[vdso]" ? ModuleKind::kVdso
         : mapping.path.starts_with('/') && !mapping.path.starts_with("//")
             ? ModuleKind::kSharedLibrary
             : ModuleKind::kGeneratedCode;
}

// What is left of `module` in [start, limit).
std::shared_ptr<const ProcessModule> Part(const ProcessModule& module, Address start,
                                          Address limit) {
  auto part = std::make_shared<ProcessModule>(module);
  part->module.file_offset += start - part->module.start;
  part->module.start = start;
  part->module.limit = limit;
  return part;
}

// Puts `added` in place of what was there. True if there was something.
bool Place(ProcessCode::Modules& modules, std::shared_ptr<const ProcessModule> added) {
  const Address start = added->module.start;
  const Address limit = added->module.limit;
  ProcessCode::Modules now;
  bool has_replaced = false;
  now.reserve(modules.size() + 2);
  for (const auto& module : modules) {
    if (module->module.limit <= start || module->module.start >= limit) {
      now.push_back(module);
      continue;
    }
    has_replaced = true;
    if (module->module.start < start) now.push_back(Part(*module, module->module.start, start));
    if (module->module.limit > limit) now.push_back(Part(*module, limit, module->module.limit));
  }
  const auto place = std::ranges::upper_bound(
      now, start, {}, [](const auto& module) { return module->module.start; });
  now.insert(place, std::move(added));
  modules = std::move(now);
  return has_replaced;
}

bool HasImage(const ProcessCode::Modules& modules, const std::vector<const Image*>& images) {
  return std::ranges::any_of(modules, [&](const auto& module) {
    return std::ranges::find(images, module->image.get()) != images.end();
  });
}

}  // namespace

const ProcessModule* ProcessCode::Find(Address address) const {
  const auto after = std::ranges::upper_bound(
      modules_, address, {}, [](const auto& module) { return module->module.start; });
  if (after == modules_.begin()) return nullptr;
  const ProcessModule* const module = std::prev(after)->get();
  return address < module->module.limit ? module : nullptr;
}

ProcessTable::ProcessTable(const SymbolFiles& files, ProcessTableOptions options)
    : files_(files),
      options_(std::move(options)),
      images_(std::make_unique<internal::ImageTable>(files, options_.search, options_.max_images)) {
}
ProcessTable::~ProcessTable() = default;

absl::Status ProcessTable::Attach(std::uint64_t process) {
  const absl::StatusOr<std::vector<Mapping>> maps = ReadMaps(absl::StrCat(process), &files_);
  if (!maps.ok()) return maps.status();
  std::string name;
  std::ifstream comm(absl::StrCat("/proc/", process, "/comm"));
  std::getline(comm, name);
  const std::lock_guard lock(mutex_);
  Process& attached = Use(process);
  attached.name = name;
  Clear(attached);
  for (const Mapping& mapping : *maps) Add(attached, mapping, process);
  return absl::OkStatus();
}

void ProcessTable::Map(std::uint64_t process, const Mapping& mapping) {
  const std::lock_guard lock(mutex_);
  Process& mapped = Use(process);
  Add(mapped, WithFile(mapped, mapping, process), process);
}

// What an event says of memory without a file that takes the place of an image's code: the code may
// have moved there. Of a process that lives only.
Mapping ProcessTable::WithFile(const Process& process, const Mapping& mapping,
                               std::uint64_t id) const {
  const bool takes_place = std::ranges::any_of(process.modules, [&](const auto& module) {
    return module->image != nullptr && mapping.start < module->module.limit &&
           module->module.start < mapping.limit;
  });
  if (internal::IsFile(mapping.path) || !takes_place || !options_.uses_process_roots)
    return mapping;
  const absl::StatusOr<std::vector<Mapping>> maps = ReadMaps(absl::StrCat(id), &files_);
  if (!maps.ok()) return mapping;
  const auto now = std::ranges::find_if(*maps, [&](const Mapping& range) {
    return mapping.start >= range.start && mapping.limit <= range.limit;
  });
  return now != maps->end() && internal::IsFile(now->path) ? *now : mapping;
}

void ProcessTable::Fork(std::uint64_t parent, std::uint64_t child) {
  if (parent == child) return;
  const std::lock_guard lock(mutex_);
  Process copy;
  if (const auto found = processes_.find(parent); found != processes_.end()) copy = found->second;
  // What the two map from now on differs, so they share no cache.
  if (std::exchange(copy.cache, nullptr) != nullptr) copy.code.reset();
  Process& forked = Use(child);
  copy.last_use = forked.last_use;
  forked = std::move(copy);
}

void ProcessTable::Exec(std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  Clear(Use(process));
}

void ProcessTable::Clear(Process& process) {
  process.modules.clear();
  process.cache.reset();
  process.code.reset();
  process.architecture.reset();
}

void ProcessTable::SetName(std::uint64_t process, std::string_view name) {
  const std::lock_guard lock(mutex_);
  Use(process).name = name;
}

void ProcessTable::Exit(std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  processes_.erase(process);
}

ProcessTable::Process& ProcessTable::Use(std::uint64_t id) {
  auto found = processes_.find(id);
  if (found == processes_.end()) {
    if (processes_.size() >= options_.max_processes && !processes_.empty()) {
      ++stats_.evicted_processes;
      processes_.erase(std::ranges::min_element(
          processes_, {}, [](const auto& entry) { return entry.second.last_use; }));
    }
    found = processes_.try_emplace(id).first;
  }
  found->second.last_use = ++clock_;
  return found->second;
}

// Code of another CPU than the first image's is not unwound. The kernel's own is that of this
// machine, so it is none of a process whose files are not, such as a 32-bit one.
std::shared_ptr<Image> ProcessTable::FindImage(Process& process, const Mapping& mapping,
                                               std::uint64_t id) {
  std::shared_ptr<Image> image =
      images_->Find(mapping, options_.uses_process_roots ? absl::StrCat(id) : std::string());
  if (image == nullptr) return nullptr;
  if (!process.architecture && image->kind() != ModuleKind::kVdso)
    process.architecture = image->architecture();
  return image->architecture() == process.architecture ? image : nullptr;
}

void ProcessTable::Add(Process& process, const Mapping& mapping, std::uint64_t id) {
  if (mapping.start >= mapping.limit) return;
  std::shared_ptr<Image> image = FindImage(process, mapping, id);
  const std::optional<Address> address =
      image == nullptr ? std::nullopt : image->AddressAt(mapping.file_offset);
  if (!address.has_value()) image.reset();
  ProcessModule added;
  added.module.start = mapping.start;
  added.module.limit = mapping.limit;
  added.module.file_offset = mapping.file_offset;
  added.module.load_bias = mapping.start - address.value_or(mapping.file_offset);
  added.module.path = image != nullptr ? internal::WithoutDeletedMark(mapping.path) : mapping.path;
  added.module.build_id = image != nullptr ? image->build_id() : mapping.build_id;
  added.module.file_version = image != nullptr ? image->file_version() : 0;
  added.module.kind = KindOf(mapping, image.get());
  added.image_number = image == nullptr ? 0 : image->number();
  added.image = std::move(image);
  if (added.image == nullptr && added.module.has_file()) ++stats_.missing_images;
  const bool is_known = std::ranges::any_of(process.modules, [&](const auto& module) {
    return module->module == added.module && module->image_number == added.image_number;
  });
  if (is_known) return;
  if (process.modules.size() >= options_.max_modules) {
    ++stats_.refused_modules;
    return;
  }
  const bool has_replaced =
      Place(process.modules, std::make_shared<const ProcessModule>(std::move(added)));
  // It may have rules of what was replaced.
  if (has_replaced && process.cache != nullptr) process.cache = std::make_shared<RuleCache>();
  process.code.reset();
}

const std::shared_ptr<const ProcessCode>& ProcessTable::CodeOf(Process& process) const {
  if (process.code != nullptr) return process.code;
  std::vector<UnwindModules::Entry> entries;
  Address floor = 0;
  const ProcessModule* before = nullptr;
  for (const auto& module : process.modules) {
    const bool goes_on = before != nullptr && before->image == module->image &&
                         before->module.load_bias == module->module.load_bias;
    if (before != nullptr && !goes_on) floor = before->module.limit;
    before = module.get();
    if (module->image != nullptr) {
      module->image->AddEntries(module->module, floor, entries);
    } else if (module->module.kind != ModuleKind::kGeneratedCode) {
      // A table that never comes: to go on by frame pointers would be a guess.
      entries.push_back({module->module.start, module->module.limit, nullptr});
    }
  }
  process.code = std::make_shared<const ProcessCode>(
      process.modules,
      UnwindModules(entries, /*is_complete=*/true,
                    process.cache != nullptr ? process.cache : internal::EmptyCache()));
  return process.code;
}

std::shared_ptr<const ProcessCode> ProcessTable::CodeFor(std::uint64_t process,
                                                         Architecture architecture,
                                                         std::uint64_t& mark) {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(process);
  ++stats_.walks;
  if (found == processes_.end()) {
    ++stats_.unknown_processes;
    return nullptr;
  }
  found->second.last_use = ++clock_;
  if (found->second.architecture.value_or(architecture) != architecture) {
    ++stats_.refused_walks;
    return nullptr;
  }
  ++found->second.walks;
  if (stats_.walks % kWalksPerCaches == 0) GiveCaches();
  if (stats_.walks % kWalksPerMark == 0) mark = clock_;
  return CodeOf(found->second);
}

WalkResult ProcessTable::Unwind(std::uint64_t process, const StackSample& sample,
                                std::span<Address> frames) {
  return std::visit(
      [&](const auto& registers) { return Walk(process, registers, sample.stack, frames); },
      sample.registers);
}

template <class Registers>
WalkResult ProcessTable::Walk(std::uint64_t process, const Registers& registers,
                              std::span<const std::byte> stack, std::span<Address> frames) {
  std::uint64_t mark = 0;
  std::shared_ptr<const ProcessCode> code = CodeFor(process, ArchitectureOf<Registers>(), mark);
  if (code == nullptr) {
    if (!frames.empty()) frames[0] = registers.pc;
    return {.count = std::min<std::size_t>(frames.size(), 1), .end = StackEnd::kNoUnwindInfo};
  }
  // Each load of a walk waits for the one before, so the beginning of the stack is asked for at
  // once. Not in a function of its own: GCC takes one that only prefetches to do nothing.
  for (std::size_t at = 0; at < std::min(stack.size(), kPrefetchedBytes); at += kCacheLineBytes)
    __builtin_prefetch(stack.data() + at);
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
  for (std::size_t builds = 0;; ++builds) {
    const StackCopy memory(registers, stack);
    WalkResult walk = Unwinder(&code->tables()).Unwind(registers, memory, frames);
    if (walk.is_pending && builds < frames.size() + kMaxFurtherBuilds) {
      if (auto next = Build(process, *code, frames.first(walk.count))) {
        code = std::move(next);
        continue;
      }
    }
    walk.is_pending = false;
    if (walk.end == StackEnd::kBroken && memory.has_missed()) {
      walk.end = StackEnd::kTruncated;
      truncated_walks_.fetch_add(1, std::memory_order_relaxed);
    }
    if (mark != 0) MarkUses(*code, frames.first(walk.count), mark);
    return walk;
  }
}

void ProcessTable::MarkUses(const ProcessCode& code, std::span<const Address> frames,
                            std::uint64_t now) {
  const ProcessModule* last = nullptr;
  for (const Address address : frames) {
    const ProcessModule* const module = code.Find(address);
    if (module != nullptr && module != last && module->image != nullptr)
      module->image->last_use.store(now, std::memory_order_relaxed);
    last = module;
  }
}

// The code of the process with the table of the last of `frames`, to which a walk with `code` has
// led; nullptr if there is none.
std::shared_ptr<const ProcessCode> ProcessTable::Build(std::uint64_t id, const ProcessCode& code,
                                                       std::span<const Address> frames) {
  const Address address = frames.back();
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(id);
  if (found == processes_.end()) return nullptr;
  Process& process = found->second;
  const ProcessModule* const module = CodeOf(process)->Find(address);
  if (module == nullptr || module->image == nullptr) return nullptr;
  const std::shared_ptr<Image> image = module->image;
  const std::uint64_t now = ++clock_;
  MarkUses(code, frames, now);
  image->last_use = now;
  image->Build(address - module->module.load_bias);
  process.code.reset();
  TrimTables(now);
  if (images_->memory_bytes() > options_.max_table_bytes) {
    ++stats_.refused_tables;
    image->Drop();
    for (auto& [other_id, other] : processes_) {
      if (HasImage(other.modules, {image.get()})) other.code.reset();
    }
    return nullptr;
  }
  const std::shared_ptr<const ProcessCode>& now_known = CodeOf(process);
  const UnwindModules::Entry* const entry = now_known->tables().Find(address);
  return entry == nullptr || entry->table != nullptr ? now_known : nullptr;
}

void ProcessTable::TrimTables(std::uint64_t now) {
  const std::vector<const Image*> dropped = images_->Trim(options_.max_table_bytes, now);
  if (dropped.empty()) return;
  stats_.evicted_tables += dropped.size();
  for (auto& [id, process] : processes_) {
    if (HasImage(process.modules, dropped)) process.code.reset();
  }
}

// To the processes that have had an eighth of the last walks; takes those of the others.
void ProcessTable::GiveCaches() {
  for (auto& [id, process] : processes_) {
    const bool is_busy = std::exchange(process.walks, 0) * kMaxCaches >= kWalksPerCaches;
    if (is_busy == (process.cache != nullptr)) continue;
    process.cache = is_busy ? std::make_shared<RuleCache>() : nullptr;
    process.code.reset();
  }
}

std::shared_ptr<const ProcessCode> ProcessTable::Find(std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : CodeOf(found->second);
}

std::string ProcessTable::Name(std::uint64_t process) const {
  const std::lock_guard lock(mutex_);
  const auto found = processes_.find(process);
  return found == processes_.end() ? std::string() : found->second.name;
}

ProcessTableStats ProcessTable::stats() const {
  const std::lock_guard lock(mutex_);
  ProcessTableStats stats = stats_;
  stats.processes = processes_.size();
  stats.images = images_->size();
  stats.table_bytes = images_->memory_bytes();
  for (const auto& [id, process] : processes_) stats.caches += process.cache != nullptr ? 1 : 0;
  stats.truncated_walks = truncated_walks_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace strobe
