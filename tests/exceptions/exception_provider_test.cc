#include "strobe/exceptions/exception_provider.h"

#include <string_view>

#include "gtest/gtest.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/provider_list.h"

namespace strobe {
namespace {

TEST(ExceptionProvider, HasOneColumn) {
  using List = ProviderList<CpuTimeProvider, ExceptionProvider>;
  const auto types = List::AllValueTypes();
  EXPECT_EQ(std::string_view(types.back().type), "exceptions");
  EXPECT_EQ(std::string_view(types.back().unit), "count");
}

}  // namespace
}  // namespace strobe
