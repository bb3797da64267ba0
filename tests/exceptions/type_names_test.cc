#include "../../src/exceptions/type_names.h"

#include <cstddef>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

template <std::size_t kNumber>
struct Numbered {};
template <class... Types>
struct Wide {};

TEST(TypeNamesTest, AreAsWrittenInCpp) {
  const auto names = std::make_unique<TypeNames>();
  EXPECT_EQ(names->NameOf(typeid(int)), "int");
  EXPECT_EQ(names->NameOf(typeid(const char*)), "char const*");
  EXPECT_EQ(names->NameOf(typeid(std::runtime_error)), "std::runtime_error");
  EXPECT_NE(names->NameOf(typeid(Numbered<7>)).find("Numbered<7"), std::string_view::npos);
}

TEST(TypeNamesTest, ATypeIsNamedOnce) {
  const auto names = std::make_unique<TypeNames>();
  const std::string_view first = names->NameOf(typeid(std::logic_error));
  EXPECT_EQ(names->NameOf(typeid(std::logic_error)).data(), first.data());
}

TEST(TypeNamesTest, NamesBeyondTheLengthAreLeftOut) {
  const auto names = std::make_unique<TypeNames>();
  using Long = Wide<Numbered<100>, Numbered<101>, Numbered<102>, Numbered<103>, Numbered<104>>;
  using Longer = Wide<Wide<Long, int>, Wide<Long, char>, Wide<Long, long>, Wide<Long, float>>;
  EXPECT_NE(names->NameOf(typeid(Longer)), "");
  // Each array of an unlike bound is another type, which repeats nothing.
  using Longest = Wide<std::pair<Numbered<1>[100000001], Numbered<2>[100000002]>*,
                       std::make_index_sequence<400>>;
  ASSERT_GT(std::string_view(typeid(Longest).name()).size(), TypeNames::kMaxMangledBytes);
  EXPECT_EQ(names->NameOf(typeid(Longest)), "");
}

template <std::size_t... kNumbers>
std::vector<const std::type_info*> Infos(std::index_sequence<kNumbers...> /*numbers*/) {
  return {&typeid(Numbered<kNumbers>)...};
}

TEST(TypeNamesTest, AreLimited) {
  const auto names = std::make_unique<TypeNames>();
  const auto infos = Infos(std::make_index_sequence<TypeNames::kMaxTypes + 10>());
  std::size_t named = 0;
  for (const std::type_info* info : infos) named += names->NameOf(*info).empty() ? 0 : 1;
  EXPECT_EQ(named, TypeNames::kMaxTypes);
  EXPECT_EQ(names->NameOf(*infos.back()), "");
  EXPECT_NE(names->NameOf(*infos.front()), "") << "those that are known stay";
}

TEST(TypeNamesTest, ThreadsAgree) {
  const auto names = std::make_unique<TypeNames>();
  const auto infos = Infos(std::make_index_sequence<100>());
  std::vector<std::vector<const char*>> found(4);
  std::vector<std::thread> threads;
  for (auto& own : found)
    threads.emplace_back([&] {
      for (const std::type_info* info : infos) own.push_back(names->NameOf(*info).data());
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : found) EXPECT_EQ(own, found[0]);
  EXPECT_EQ(std::set<const char*>(found[0].begin(), found[0].end()).size(), infos.size());
}

}  // namespace
}  // namespace strobe::internal
