#!/usr/bin/env python3
"""Runs a program with one of the listeners, and reads the files that it leaves: listeners.py strobe_gtest|strobe_benchmark PROGRAM.

Runs it until each function has been sampled once.
"""
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from until_seen import work_until  # noqa: E402

SLOW_MS = 300  # as strobe_gtest_test.cc has it
# The functions of each file.
TESTS = {"Some.IsSlow.pb.gz": ["Some_IsSlow_Test"], "Some.IsSlowAndSkips.pb.gz": ["Some_IsSlowAndSkips_Test"]}
BENCHMARKS = {"BM_Add_10000_repeats_2.pb.gz": ["Add"], "BM_Multiply.pb.gz": ["Multiply"]}


def expect(condition, what, output):
    if not condition:
        sys.exit("%s\n%s" % (what, output))


def run(program, directory, arguments):
    result = subprocess.run([program, *arguments], cwd=directory, capture_output=True, text=True, timeout=100, check=False)
    output = result.stdout + result.stderr
    expect(result.returncode == 0, "exit status %d" % result.returncode, output)
    return output


def files_of(directory):
    return {path.name: gzip.decompress(path.read_bytes()) for path in directory.iterdir()}


def run_tests(program, directory):
    """A test has a file if it was slow, by the time that GoogleTest prints. A file of the run before is replaced."""
    for path in directory.glob("slow/Some.IsFast.pb.gz"):
        path.unlink()
    output = run(program, directory, [])
    times_ms = dict(re.findall(r"^\[ +(?:OK|SKIPPED) \] (Some\.\w+) \((\d+) ms\)$", output, re.M))
    expect(times_ms.keys() == {"Some.IsSlow", "Some.IsFast", "Some.IsSlowAndSkips"}, "the tests are %s" % times_ms, output)
    slow = {name + ".pb.gz" for name, time_ms in times_ms.items() if int(time_ms) >= SLOW_MS}
    files = files_of(directory / "slow")
    expect(files.keys() == slow and slow >= TESTS.keys(), "the files are %s" % sorted(files), output)
    expect(output.count("[  PROFILE ]") == len(slow), "the output does not name the files", output)
    # On a machine that stands still, each test is slow.
    return unseen_in(files, TESTS) | ({"a fast test"} if "Some.IsFast.pb.gz" in slow else set())


def run_benchmarks(program, directory):
    output = run(program, directory, ["--benchmark_min_time=0.2"])
    files = files_of(directory / "measured")
    expect(files.keys() == BENCHMARKS.keys(), "the files are %s" % sorted(files), output)
    expect(b"BM_Multiply" not in files["BM_Add_10000_repeats_2.pb.gz"], "one benchmark's profile has another's time", output)
    expect(all(b"strobe: iterations " in data for data in files.values()), "the number of iterations is missing", output)
    expect("BM_Multiply" in output and "BM_Add" in output, "nothing was printed", output)
    return unseen_in(files, BENCHMARKS)


def unseen_in(files, wanted):
    return {name for file, names in wanted.items() for name in names if name.encode() not in files[file]}


def main():
    run_once = {"strobe_gtest": run_tests, "strobe_benchmark": run_benchmarks}[sys.argv[1]]
    program = str(pathlib.Path(sys.argv[2]).resolve())
    runs = []

    def is_seen(unseen):
        runs.append(unseen)
        return len(runs) >= 2 and not set.intersection(*runs)  # the second run replaces the first one's files

    with tempfile.TemporaryDirectory() as directory:
        work_until(is_seen, lambda: run_once(program, pathlib.Path(directory)), "the functions of each file")


main()
