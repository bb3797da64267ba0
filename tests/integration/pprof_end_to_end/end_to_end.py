#!/usr/bin/env python3
"""end_to_end.py SESSION CHECKER: runs the program SESSION and looks at the profiles it leaves as a user would, with pprof.

CHECKER is readers/google_pprof.py, which finds the readers. Functions, threads and amounts in `pprof -top` are held to what the threads' own
clocks said. The session is run again until each thread's function has been seen. Exit status 77 when pprof is not here.
"""
import glob
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "support"))
from until_seen import work_until  # noqa: E402

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


def check_thread(check, pprof, files, thread, function, others, cpu, wall):
    """True if the thread's function is there."""
    only = "-tagfocus=thread_name=^%s$" % thread
    names = set()
    for kind, (least, most) in (("cpu", cpu), ("wall", wall)):
        rows = top(pprof, files, kind, only)
        sampled = total(rows)
        check(least <= sampled <= most, "%s of %s: %d <= %d <= %d ns" % (kind, thread, least, sampled, most))
        names.update(name for name, (_, cumulative) in rows.items() if cumulative > 0)
    for other in others:
        check(not any(name.startswith("strobe::testing::" + other) for name in names), "%s is in another thread's %s: %s" % (thread, other, names))
    return any(name.startswith("strobe::testing::" + function) for name in names)


def check_session(session, check_module, pprof, valid, directory):
    """True if each thread's function is there."""
    check = check_module.check
    clocks = subprocess.run([session, directory], check=True, stdout=subprocess.PIPE, text=True).stdout
    print(clocks)
    files = sorted(glob.glob(directory + "/*.pb.gz"))
    check(len(files) == 2, "two profiles: %s" % files)
    for file in files:
        pprof.accept(file)
        if valid.command is not None:
            valid.accept(file)
    print(pprof.report(files[-1], "-top", "-nodecount=10"))
    threads = [line.split() for line in clocks.splitlines()]
    are_seen = True
    for thread, function, *spans in threads:
        least_cpu, most_cpu, least_wall, most_wall = map(int, spans)
        others = {other for _, other, *_ in threads} - {function}
        are_seen &= check_thread(check, pprof, files, thread, function, others, (least_cpu, most_cpu), (least_wall, most_wall))
    check(total(top(pprof, files, "cpu")) >= sum(int(least_cpu) for _, _, least_cpu, *_ in threads), "the threads' sum")
    # pprof must not look again for names, and so lose those that it does not find.
    shown = [re.findall(r"% +(\S.*)$", pprof.report(files[-1], "-top", "-nodecount=1000", "-nodefraction=0", symbolize=mode), re.M)
             for mode in ("none", "local")]
    check(len(shown[0]) > 1 and shown[0] == shown[1], "the names that pprof would look up: %s" % shown)
    tags = pprof.report(files[-1], "-tags")
    for thread in ("mixing", "waiting"):
        check(check_module.has_line(tags, thread), "%s in -tags" % thread)
    return are_seen or bool(check_module.failures)


def main(session, checker):
    check_module = load(checker)
    with tempfile.TemporaryDirectory(prefix="strobe_end_to_end_") as directory:
        os.mkdir(directory + "/pprof")
        os.mkdir(directory + "/valid")
        pprof = check_module.Pprof(directory + "/pprof")
        if pprof.command is None:
            print("SKIPPED: " + pprof.missing)
            return 77
        valid = check_module.CheckValid(directory + "/valid")
        runs = iter(range(1000))
        work_until(bool, lambda: check_session(session, check_module, pprof, valid, "%s/profiles%d" % (directory, next(runs))), "each thread's function")
        return 1 if check_module.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
