#include "../../../src/cli/jit/generated_function.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(GeneratedFunction, IsAFunctionOfPython) {
  const FunctionSymbol function = GeneratedFunction("py::C.method.<locals>.f:/srv/a:b/main.py");
  EXPECT_EQ(function.name, "C.method.<locals>.f");
  EXPECT_EQ(function.file, "/srv/a:b/main.py");
  EXPECT_EQ(function.system_name, "py::C.method.<locals>.f:/srv/a:b/main.py");
  EXPECT_EQ(GeneratedFunction("py::<module>:<string>").name, "<module>");
}

TEST(GeneratedFunction, LeavesOtherNamesAlone) {
  for (const char* name : {"py::", "py:::/a.py", "py::name", "JS:*f /tmp/a.js:1:17", "f"}) {
    EXPECT_EQ(GeneratedFunction(name).name, name);
    EXPECT_EQ(GeneratedFunction(name).file, "");
  }
  EXPECT_EQ(GeneratedFunction("bad\xff").name, "bad?");
}

}  // namespace
}  // namespace strobe::internal
