#include "strobe/encode/iterations.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(IterationsTest, ACommentSaysThem) {
  EXPECT_EQ(IterationsComment(1234.5), "strobe: iterations 1234.5");
  for (const double iterations : {1e-3, 1.0, 1234.5, 123'456'789'012.0})
    EXPECT_EQ(IterationsIn(IterationsComment(iterations)), iterations);
}

TEST(IterationsTest, OtherCommentsSayNone) {
  for (const char* comment :
       {"", "iterations 7", "strobe: iterations ", "strobe: iterations x", "strobe: iterations 0",
        "strobe: iterations -7", "strobe: iterations nan", "strobe: iterations inf",
        "strobe: iterations 7 and more"})
    EXPECT_EQ(IterationsIn(comment), 0) << comment;
}

}  // namespace
}  // namespace strobe
