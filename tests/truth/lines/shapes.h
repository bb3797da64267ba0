// Both files of the program have a copy of this; the linker keeps one.
#pragma once

#include <string>
#include <vector>

namespace shapes {

inline int Square(int x) { return x * x + 1; }

inline int Twice(int x) {
  int sum = Square(x);
  sum += Square(sum);
  return sum;
}

template <class T>
struct Stack {
  std::vector<T> items;

  __attribute__((noinline)) T PopTwice() {
    T first = Pop();
    T second = Pop();
    return first + second;
  }

  T Pop() {
    if (items.empty()) throw std::string("empty");
    T last = items.back();
    items.pop_back();
    return last;
  }
};

int SumOfOther(const std::vector<int>& numbers);

}  // namespace shapes
