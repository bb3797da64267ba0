#!/usr/bin/env python3
"""Writes thousands of distinct C++ functions for stacks to stand on: functions.py COUNT FILE...

Each has a frame, saved registers and a length of its own, and calls the next function of the path that it is given (see path.h). The same
numbers come out each time. The files are compiled twice: with and without frame pointers, under two names.
"""
import random
import sys

_HEAD = """// Written by functions.py.
#include "path.h"

namespace strobe::testing {
"""


def function(number, source):
    words = source.choice((1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 40))
    kept = [f"kept{i}" for i in range(source.randrange(6))]
    lines = [f"STROBE_BENCH_CODE std::uint64_t STROBE_BENCH_NAME(Function{number})(Path& path, std::size_t depth) {{",
             f"  volatile std::uint64_t locals[{words}];",
             f"  locals[{source.randrange(words)}] = depth;"]
    if number % 64 == 63:
        lines.append(f"  auto* const dynamic = static_cast<volatile std::uint64_t*>(__builtin_alloca(path.values[{number % 8}] + 16));")
        lines.append("  dynamic[1] = depth;")
    for i, name in enumerate(kept):
        lines.append(f"  const std::uint64_t {name} = path.values[{(number + i) % 8}] * {2 * number + 3} + depth;")
    # Code that is there, in front of the call or behind it, and not executed: functions are as far
    # apart as in a real library.
    unlikely = [f"  if (path.values[{source.randrange(8)}] == {number + 1}) {{", "    std::uint64_t value = depth;"]
    for _ in range(source.choice((1, 2, 4, 6, 8, 12, 24, 40))):
        unlikely.append(f"    value = (value ^ path.values[{source.randrange(8)}]) * {source.randrange(3, 1 << 31, 2)};")
    unlikely += ["    return value;", "  }"]
    is_before = source.random() < 0.5
    if is_before:
        lines += unlikely
    lines.append("  std::uint64_t result = path.steps[depth](path, depth + 1);")
    if not is_before:
        lines += unlikely
    for name in kept:
        lines.append(f"  result = (result ^ {name}) * {source.randrange(3, 1 << 31, 2)};")
    lines += [f"  return result + locals[{source.randrange(words)}];", "}"]
    return "\n".join(lines)


def main():
    count, paths = int(sys.argv[1]), sys.argv[2:]
    source = random.Random(36)
    for index, path in enumerate(paths):
        numbers = range(count * index // len(paths), count * (index + 1) // len(paths))
        with open(path, "w", encoding="utf-8") as file:
            file.write(_HEAD)
            for number in numbers:
                file.write(function(number, source) + "\n")
            names = ", ".join(f"STROBE_BENCH_NAME(Function{number})" for number in numbers)
            file.write(f"static const AddFunctions STROBE_BENCH_NAME(kAdded{index})(STROBE_BENCH_KIND, {{{names}}});\n")
            file.write("}  // namespace strobe::testing\n")


if __name__ == "__main__":
    main()
