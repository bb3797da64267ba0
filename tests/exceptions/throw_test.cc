// What a throw does while exceptions are counted, and what counts as one.
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/exceptions/exception_sampling.h"
#include "strobe/scoped_labels.h"
#include "strobe/testing/latch.h"

namespace strobe {
namespace {

// Keeps how often each type is thrown while it lives.
class Thrown {
 public:
  Thrown() { EXPECT_EQ(internal::BeginExceptions(target_), absl::OkStatus()); }
  ~Thrown() { internal::EndExceptions(); }

  std::map<std::string, int> types() {
    const std::lock_guard lock(mutex_);
    return types_;
  }

 private:
  static bool Record(void* self, const SampledAmounts& amounts, internal::StackKeeper* /*keeper*/) {
    auto& thrown = *static_cast<Thrown*>(self);
    EXPECT_EQ(amounts, (SampledAmounts{.count = 1, .total = 1}));
    const std::lock_guard lock(thrown.mutex_);
    ++thrown.types_[CurrentLabels().set().Text(kExceptionLabel)];
    return true;
  }
  const internal::EventTarget target_{.record = &Record, .profiler = this};
  std::mutex mutex_;
  std::map<std::string, int> types_;
};
using Types = std::map<std::string, int>;

template <class Exception>
void ThrowAndCatch(int value) {
  try {
    throw Exception{value};
  } catch (const Exception& caught) {
    EXPECT_EQ(caught.value, value);
    return;
  }
  ADD_FAILURE() << "not caught";
}
struct Refused {
  int value = 0;
};

TEST(Throw, IsCaughtWithAndWithoutCounting) {
  ThrowAndCatch<Refused>(1);
  Thrown thrown;
  ThrowAndCatch<Refused>(2);
  try {
    throw 7;
  } catch (int number) {
    EXPECT_EQ(number, 7);
  }
  EXPECT_EQ(thrown.types(), (Types{{"strobe::(anonymous namespace)::Refused", 1}, {"int", 1}}));
}

TEST(Throw, IsCountedOnceHoweverOftenItIsThrownAgain) {
  Thrown thrown;
  std::exception_ptr kept;
  try {
    try {
      try {
        throw std::runtime_error("first");
      } catch (...) {
        throw;
      }
    } catch (const std::exception&) {
      kept = std::current_exception();
      std::rethrow_exception(kept);
    }
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(thrown.types(), (Types{{"std::runtime_error", 1}}));
}

TEST(Throw, IsCountedInADestructorThatAnExceptionRuns) {
  struct Cleanup {
    ~Cleanup() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      ThrowAndCatch<Refused>(3);
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  Thrown thrown;
  try {
    const Cleanup cleanup;
    throw std::logic_error("outer");
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "outer");
  }
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(thrown.types(),
            (Types{{"std::logic_error", 1}, {"strobe::(anonymous namespace)::Refused", 1}}));
}

// The libraries' own throws call the function through the loader.
TEST(Throw, OfTheStandardLibraryIsCounted) {
  Thrown thrown;
  EXPECT_THROW(static_cast<void>(std::vector<int>().at(1)), std::out_of_range);
  EXPECT_THROW(static_cast<void>(std::stoi("x")), std::invalid_argument);
  volatile std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  EXPECT_THROW(::operator delete(::operator new(most)), std::bad_alloc);
  EXPECT_EQ(thrown.types(),
            (Types{{"std::out_of_range", 1}, {"std::invalid_argument", 1}, {"std::bad_alloc", 1}}));
}

TEST(Throw, LeavesTheLabelsOfItsThread) {
  Thrown thrown;
  const ScopedLabels labels({{"endpoint", "/pay"}});
  const Labels before = CurrentLabels();
  ThrowAndCatch<Refused>(4);
  EXPECT_EQ(CurrentLabels(), before);
}

template <int kNumber>
struct Numbered {
  int value = 0;
};
template <int kFirst, int... kNumbers>
void ThrowEach(std::integer_sequence<int, kNumbers...> /*numbers*/) {
  (ThrowAndCatch<Numbered<kFirst + kNumbers>>(kNumbers), ...);
}

TEST(Throw, OfATypeThatManyThreadsThrowFirstHasOneName) {
  constexpr int kThreads = 8;
  constexpr int kTypes = 20;
  Thrown thrown;
  testing::Latch all_here(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      all_here.count_down();
      all_here.wait();
      ThrowEach<1000>(std::make_integer_sequence<int, kTypes>());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Types types = thrown.types();
  EXPECT_EQ(types.size(), static_cast<std::size_t>(kTypes));
  for (const auto& [name, count] : types) EXPECT_EQ(count, kThreads) << name;
}

// The limit is one of the process, so this test is the last.
TEST(Throw, OfATypeBeyondTheLimitIsCountedWithoutItsName) {
  constexpr int kTypes = 600;
  Thrown thrown;
  // In parts, because Clang has a limit of 256.
  constexpr auto kPart = std::make_integer_sequence<int, kTypes / 3>();
  ThrowEach<0>(kPart);
  ThrowEach<kTypes / 3>(kPart);
  ThrowEach<2 * kTypes / 3>(kPart);
  ThrowAndCatch<Refused>(5);
  Types types = thrown.types();
  const int over_limit = types["[types over limit]"];
  EXPECT_GE(over_limit, kTypes - 512);
  EXPECT_LT(over_limit, kTypes - 400);
  EXPECT_EQ(ExceptionSampling::stats().exceptions_over_limit, over_limit);
  EXPECT_EQ(types["strobe::(anonymous namespace)::Refused"], 1) << "seen before the limit";
  EXPECT_EQ(types.size(), static_cast<std::size_t>(kTypes - over_limit + 2));
}

}  // namespace
}  // namespace strobe
