#!/usr/bin/env python3
"""How long does a table of functions of a profile of 50 MB take, and how much memory?

  top.py SOURCES BUILD

`strobe top` against Google's `pprof -top` on the same files, in turns; time from start to end, the median of ROUNDS turns, memory the largest
resident set. `equal` is the share of functions for which both say the same self and total amounts.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 3


def report(case, contender, metric, value, unit):
    print(json.dumps({"question": "top", "case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def measure(command):
    """Seconds, bytes, and what it printed."""
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit("%s: exit status %d" % (command, child.returncode))
        output.seek(0)
        return seconds, usage.ru_maxrss * 1024, output.read().decode()


def theirs(table):
    rows = (re.match(r" *(-?\d+)(?:ns)? +\S+ +\S+ +(-?\d+)(?:ns)? +\S+  (.*)$", line) for line in table.splitlines())
    return {row[3].strip(): (int(row[1]), int(row[2])) for row in rows if row}


def main():
    sources, build = map(pathlib.Path, sys.argv[1:3])
    sys.path.insert(0, str(sources / "tests/readers"))
    import google_pprof
    strobe, profiles = build / "src/cli/strobe", build / "bench/top/bench_top"
    if not strobe.exists():
        print("skipped: strobe (it is not built: libcli11-dev)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as scratch:
        pprof = google_pprof.Pprof(scratch)
        if pprof.command is None:
            print("skipped: pprof (%s)" % pprof.missing, file=sys.stderr)
        os.environ["PPROF_TMPDIR"] = scratch
        subprocess.run([profiles, scratch], check=True)
        for case in ("related", "random"):
            file = os.path.join(scratch, case + ".pb.gz")
            report(case, "strobe", "file", os.path.getsize(file), "bytes")
            contenders = {"strobe": [strobe, "top", file]}
            if pprof.command is not None:
                contenders["pprof"] = [*pprof.command, "-symbolize=none", "-top", "-nodecount=20", file]
            measured = {name: [] for name in contenders}
            for _ in range(ROUNDS):
                for name, command in contenders.items():
                    measured[name].append(measure(command))
            for name, turns in measured.items():
                report(case, name, "time", statistics.median(turn[0] for turn in turns), "s")
                report(case, name, "memory", max(turn[1] for turn in turns), "bytes")
            if pprof.command is None:
                continue
            table = theirs(measure([*pprof.command, "-symbolize=none", "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0", file])[2])
            rows = json.loads(measure([strobe, "top", "-n", "0", "--json", file])[2])["functions"]
            same = sum(table.get(row["function"]) == (row["self"], row["total"]) for row in rows)
            report(case, "strobe", "equal", same / max(len(rows), len(table)), "1")


if __name__ == "__main__":
    main()
