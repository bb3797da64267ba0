#include "shapes.h"

namespace shapes {
namespace {

int Hidden(int x) { return Twice(x) + 5; }

}  // namespace

int SumOfOther(const std::vector<int>& numbers) {
  int sum = 0;
  Stack<int> stack{numbers};
  for (const int number : numbers) sum += Hidden(number);
  if (stack.items.size() > 2) sum += stack.PopTwice();
  return sum;
}

}  // namespace shapes
