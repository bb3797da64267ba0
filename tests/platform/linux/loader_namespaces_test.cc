#include "platform/linux/loader_namespaces.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/base/sanitizers.h"
#include "strobe/core/module_map.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe::internal {
namespace {

// Of the C library's package, and of no use.
constexpr const char* kLibrary = "libBrokenLocale.so.1";

// "2.36": since 2.35 the loader lists its namespaces.
bool HasList() {
  const std::string version = gnu_get_libc_version();
  return version.starts_with("2.") && std::atoi(version.c_str() + 2) >= 35;
}

bool IsListed(Address load_bias) {
  const std::vector<Module> modules = LinuxPlatform::Modules();
  return std::ranges::any_of(modules, [&](const Module& module) {
    return module.load_bias == load_bias && module.path.ends_with(kLibrary) &&
           !module.build_id.empty() && module.unwind_address != 0;
  });
}

TEST(LoaderNamespaces, TheirImagesAreModulesAsOthers) {
  if (kHasAddressSanitizer || kHasThreadSanitizer)
    GTEST_SKIP() << "the sanitizer is in no other namespace";
  void* const image = dlmopen(LM_ID_NEWLM, kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (image == nullptr || !HasList()) GTEST_SKIP() << "no image to load, or no list of it";
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(image, RTLD_DI_LINKMAP, &map), 0);
  const Address load_bias = map->l_addr;
  EXPECT_TRUE(IsListed(load_bias));
  dlclose(image);
  EXPECT_FALSE(IsListed(load_bias));
}

TEST(LoaderNamespaces, WithoutADynamicSectionThereAreNone) {
  EXPECT_TRUE(ImagesOfNamespaces(0).empty());
  const std::vector<ElfW(Dyn)> ends = {{DT_DEBUG, {16}}, {DT_NULL, {0}}};
  EXPECT_TRUE(ImagesOfNamespaces(reinterpret_cast<Address>(ends.data())).empty())
      << "a list that may not be read";
}

}  // namespace
}  // namespace strobe::internal
