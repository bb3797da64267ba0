#include "../../../src/symbolize/names/d_literals.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

std::string Integer(char type, std::string_view text) {
  DLiterals literals(text);
  literals.Integer(type);
  return literals.Finish();
}

std::string Real(std::string_view text) {
  DLiterals literals(text);
  literals.Real();
  return literals.Finish();
}

std::string String(char kind, std::string_view text) {
  DLiterals literals(text);
  literals.String(kind);
  return literals.Finish();
}

TEST(DLiterals, AreIntegersOfTheirType) {
  EXPECT_EQ(Integer('b', "0") + Integer('b', "1"), "falsetrue");
  EXPECT_EQ(Integer('i', "42"), "42");
  EXPECT_EQ(Integer('k', "42"), "42u");
  EXPECT_EQ(Integer('l', "42"), "42L");
  EXPECT_EQ(Integer('m', "18446744073709551615"), "18446744073709551615uL");
  EXPECT_EQ(Integer('i', ""), "");
  EXPECT_EQ(Integer('i', "4x"), "");
}

TEST(DLiterals, AreCharacters) {
  EXPECT_EQ(Integer('a', "97"), "'a'");
  EXPECT_EQ(Integer('a', "10"), "'\\n'");
  EXPECT_EQ(Integer('a', "200"), "'\\xc8'");
  EXPECT_EQ(Integer('u', "8364"), "'\\u20ac'");
  EXPECT_EQ(Integer('w', "128512"), "'\\U0001f600'");
  EXPECT_EQ(Integer('w', "99999999999"), "");
}

TEST(DLiterals, AreReals) {
  EXPECT_EQ(Real("18P3"), "0x1.8p3");
  EXPECT_EQ(Real("N18PN3"), "-0x1.8p-3");
  EXPECT_EQ(Real("NAN") + Real("INF") + Real("NINF"), "NaNInf-Inf");
  for (const char* text : {"", "P3", "18", "18P", "18Px"}) EXPECT_EQ(Real(text), "") << text;
}

TEST(DLiterals, AreStrings) {
  EXPECT_EQ(String('a', "3_610a63"), "\"a\\nc\"");
  EXPECT_EQ(String('w', "1_61"), "\"a\"w");
  EXPECT_EQ(String('d', "0_"), "\"\"d");
  for (const char* text : {"", "1", "1_", "1_6", "1_6x", "2_61"})
    EXPECT_EQ(String('a', text), "") << text;
}

}  // namespace
}  // namespace strobe::internal
