#include "../../../src/cli/commands/json_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace strobe::internal {
namespace {

TEST(JsonShareTest, WhatIsNoNumberIsNull) {
  JsonWriter json;
  json.BeginObject();
  JsonShare(json, "share", 0.25);
  JsonShare(json, "error", NAN);
  JsonShare(json, "ratio", INFINITY);
  json.EndObject();
  EXPECT_EQ(json.Take(), "{\"share\":0.25,\"error\":null,\"ratio\":null}");
}

}  // namespace
}  // namespace strobe::internal
