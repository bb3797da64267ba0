// The list of images that LinuxPlatform gives, against what the kernel and binutils say of them;
// and forks.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/base/sanitizers.h"
#include "strobe/core/module_map.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe {
namespace {

struct Mapping {
  Address start = 0;
  Address limit = 0;
  std::uint64_t offset = 0;
  std::string path;
};

// The executable mappings of files, as the kernel shows them.
std::vector<Mapping> ExecutableMappings() {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char flags[5] = {};
    int path_at = 0;
    unsigned long start = 0;
    unsigned long limit = 0;
    unsigned long offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %n", &start, &limit, flags, &offset,
                    &path_at) < 4)
      continue;
    if (flags[2] != 'x' || path_at == 0 || line[static_cast<std::size_t>(path_at)] != '/') continue;
    mappings.push_back({start, limit, offset, line.substr(static_cast<std::size_t>(path_at))});
  }
  return mappings;
}

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (std::size_t got = std::fread(buffer, 1, sizeof(buffer), pipe)) output.append(buffer, got);
  pclose(pipe);
  return output;
}

TEST(LinuxModules, AreTheExecutableMappingsThatTheKernelShows) {
  const std::vector<Module> modules = LinuxPlatform::Modules();
  const std::vector<Mapping> mappings = ExecutableMappings();
  ASSERT_FALSE(mappings.empty());
  for (const Mapping& mapping : mappings) {
    const auto found = std::find_if(modules.begin(), modules.end(), [&](const Module& module) {
      return module.start == mapping.start;
    });
    ASSERT_NE(found, modules.end()) << mapping.path << " is missing";
    EXPECT_EQ(found->limit, mapping.limit) << mapping.path;
    EXPECT_EQ(found->file_offset, mapping.offset) << mapping.path;
    EXPECT_EQ(std::filesystem::canonical(found->path), mapping.path);
  }
}

