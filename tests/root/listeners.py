#!/usr/bin/env python3
"""Runs a program with one of the listeners, and reads the files that it leaves: listeners.py strobe_gtest|strobe_benchmark PROGRAM."""
import gzip
import pathlib
import subprocess
import sys
import tempfile


def expect(condition, what, output):
    if not condition:
        sys.exit("%s\n%s" % (what, output))


def main():
    way, program = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(2):  # the second run replaces the first one's files
            arguments = ["--benchmark_min_time=0.2"] if way == "strobe_benchmark" else []
            result = subprocess.run([program, *arguments], cwd=directory, capture_output=True, text=True, timeout=100, check=False)
            output = result.stdout + result.stderr
            expect(result.returncode == 0, "exit status %d" % result.returncode, output)
        below, wanted = {
            "strobe_gtest": ("slow", {"Some.IsSlow.pb.gz": ["Some_IsSlow_Test"], "Some.IsSlowAndSkips.pb.gz": ["Some_IsSlowAndSkips_Test"]}),
            "strobe_benchmark": ("measured", {"BM_Add_10000_repeats_2.pb.gz": ["Add"], "BM_Multiply.pb.gz": ["Multiply"]}),
        }[way]
        files = {path.name: gzip.decompress(path.read_bytes()) for path in (pathlib.Path(directory) / below).iterdir()}
        expect(files.keys() == wanted.keys(), "the files are %s" % sorted(files), output)
        for file, names in wanted.items():
            for name in names:
                expect(name.encode() in files[file], "%s is not in %s" % (name, file), output)
        if way == "strobe_benchmark":
            expect(b"BM_Multiply" not in files["BM_Add_10000_repeats_2.pb.gz"], "one benchmark's profile has another's time", output)
            expect("BM_Multiply" in output and "BM_Add" in output, "nothing was printed", output)
        else:
            expect(output.count("[  PROFILE ]") == 2, "the output does not name the files", output)


main()
