#!/usr/bin/env python3
"""end_to_end.py SESSION CHECKER: runs the program SESSION and looks at the profiles it leaves as a user would, with pprof.

CHECKER is readers/google_pprof.py, which finds the readers. Functions, threads and amounts in `pprof -top` are held to what the threads' own
clocks said. Exit status 77 when pprof is not here.
"""
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

UNITS_NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "mins": 60e9, "hrs": 3600e9}


def load(path):
    spec = importlib.util.spec_from_file_location("check", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nanoseconds(text):
    number, unit = re.fullmatch(r"(-?[\d.]+)([a-z]*)", text).groups()
    return float(number) * UNITS_NS[unit or "ns"]


def top(pprof, files, kind, *flags):
    """{function: (flat ns, cumulative ns)} of one value type over all files."""
    # pprof adds up the files that it is given.
    text = pprof.report(files[0], "-top", "-sample_index=" + kind, "-unit=ns", "-nodecount=100000", "-nodefraction=0", *flags, *files[1:])
    rows = {}
    for line in text.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[1].endswith("%") and fields[4].endswith("%"):
            rows[fields[5]] = (nanoseconds(fields[0]), nanoseconds(fields[3]))
    return rows


def total(rows):
    return sum(flat for flat, _ in rows.values())


def check_thread(check, pprof, files, thread, function, cpu, wall):
    only = "-tagfocus=thread_name=^%s$" % thread
    for kind, (least, most) in (("cpu", cpu), ("wall", wall)):
        rows = top(pprof, files, kind, only)
        sampled = total(rows)
        check(least <= sampled <= most, "%s of %s: %d <= %d <= %d ns" % (kind, thread, least, sampled, most))
    # The busy threads spend nearly all their CPU in one function, the waiting one nearly all its
    # time below another; a half is far off.
    rows = top(pprof, files, "wall" if thread == "waiting" else "cpu", only)
    named = [value for name, value in rows.items() if name.startswith("strobe::testing::" + function)]
    column, bound = (1, wall[0]) if thread == "waiting" else (0, cpu[0])
    check(sum(value[column] for value in named) > bound / 2, "%s is busy in %s: %s" % (thread, function, rows))


def main(session, checker):
    check_module = load(checker)
    with tempfile.TemporaryDirectory(prefix="strobe_end_to_end_") as directory:
        os.mkdir(directory + "/pprof")
        os.mkdir(directory + "/valid")
        pprof = check_module.Pprof(directory + "/pprof")
        if pprof.command is None:
            print("SKIPPED: " + pprof.missing)
            return 77
        profiles = directory + "/profiles"
        clocks = subprocess.run([session, profiles], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(clocks)
        files = sorted(glob.glob(profiles + "/*.pb.gz"))
        check = check_module.check
        check(len(files) == 2, "two profiles: %s" % files)
        valid = check_module.CheckValid(directory + "/valid")
        for file in files:
            pprof.accept(file)
            if valid.command is not None:
                valid.accept(file)
        print(pprof.report(files[-1], "-top", "-nodecount=10"))
        expected = 0
        for line in clocks.splitlines():
            thread, function, *spans = line.split()
            least_cpu, most_cpu, least_wall, most_wall = map(int, spans)
            expected += least_cpu
            check_thread(check, pprof, files, thread, function, (least_cpu, most_cpu), (least_wall, most_wall))
        check(total(top(pprof, files, "cpu")) >= expected, "the threads' sum")
        # pprof must not look again for names, and so lose those that it does not find.
        shown = [re.findall(r"% +(\S.*)$", pprof.report(files[-1], "-top", "-nodecount=1000", "-nodefraction=0", symbolize=mode), re.M)
                 for mode in ("none", "local")]
        check(len(shown[0]) > 1 and shown[0] == shown[1], "the names that pprof would look up: %s" % shown)
        tags = pprof.report(files[-1], "-tags")
        for thread in ("mixing", "waiting"):
            check(check_module.has_line(tags, thread), "%s in -tags" % thread)
        return 1 if check_module.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