TEST(LinuxModules, TheProgramIsTheFirstAndHoldsItsFunctions) {
  const std::vector<Module> modules = LinuxPlatform::Modules();
  ASSERT_FALSE(modules.empty());
  char path[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
  EXPECT_EQ(modules[0].path, path);
  EXPECT_EQ(modules[0].kind, ModuleKind::kProgram);
  const ModuleMap map(modules);
  const auto own =
      map.Find(static_cast<Address>(reinterpret_cast<std::uintptr_t>(&ExecutableMappings)));
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(map.modules()[*own].path, path);
  EXPECT_TRUE(std::any_of(modules.begin(), modules.end(),
                          [](const Module& module) { return module.kind == ModuleKind::kVdso; }));
}

Address coroutine_returns_to = 0;
ucontext_t coroutine_caller;
// No lambda: what a compiler puts around one may be what it returns to.
void NoteReturnAddress() {
  coroutine_returns_to = reinterpret_cast<Address>(__builtin_return_address(0));
}

TEST(LinuxModules, SayWhereCoroutinesEnd) {
  // One that runs, and looks where it will return to.
  std::vector<std::byte> stack(1 << 16);
  ucontext_t coroutine;
  ASSERT_EQ(getcontext(&coroutine), 0);
  coroutine.uc_stack = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  coroutine.uc_link = &coroutine_caller;
  makecontext(&coroutine, &NoteReturnAddress, 0);
  ASSERT_EQ(swapcontext(&coroutine_caller, &coroutine), 0);
  std::vector<Address> ends;
  for (const Module& module : LinuxPlatform::Modules()) {
    if (module.stack_end == 0) continue;
    ends.push_back(module.stack_end);
    EXPECT_TRUE(module.stack_end >= module.start && module.stack_end < module.limit);
  }
  EXPECT_EQ(ends, std::vector<Address>{coroutine_returns_to});
}

TEST(LinuxModules, BuildIdsAreThoseThatReadelfShows) {
  if (OutputOf("readelf --version 2>/dev/null").empty()) GTEST_SKIP() << "readelf is not installed";
  int compared = 0;
  for (const Module& module : LinuxPlatform::Modules()) {
    if (module.path.front() != '/') continue;
    const std::string notes = OutputOf("readelf -nW '" + module.path + "' 2>/dev/null");
    const std::string label = "Build ID: ";
    const std::size_t at = notes.find(label);
    std::string expected;
    if (at != std::string::npos)
      expected = notes.substr(at + label.size(), notes.find('\n', at) - at - label.size());
    EXPECT_EQ(module.build_id, expected) << module.path;
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST(LinuxModules, TheVersionChangesWheneverAnImageComesOrGoes) {
  // Of the C library's package, and of no use.
  const char* const kName = "libBrokenLocale.so.1";
  const std::uint64_t before = LinuxPlatform::ModuleVersion();
  EXPECT_EQ(LinuxPlatform::ModuleVersion(), before);
  void* image = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (image == nullptr) GTEST_SKIP() << "no image to load: " << dlerror();
  const auto has_image = [&] {
    const std::vector<Module> modules = LinuxPlatform::Modules();
    return std::any_of(modules.begin(), modules.end(),
                       [&](const Module& module) { return module.path.ends_with(kName); });
  };
  const std::uint64_t loaded = LinuxPlatform::ModuleVersion();
  EXPECT_NE(loaded, before);
  EXPECT_TRUE(has_image());
  dlclose(image);
  EXPECT_NE(LinuxPlatform::ModuleVersion(), loaded);
  EXPECT_NE(LinuxPlatform::ModuleVersion(), before)
      << "an unload and a load of something else must not look like nothing";
  EXPECT_FALSE(has_image());
}

// As a linker leaves it that is not asked for a build id, and to be told apart from any other by
// `tail`.
void WriteWithoutBuildId(std::string image, const std::string& path, const std::string& tail) {
  ElfW(Ehdr) header;
  std::memcpy(&header, image.data(), sizeof(header));
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    char* const at = image.data() + header.e_phoff + i * sizeof(segment);
    std::memcpy(&segment, at, sizeof(segment));
    if (segment.p_type == PT_NOTE) segment.p_type = PT_NULL;
    std::memcpy(at, &segment, sizeof(segment));
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << image << tail;
}

TEST(LinuxModules, AnImageWithoutABuildIdThatIsBuiltAnewIsAnother) {
  void* original = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (original == nullptr || dlinfo(original, RTLD_DI_LINKMAP, &map) != 0)
    GTEST_SKIP() << "no image to load: " << dlerror();
  std::ifstream file(map->l_name, std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  dlclose(original);
  const std::string path =
      ::testing::TempDir() + "strobe_rebuilt_" + std::to_string(getpid()) + ".so";
  const auto load = [&] {
    void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(loaded, nullptr) << dlerror();
    const std::vector<Module> modules = LinuxPlatform::Modules();
    const auto found = std::find_if(modules.begin(), modules.end(),
                                    [&](const Module& module) { return module.path == path; });
    if (loaded != nullptr) dlclose(loaded);
    EXPECT_NE(found, modules.end());
    // Mostly it is loaded to the same place; that is not what tells it apart.
    return found == modules.end() ? Module()
                                  : Module{.path = found->path,
                                           .build_id = found->build_id,
                                           .file_version = found->file_version};
  };
  WriteWithoutBuildId(image, path, "one");
  const Module first = load();
  EXPECT_EQ(first.build_id, "");
  EXPECT_EQ(load(), first);
  WriteWithoutBuildId(image, path, "other");
  EXPECT_NE(load(), first);
  std::filesystem::remove(path);
}

TEST(LinuxForks, AChildCountsOneMoreAndKnowsItself) {
  const std::uint64_t count = LinuxPlatform::ForkCount();
  const std::uint64_t id = LinuxPlatform::CurrentThread().id;
  const auto knows_itself = [&] {
    return LinuxPlatform::ForkCount() > count &&
           LinuxPlatform::CurrentThread().id == static_cast<std::uint64_t>(getpid()) &&
           LinuxPlatform::CurrentThreadId() == static_cast<std::uint64_t>(getpid()) &&
           LinuxPlatform::ProcessId() == static_cast<std::uint64_t>(getpid());
  };
  for (const bool is_bare : {false, true}) {
    // No handler of fork runs for a bare one, nor for glibc's _Fork, which older ones have not got.
    const auto child =
        is_bare
            ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr))
            : fork();
    if (child == 0) _exit(knows_itself() ? 0 : 1);
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << is_bare;
  }
  EXPECT_EQ(LinuxPlatform::ForkCount(), count);
  EXPECT_EQ(LinuxPlatform::CurrentThread().id, id);
}

// The loader's lock is held by another thread at the instant of the fork, so in the child it is
// held for ever. What the child would ask the loader, it answers from what the parent knew.
TEST(LinuxForks, AChildWhoseLoaderIsStuckGoesOn) {
  if (internal::kHasThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer ends the child of a process with threads";
  LinuxPlatform::ForkCount();
  const std::vector<Module> before = LinuxPlatform::Modules();
  struct Gate {
    std::latch is_held{1};
    std::latch may_go{1};
  } gate;
  std::thread holder([&] {
    dl_iterate_phdr(
        [](dl_phdr_info*, std::size_t, void* data) {
          static_cast<Gate*>(data)->is_held.count_down();
          static_cast<Gate*>(data)->may_go.wait();
          return 1;
        },
        &gate);
  });
  gate.is_held.wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // it would wait for ever
    LinuxPlatform::ForkCount();
    const std::uint64_t version = LinuxPlatform::ModuleVersion();
    const bool is_same =
        LinuxPlatform::Modules() == before && LinuxPlatform::ModuleVersion() == version;
    _exit(is_same ? 0 : 1);
  }
  gate.may_go.count_down();
  holder.join();
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(LinuxPlatform::Modules(), before);
}

}  // namespace
}  // namespace strobe
