#include "strobe/unwind/cfi_modules.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "module_tables.h"

namespace strobe::internal {
namespace {

std::size_t ChunkOf(const ModuleTables& tables, Address pc) {
  return static_cast<std::size_t>((pc - tables.module().start) / UnwindModules::kChunkBytes);
}

}  // namespace

CfiModules::CfiModules(Architecture architecture, AnyMemoryReader read,
                       ReadDebugFrame read_debug_frame, ShareTable share_table,
                       ReadUnloaded read_unloaded)
    : architecture_(architecture),
      read_(std::move(read)),
      read_debug_frame_(std::move(read_debug_frame)),
      share_table_(std::move(share_table)),
      read_unloaded_(std::move(read_unloaded)) {}
CfiModules::~CfiModules() = default;

void CfiModules::Update(const ModuleMap& map, std::uint32_t generation) {
  // If memory runs out here, nothing is known until the next Update.
  const bool was_cut_short = std::exchange(is_cut_short_, true);
  auto former = std::exchange(known_, {});
  auto unknown = std::exchange(unknown_, {});
  std::vector<std::unique_ptr<ModuleTables>> now;
  const CfiSources sources{architecture_, read_, read_debug_frame_, &share_table_};
  // JIT compilers load and unload often. Ranges that no module covers stay unknown.
  std::erase_if(unknown, [&](const Range& range) {
    return range.is_module || Overlaps(map.modules(), range.start, range.limit);
  });
  auto before = former.begin();  // both are sorted by start
  for (const Module& module : map.modules()) {
    if (!ModuleTables::CanBuild(module, sources)) {
      unknown.push_back({module.start, module.limit, /*is_module=*/true});
      continue;
    }
    while (before != former.end() && (*before)->module().start < module.start) ++before;
    const bool is_same =
        before != former.end() && (*before)->module() == module && !(*before)->is_suspect();
    now.push_back(is_same ? std::move(*before++)
                          : std::make_unique<ModuleTables>(module, sources, generation));
  }
  std::sort(unknown.begin(), unknown.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  // The cache may have rules of modules that were dropped: a new cache replaces it.
  if (was_cut_short ||
      std::ranges::any_of(former, [](const auto& tables) { return tables != nullptr; }))
    cache_ = std::make_shared<RuleCache>();
  for (std::unique_ptr<ModuleTables>& tables : former) {
    if (tables == nullptr ||
        std::ranges::find(map.modules(), tables->module()) != map.modules().end())
      continue;
    // What was read while the module was unloaded may be wrong.
    if (tables->is_suspect())
      tables = std::make_unique<ModuleTables>(tables->module(), sources, tables->since());
    SetApart(std::move(tables));
  }
  generation_ = generation;
  known_ = std::move(now);
  unknown_ = std::move(unknown);
  is_complete_ = unknown_.size() >= kMaxUnknownRanges;
  is_cut_short_ = false;
}

void CfiModules::SetApart(std::unique_ptr<ModuleTables> tables) {
  const Module& module = tables->module();
  if (read_unloaded_ == nullptr || !module.has_file() || module.format != ImageFormat::kElf) return;
  tables->ReadFrom(read_unloaded_(module));
  if (unloaded_.size() == kMaxUnloaded) unloaded_.erase(unloaded_.begin());
  unloaded_.push_back({std::move(tables), generation_});
}

bool CfiModules::Unloaded::IsOf(std::uint32_t generation) const {
  // A record captured just after a module was loaded still has the generation before. Without its
  // file, nothing is known of the module.
  return generation + 1 >= tables->since() && generation <= last_generation &&
         !tables->is_suspect();
}

bool CfiModules::HasUnloaded(std::uint32_t generation) const {
  return std::ranges::any_of(unloaded_,
                             [&](const Unloaded& unloaded) { return unloaded.IsOf(generation); });
}

ModuleTables* CfiModules::UnloadedAt(std::uint32_t generation, Address pc) const {
  for (const Unloaded& unloaded : unloaded_) {
    const Module& module = unloaded.tables->module();
    if (unloaded.IsOf(generation) && pc >= module.start && pc < module.limit)
      return unloaded.tables.get();
  }
  return nullptr;
}

std::shared_ptr<const UnwindModules> CfiModules::SnapshotOf(std::uint32_t generation) const {
  std::vector<Module> placed;
  std::vector<UnwindModules::Entry> entries;
  const auto add = [&](const ModuleTables& tables) {
    if (Overlaps(placed, tables.module().start, tables.module().limit)) return;
    const auto at = std::ranges::upper_bound(placed, tables.module().start, {}, &Module::start);
    placed.insert(at, tables.module());
    for (std::size_t chunk = 0; chunk < tables.chunks(); ++chunk)
      entries.push_back(tables.Entry(chunk));
  };
  for (const Unloaded& unloaded : unloaded_) {
    if (unloaded.IsOf(generation)) add(*unloaded.tables);
  }
  for (const auto& tables : known_) add(*tables);
  return std::make_shared<const UnwindModules>(std::move(entries), /*is_complete=*/true,
                                               EmptyCache());
}

void CfiModules::BuildOf(std::uint32_t generation, Address pc) {
  if (ModuleTables* const tables = UnloadedAt(generation, pc)) {
    tables->Build(ChunkOf(*tables, pc));
  } else {
    Build(pc);
  }
}

bool CfiModules::Build(Address pc) {
  const auto after = std::ranges::upper_bound(
      known_, pc, {}, [](const auto& tables) { return tables->module().start; });
  if (after == known_.begin() || pc >= (*std::prev(after))->module().limit) {
    Address start = pc & ~Address{UnwindModules::kChunkBytes - 1};
    Address limit = std::max(start + UnwindModules::kChunkBytes,
                             start | (UnwindModules::kChunkBytes - 1));  // the topmost wraps
    if (after != known_.begin()) start = std::max(start, (*std::prev(after))->module().limit);
    if (after != known_.end()) limit = std::min(limit, (*after)->module().start);
    return AddUnknown(pc, start, limit);
  }
  ModuleTables& tables = **std::prev(after);
  return tables.Build(ChunkOf(tables, pc));
}

// Remembers that the code around `pc`, at most from `start` to `limit`, is unknown.
bool CfiModules::AddUnknown(Address pc, Address start, Address limit) {
  if (is_complete_) return false;
  const auto after =
      std::upper_bound(unknown_.begin(), unknown_.end(), pc,
                       [](Address address, const Range& range) { return address < range.start; });
  if (after != unknown_.begin()) {
    if (pc < std::prev(after)->limit) return false;
    start = std::max(start, std::prev(after)->limit);
  }
  if (after != unknown_.end()) limit = std::min(limit, after->start);
  if (pc < limit) unknown_.insert(after, {start, limit, /*is_module=*/false});
  is_complete_ =
      pc >= limit || unknown_.size() >= kMaxUnknownRanges;  // no range holds the very last address
  return true;
}

void CfiModules::BuildAll() {
  is_complete_ = true;
  for (const auto& tables : known_) {
    for (std::size_t chunk = 0; chunk < tables->chunks(); ++chunk) tables->Build(chunk);
  }
}

std::shared_ptr<const UnwindModules> CfiModules::Snapshot() const {
  std::vector<UnwindModules::Entry> entries;
  for (const auto& tables : known_) {
    for (std::size_t chunk = 0; chunk < tables->chunks(); ++chunk)
      entries.push_back(tables->Entry(chunk));
  }
  for (const Range& range : unknown_) entries.push_back({range.start, range.limit, EmptyTable()});
  return std::make_shared<const UnwindModules>(std::move(entries), is_complete_, cache_);
}

std::string CfiModules::unread() const {
  for (const auto& tables : known_) {
    if (tables->is_suspect() && tables->statistics().fdes == 0) return tables->module().path;
  }
  return "";
}

std::size_t CfiModules::built() const {
  std::size_t count = 0;
  for (const auto& tables : known_) count += tables->built();
  return count;
}

CfiStatistics CfiModules::statistics() const {
  CfiStatistics sum;
  for (const auto& tables : known_) sum += tables->statistics();
  return sum;
}

std::size_t CfiModules::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& tables : known_) bytes += tables->memory_bytes();
  for (const Unloaded& unloaded : unloaded_) bytes += unloaded.tables->memory_bytes();
  return bytes;
}

}  // namespace strobe::internal
