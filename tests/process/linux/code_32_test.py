#!/usr/bin/env python3
"""Records a 32-bit program: its stacks are refused in words, and never unwound by the rules of 64-bit code.

  code_32_test.py STROBE [EXAMPLE]

EXAMPLE is src/examples/other_processes, if that is built. Skips, with the reason, where there is no compiler for 32-bit programs, or no
right to use perf events.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / folder))
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402
from until_seen import work_until  # noqa: E402

SKIPPED = 77
TIMEOUT_S = 100
NO_STACK = "samples of 32-bit code, whose stacks are not unwound: "

# Uses the CPU until it is killed, in a function with a caller.
SOURCE = """
volatile unsigned sink;
__attribute__((noinline)) static unsigned Spin(unsigned rounds) {
  unsigned x = rounds;
  for (unsigned i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  return x;
}
__attribute__((noinline)) static void Call(unsigned seed) { sink += Spin(100000 + (seed & 1)); }
int main(void) {
  for (unsigned i = 0;; ++i) Call(i);
}
"""


def run(*command, status=0):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
    check(result.returncode == status, "%s: exit status %d: %s" % (" ".join(map(str, command)), result.returncode, result.stderr[:300]))
    return result


def compile_32(directory):
    """Nothing if no compiler makes such a program, or this machine does not run it."""
    source, program = directory / "small.c", directory / "small"
    source.write_text(SOURCE)
    for compiler in filter(None, map(shutil.which, ("gcc", "clang", "cc"))):
        if subprocess.run([compiler, "-m32", "-O1", "-o", program, source], capture_output=True).returncode == 0:
            try:
                subprocess.Popen([program]).kill()
                return program
            except OSError:
                return None
    return None


def function_of(location):
    return location.function[0] if location.function else ""


def record(strobe, process, directory):
    """True once the program has been sampled in its own code."""
    recording = directory / "small.pb.gz"
    run(strobe, "record", "-p", process, "-F", 499, "--duration", 0.5, "-o", recording)
    profile = pprof_file.read(recording)
    samples = 0
    for row, values, _ in profile.rows:
        names = list(map(function_of, row))
        if names in (["[lost]"], ["[residual]"]):
            continue
        samples += values[0]
        check(names[-1] == "[no unwind info]", "a stack that does not say that it is cut: %r" % names)
        # What is left is the instruction, if the sample is not the kernel's.
        check(names.count("[small]") <= 1, "frames beyond the instruction: %r" % names)
    told = re.search(NO_STACK + r"(\d+)", "\n".join(profile.comments))
    check(samples == 0 or (told is not None and int(told[1]) == samples), "%d samples, and the comments %r" % (samples, profile.comments))
    return any(function_of(row[0][0]) == "[small]" for row in profile.rows)


def watch(strobe, process):
    result = run(strobe, "top", "-p", process, "-F", 499, "--duration", 1)
    said = [line for line in result.stderr.splitlines() if NO_STACK in line]
    check(len(said) <= 1, "one sentence: " + result.stderr)
    return bool(said) and "[no unwind info]" in result.stdout


def by_the_library(example, process):
    output = run(example, process, 1).stdout
    refused = re.search(r"^0 samples, 0 of them whole stacks; not unwound: (\d+)$", output, re.MULTILINE)
    check(output.count("\n") == 2, "a function of code that is not unwound: " + output)
    return refused is not None and int(refused[1]) > 0


def main():
    strobe, *examples = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        program = compile_32(directory)
        if program is None:
            print("skipped: no compiler here makes a 32-bit program that this machine runs (gcc-multilib)")
            return SKIPPED
        first = subprocess.run([strobe, "record", "--perf", "-o", directory / "x.folded", "true"], capture_output=True, text=True)
        if "refused" in first.stderr:
            print("skipped: " + first.stderr.strip())
            return SKIPPED
        check("32-bit program" in run(strobe, "record", "-o", directory / "x.folded", "--", program, status=126).stderr, "nothing can be preloaded")
        with subprocess.Popen([program]) as process:
            try:
                parts = [lambda: record(strobe, process.pid, directory), lambda: watch(strobe, process.pid)]
                for part in parts + [lambda example=example: by_the_library(example, process.pid) for example in examples]:
                    work_until(lambda seen: failures or seen, part, "a sample of 32-bit code")
            finally:
                process.kill()
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
