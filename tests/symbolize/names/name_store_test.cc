#include "../../../src/symbolize/names/name_store.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// The names of an image with one function.
ImageNames NamesOf(const std::string& function) {
  std::vector<char> names(function.begin(), function.end());
  names.push_back('\0');
  ImageNames result;
  result.functions = FunctionTable({{.address = 0x10, .end = 0x20, .name = 0}}, std::move(names));
  return result;
}

std::string Name(const std::shared_ptr<const ImageNames>& names) {
  return std::string(names->Find(0x10));
}

TEST(NameStore, ReadsOnce) {
  NameStore store(1 << 20);
  const auto names = store.Get("a", [] { return NamesOf("one"); });
  EXPECT_EQ(Name(names), "one");
  EXPECT_EQ(store.Get("a", [] { return NamesOf("two"); }), names);
  EXPECT_EQ(Name(store.Get("b", [] { return NamesOf("two"); })), "two");
  EXPECT_GT(store.memory_bytes(), names->memory_bytes());
}

TEST(NameStore, ReadsAgainWhatIsNotFinal) {
  NameStore store(1 << 20);
  const auto absent = store.Get("a", [] {
    ImageNames names;
    names.is_final = false;
    return names;
  });
  EXPECT_TRUE(absent->empty());
  EXPECT_EQ(store.memory_bytes(), 0U);
  EXPECT_EQ(Name(store.Get("a", [] { return NamesOf("one"); })), "one");
}

TEST(NameStore, ForgetsTheLeastRecentlyUsedFirst) {
  NameStore measure(1 << 20);
  measure.Get("0", [] { return NamesOf("0"); });
  NameStore store(3 * measure.memory_bytes());
  const auto read = [&](int i) {  // whether it was not there
    bool is_read = false;
    const std::string key = absl::StrCat(i);
    EXPECT_EQ(Name(store.Get(key,
                             [&] {
                               is_read = true;
                               return NamesOf(key);
                             })),
              key);
    EXPECT_LE(store.memory_bytes(), 3 * measure.memory_bytes());
    return is_read;
  };
  for (const int i : {1, 2, 3}) EXPECT_TRUE(read(i));
  for (const int i : {1, 2, 3, 1}) EXPECT_FALSE(read(i));
  EXPECT_TRUE(read(4));
  for (const int i : {3, 1, 4}) EXPECT_FALSE(read(i));
  EXPECT_TRUE(read(2)) << "it was used before the others";
  NameStore small(1);
  EXPECT_EQ(Name(small.Get("a", [] { return NamesOf("one"); })), "one");
  EXPECT_EQ(small.memory_bytes(), 0U) << "what is larger than all is not kept";
}

TEST(NameStore, ServesThreads) {
  NameStore store(2000);
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string key = absl::StrCat((i * (t + 1)) % 17);
        EXPECT_EQ(Name(store.Get(key, [&] { return NamesOf(key); })), key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store.memory_bytes(), 2000U);
}

}  // namespace
}  // namespace strobe::internal
