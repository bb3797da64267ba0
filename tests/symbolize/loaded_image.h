// The images of this process as a profile names them, for the symbolizer's tests.
#pragma once

#include <link.h>

#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"

namespace strobe::testing {

using SystemSymbolizer = PlatformSymbolizer<NativePlatform>;

struct ModuleSearch {
  Address address;
  Module module;
};

inline std::string BuildIdOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    for (const char* end = at + segment.p_memsz; at < end;) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* description = at + sizeof(*note) + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID)
        return absl::BytesToHexString(absl::string_view(description, note->n_descsz));
      at = description + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return "";
}

// The module of this process that holds `address`, as the loader tells it.
inline Module ModuleAt(Address address) {
  ModuleSearch search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& search = *static_cast<ModuleSearch*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          const Address start = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || search.address < start ||
              search.address >= start + segment.p_memsz)
            continue;
          search.module = {start,           start + segment.p_memsz, segment.p_offset,
                           info->dlpi_addr, info->dlpi_name,         BuildIdOf(*info)};
          return 1;
        }
        return 0;
      },
      &search);
  if (search.module.path.empty()) {
    search.module.path = ProgramPath().string();
    search.module.kind = ModuleKind::kProgram;
  }
  return search.module;
}

inline FunctionSymbol NameOf(ImageSymbolizer& symbolizer, const Module& module, Address address) {
  Profile profile;
  profile.modules = {module};
  profile.frames = {{address, 0}};
  const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(profile);
  if (!symbols.ok() || symbols->frames.size() != 1) {
    ADD_FAILURE() << symbols.status().ToString();
    return {};
  }
  return symbols->functions.at(symbols->frames[0].function);
}
inline FunctionSymbol NameOf(const Module& module, Address address) {
  SystemSymbolizer symbolizer;
  return NameOf(symbolizer, module, address);
}

}  // namespace strobe::testing
