#!/usr/bin/env python3
"""What Strobe costs a program that includes and links it: the processor time to compile one header, the least of several, and the size of the
example `minimal`, stripped.

  include.py SOURCE BUILD      as bench/run.sh calls it; without the program in BUILD only the compile times
"""
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

REPETITIONS = 7
HEADERS = {"strobe": "strobe/strobe.h", "strobe_fwd": "strobe/profiler_fwd.h", "absl_statusor": "absl/status/statusor.h", "nothing": None}


def report(case, contender, metric, value, unit):
    print(json.dumps({"case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def compile_time(compiler, header, root):
    text = f"#include <{header}>\nint main() {{}}\n" if header else "int main() {}\n"
    command = [compiler, "-std=c++20", "-c", "-O0", f"-I{root / 'include'}", "-x", "c++", "-", "-o", "/dev/null"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=text, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report_compile_times(compiler, root):
    best = {}
    # In turns, so that a slow moment of the machine meets all of them.
    for _ in range(REPETITIONS):
        for contender, header in HEADERS.items():
            best[contender] = min(best.get(contender, 1e9), compile_time(compiler, header, root))
    for contender, seconds in best.items():
        report(compiler, contender, "compile time", round(seconds * 1e3, 1), "ms")
    report(compiler, "strobe", "compile time / absl_statusor's", round(best["strobe"] / best["absl_statusor"], 3), "")


def stripped_bytes(program, directory):
    target = pathlib.Path(directory) / "stripped"
    subprocess.run(["strip", "-o", target, program], check=True)
    return target.stat().st_size


def report_sizes(program):
    with tempfile.TemporaryDirectory() as directory:
        nothing = pathlib.Path(directory) / "nothing"
        subprocess.run(["g++", "-x", "c++", "-", "-o", nothing], input="int main() {}\n", text=True, check=True)
        report("minimal program", "strobe", "stripped size", stripped_bytes(program, directory), "B")
        report("minimal program", "nothing", "stripped size", stripped_bytes(nothing, directory), "B")


def main():
    root, build = map(pathlib.Path, sys.argv[1:3])
    for compiler in ("g++", "clang++-14"):
        if shutil.which(compiler):
            report_compile_times(compiler, root)
        else:
            print(f"skipped: {compiler} (not installed)", file=sys.stderr)
    program = build / "bench/include/bench_include"
    if program.exists():
        report_sizes(program)
    else:
        print(f"skipped: minimal program ({program} is not built)", file=sys.stderr)


if __name__ == "__main__":
    main()
