#include "strobe/core/part.h"

#include <memory>
#include <string>
#include <type_traits>

#include "gtest/gtest.h"

namespace strobe {
namespace {

struct Options {
  int number = 0;
};
struct Usual {
  explicit Usual(const Options& options) : number(options.number) {}
  explicit Usual(int given) : number(given) {}
  int number;
};
struct WithoutOptions {
  explicit WithoutOptions(std::shared_ptr<int> state) : shared(std::move(state)) {}
  std::shared_ptr<int> shared;
};
struct Immovable {
  explicit Immovable(const Options& options) : number(options.number) {}
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;
  int number;
};

TEST(PartTest, WhatIsNotGivenIsMadeFromTheOptions) {
  const Part<Usual, Options> part;
  EXPECT_EQ(part.Make({.number = 7}).number, 7);
  const Part<std::string> text;
  EXPECT_EQ(text.Make(), "");
}

TEST(PartTest, WhatIsGivenIsCopiedEachTime) {
  const Part<Usual, Options> part = Usual(3);
  EXPECT_EQ(part.Make({.number = 7}).number, 3);
  const auto state = std::make_shared<int>(1);
  const Part<WithoutOptions, Options> shared = WithoutOptions(state);
  EXPECT_EQ(shared.Make({}).shared, state);
  EXPECT_EQ(shared.Make({}).shared, state) << "copies share what a pointer leads to";
}

TEST(PartTest, WhatCannotBeMadeMustBeGiven) {
  static_assert(!std::is_default_constructible_v<Part<WithoutOptions, Options>>);
  static_assert(std::is_default_constructible_v<Part<Usual, Options>>);
}

TEST(PartTest, WhatCannotBeCopiedIsMadeInPlace) {
  static_assert(!std::is_constructible_v<Part<Immovable, Options>, Immovable>);
  const Part<Immovable, Options> part;
  const Part<Immovable, Options> copy = part;
  EXPECT_EQ(copy.Make({.number = 5}).number, 5);
}

}  // namespace
}  // namespace strobe
