// Modules() of programs that make it hard: an allocator that asks the loader, images that lie about
// themselves, no /proc, relative paths.
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/platform/linux/linux_platform.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STROBE_TEST_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STROBE_TEST_HAS_SANITIZER 1
#endif
#endif

namespace {

// An allocator's hook that looks at the loader, as one does that notes where each allocation comes
// from.
struct Hook {
  std::mutex mutex;
  std::atomic<bool> is_on{false};
  std::atomic<int> calls{0};
};
Hook hook;

[[maybe_unused]] void RunHook() {
  if (!hook.is_on.load()) return;
  const std::lock_guard lock(hook.mutex);
  dl_iterate_phdr([](dl_phdr_info*, std::size_t, void*) { return 0; }, nullptr);
  ++hook.calls;
}

}  // namespace

// A sanitizer brings its own.
#ifndef STROBE_TEST_HAS_SANITIZER
__attribute__((noinline)) void* operator new(std::size_t bytes) {
  RunHook();
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(std::size_t bytes,
                                             const std::nothrow_t& /*tag*/) noexcept {
  RunHook();
  return std::malloc(bytes != 0 ? bytes : 1);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace strobe {
namespace {

constexpr unsigned kPatienceSeconds = 60;

// Of the C library's package, and of no use.
constexpr const char* kImageName = "libBrokenLocale.so.1";

TEST(HostileImages, AnAllocatorMayAskTheLoaderUnderALockOfItsOwn) {
#ifdef STROBE_TEST_HAS_SANITIZER
  GTEST_SKIP() << "a sanitizer's allocator has no hooks";
#endif
  alarm(kPatienceSeconds);  // two threads that wait for each other would do so for ever
  std::latch has_begun(1);
  std::atomic<bool> is_done{false};
  std::thread allocating([&] {
    has_begun.count_down();
    while (!is_done) {
      ::operator delete(::operator new(1));
    }
  });
  std::thread loading([&] {
    while (!is_done) {
      if (void* image = dlopen(kImageName, RTLD_NOW | RTLD_LOCAL)) dlclose(image);
    }
  });
  has_begun.wait();
  hook.is_on = true;
  constexpr int kListings = 300;
  for (int i = 0; i < kListings; ++i) {
    EXPECT_FALSE(LinuxPlatform::Modules().empty());
    LinuxPlatform::ModuleVersion();
  }
  hook.is_on = false;
  is_done = true;
  allocating.join();
  loading.join();
  alarm(0);
  EXPECT_GT(hook.calls, kListings);
}

// The bytes of a small library; empty where there is none.
std::string SmallImage() {
  void* original = dlopen(kImageName, RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (original == nullptr || dlinfo(original, RTLD_DI_LINKMAP, &map) != 0) return {};
  std::ifstream file(map->l_name, std::ios::binary);
  std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  dlclose(original);
  return image;
}

template <class Change>
void ChangeHeaders(std::string& image, Change&& change) {
  ElfW(Ehdr) header;
  std::memcpy(&header, image.data(), sizeof(header));
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    char* const at = image.data() + header.e_phoff + i * sizeof(segment);
    std::memcpy(&segment, at, sizeof(segment));
    change(segment);
    std::memcpy(at, &segment, sizeof(segment));
  }
}

const Module* FindByFile(const std::vector<Module>& modules, const std::string& name) {
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const Module& module) {
    return module.path.ends_with(name);
  });
  return found == modules.end() ? nullptr : &*found;
}

TEST(HostileImages, NotesThatLieInNoMemoryAreNone) {
#ifdef STROBE_TEST_HAS_SANITIZER
  GTEST_SKIP() << "some sanitizers read the notes themselves";
#endif
  const std::string image = SmallImage();
  if (image.empty()) GTEST_SKIP() << "no image to load: " << dlerror();
  const testing::TemporaryDirectory directory;
  constexpr std::uint64_t kNowhere = std::uint64_t{1} << 45;
  int number = 0;
  for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{1} << 40}) {
    for (const std::uint64_t address : {kNowhere, std::uint64_t{0}}) {
      std::string changed = image;
      ChangeHeaders(changed, [&](ElfW(Phdr) & segment) {
        if (segment.p_type != PT_NOTE) return;
        // The loader itself looks at those that are aligned to 8.
        if (segment.p_align != 4) segment.p_type = PT_NULL;
        segment.p_vaddr = address;
        segment.p_memsz = bytes;
      });
      const std::string path = directory.path() / ("lying" + std::to_string(number++) + ".so");
      std::ofstream(path, std::ios::binary) << changed;
      void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      ASSERT_NE(loaded, nullptr) << dlerror();
      const std::vector<Module> modules = LinuxPlatform::Modules();
      const Module* const module = FindByFile(modules, path);
      ASSERT_NE(module, nullptr);
      EXPECT_EQ(module->build_id, "");
      EXPECT_NE(module->file_version, 0U);
      dlclose(loaded);
    }
  }
}

TEST(HostileImages, ARelativePathIsThatOfTheDirectoryInWhichItWasLoaded) {
  const std::string image = SmallImage();
  if (image.empty()) GTEST_SKIP() << "no image to load: " << dlerror();
  const testing::TemporaryDirectory directory;
  const std::filesystem::path place = std::filesystem::canonical(directory.path());
  std::ofstream(place / "relative name.so", std::ios::binary) << image;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(place);
  void* loaded = dlopen("./relative name.so", RTLD_NOW | RTLD_LOCAL);
  std::filesystem::current_path("/");
  ASSERT_NE(loaded, nullptr) << dlerror();
  const std::vector<Module> modules = LinuxPlatform::Modules();
  std::filesystem::current_path(before);
  const Module* const module = FindByFile(modules, "relative name.so");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->path, place / "relative name.so");
  dlclose(loaded);
}

TEST(HostileImages, WithoutProcTheProgramHasItsNameYet) {
  const testing::TemporaryDirectory directory;
  const std::string name = testing::ProgramPath().filename();
  constexpr int kCannotTry = 77;
  const pid_t child = fork();
  if (child == 0) {
    alarm(kPatienceSeconds);
    const auto leave = [&] { return chroot(directory.path().c_str()) == 0 && chdir("/") == 0; };
    if (!leave() && (unshare(CLONE_NEWUSER) != 0 || !leave())) _exit(kCannotTry);
    const std::vector<Module> modules = LinuxPlatform::Modules();
    const bool is_named = !modules.empty() && modules[0].path.ends_with(name);
    const auto vdsos = std::count_if(modules.begin(), modules.end(), [](const Module& module) {
      return module.kind == ModuleKind::kVdso;
    });
    _exit(!is_named ? 1 : vdsos > 1 ? 2 : 0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kCannotTry)
    GTEST_SKIP() << "to leave /proc behind needs a right that is not here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace strobe
