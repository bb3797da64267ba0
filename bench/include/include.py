#!/usr/bin/env python3
"""What including Strobe costs a compile: the processor time of a file that includes one header, least of several."""
import json
import pathlib
import resource
import shutil
import subprocess
import sys

REPETITIONS = 7
HEADERS = {"strobe": "strobe/strobe.h", "absl_statusor": "absl/status/statusor.h", "nothing": None}


def compile_time(compiler, header, root):
    text = f"#include <{header}>\nint main() {{}}\n" if header else "int main() {}\n"
    command = [compiler, "-std=c++20", "-c", "-O0", f"-I{root / 'include'}", "-x", "c++", "-", "-o", "/dev/null"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=text, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    root = pathlib.Path(sys.argv[1])
    for compiler in ("g++", "clang++-14"):
        if not shutil.which(compiler):
            print(f"skipped: {compiler} (not installed)", file=sys.stderr)
            continue
        best = {}
        # In turns, so that a slow moment of the machine meets all of them.
        for _ in range(REPETITIONS):
            for contender, header in HEADERS.items():
                best[contender] = min(best.get(contender, 1e9), compile_time(compiler, header, root))
        for contender, seconds in best.items():
            print(json.dumps({"case": compiler, "contender": contender, "metric": "compile time", "value": round(seconds * 1e3, 1), "unit": "ms"}))


if __name__ == "__main__":
    main()
