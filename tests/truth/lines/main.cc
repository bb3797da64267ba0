// What lines and inlined functions are read of: inlining three deep, templates, lambdas, local
// classes, nested functions, exceptions, code of another file in the middle of a function.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "shapes.h"

namespace {

volatile int sink = 0;

inline int Innermost(int x) { return shapes::Square(x) ^ sink; }
inline int Middle(int x) {
  int y = Innermost(x);
  y += 3 * shapes::Twice(y);
  return y;
}
inline int Outer(int x) {
  for (int i = 0; i < x; ++i) sink = sink + Middle(i);
  return sink;
}

template <int kDepth>
int Nested(int x) {
  if constexpr (kDepth == 0) {
    return Outer(x);
  } else {
    return Nested<kDepth - 1>(x + kDepth) + sink;
  }
}

}  // namespace

struct Shape {
  virtual ~Shape() = default;
  virtual int Area() const = 0;
};
struct Circle final : Shape {
  explicit Circle(int r) : radius(r) {}
  int Area() const override { return 3 * shapes::Square(radius); }
  int radius;
};

__attribute__((noinline)) int WithLambda(const std::vector<int>& numbers) {
  int total = 0;
  const auto add = [&total](int number) {
    struct Local {
      static int Scale(int n) { return n * sink + 7; }
    };
    total += Local::Scale(number) + shapes::Twice(number);
  };
  std::for_each(numbers.begin(), numbers.end(), add);
  return total;
}

__attribute__((noinline)) int Throwing(int depth) {
  shapes::Stack<int> stack;
  stack.items = {1, 2, depth};
  try {
    int sum = 0;
    while (true) sum += stack.PopTwice();
  } catch (const std::string& text) {
    return static_cast<int>(text.size()) + Nested<3>(depth);
  }
}

__attribute__((noinline)) int Table(int value) {
#define STEP(n) \
  case n: return shapes::Twice(value + n);
  switch (value) {
#include "table.inc"
    default: return 0;
  }
}

extern "C" int exported_function(int value) { return Table(value) + Outer(value); }

int main(int count, char** arguments) {
  std::map<std::string, int> words;
  for (int i = 0; i < count; ++i) words[arguments[i]] += Throwing(i);
  std::vector<int> numbers;
  for (const auto& [word, number] : words) numbers.push_back(number + WithLambda(numbers));
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 7 < b % 7; });
  std::unique_ptr<Shape> shape = std::make_unique<Circle>(count);
  return std::printf("%d %d %d\n", shape->Area(), shapes::SumOfOther(numbers),
                     exported_function(count)) == 0;
}
