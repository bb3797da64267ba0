#!/usr/bin/env python3
"""Allocations and the live heap of a program with a worker, however either of them ends.

  allocations_test.py PROGRAM [STROBE]
"""
import math
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402

TIMEOUT_S = 100
BLOCK_BYTES = 16 << 10
INTERVAL_BYTES = 32 << 10
SIGMAS = 5.5


class Run:
    """The worker has the program's standard error, so that ends when both have ended."""

    def __init__(self, program, directory, end, environment):
        self.directory = pathlib.Path(directory)
        self.process = subprocess.Popen([program, directory, end], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, "STROBE_WORKER": "1", "STROBE_MAX_OVERHEAD": "1", **environment})

    def finish(self, given=b""):
        output, self.errors = self.process.communicate(given, timeout=TIMEOUT_S)
        words = output.split()
        self.said = dict(zip(words[0::2], map(int, words[1::2])))
        self.status = self.process.returncode
        # In the order of their numbers, for a second worker behind those of the first.
        self.profiles = [pprof_file.read(path) for path in sorted(self.directory.glob("*.pb.gz"), key=lambda path: path.stat().st_mtime_ns)]
        return self

    def kill_worker(self):
        errors = os.readlink("/proc/%d/fd/2" % self.process.pid)
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(process.name) == self.process.pid or os.readlink(process / "fd/2") != errors:
                    continue
            except OSError:
                continue
            handle = os.pidfd_open(int(process.name))
            os.kill(int(process.name), signal.SIGKILL)
            check(select.select([handle], [], [], TIMEOUT_S)[0] == [handle], "the worker's death")
            os.close(handle)
            return
        check(False, "there is a worker")


def total(profiles, value_type, function="", thread=""):
    """Of the rows with such a function on the stack and such a thread."""
    sums = 0
    for profile in profiles:
        column = profile.types.index(value_type)
        for locations, values, labels in profile.rows:
            names = [location.function[0] for location in locations]
            if (not function or any(function in name for name in names)) and thread in labels["thread_name"]:
                sums += values[column]
    return sums


def check_near(what, estimate, truth_bytes, wrong_bytes=0):
    """An estimate of what blocks of one size add up to."""
    p = 1 - math.exp(-BLOCK_BYTES / INTERVAL_BYTES)
    deviation = BLOCK_BYTES * math.sqrt(truth_bytes / BLOCK_BYTES * (1 - p) / p)
    print(what, estimate, "of", truth_bytes)
    check(abs(estimate - truth_bytes) <= SIGMAS * deviation + wrong_bytes, "%s: %d of %d" % (what, estimate, truth_bytes))


def check_live_heap(run, what):
    live = run.said[b"live"]
    check_near(what + ": live bytes", total(run.profiles[-1:], "inuse_space", thread="[live]"), live, 0.02 * live)
    check_near(what + ": live bytes of Keep", total(run.profiles[-1:], "inuse_space", "Keep", "[live]"), live)
    check_near(what + ": live objects", BLOCK_BYTES * total(run.profiles[-1:], "inuse_objects", "Keep"), live)


def check_allocations(run, what):
    check(len(run.profiles) == 3, "%s: three profiles: %d; %r" % (what, len(run.profiles), run.errors))
    last = run.profiles[-1:]
    allocated = run.said[b"allocated"]
    # The C++ library and the session allocate, too.
    check_near(what + ": allocated", total(last, "alloc_space"), allocated, 0.02 * allocated)
    check(run.said[b"untaken"] == 0, "%s: a session takes all: %r" % (what, run.said))
    for thread in ("main", "[unregistered thread]"):
        check_near("%s: garbage of %s" % (what, thread), total(last, "alloc_space", "MakeGarbage", thread), 64 << 20)
    check(total(run.profiles, "inuse_space", "MakeGarbage") == 0, what + ": garbage is not live")
    check_live_heap(run, what)


def check_end(program, end, status, environment):
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, end, environment).finish()
        check(run.status == status and run.errors == b"", "%s: %d %r" % (end, run.status, run.errors))
        if run.said and run.profiles:
            check_allocations(run, end)


def run_and_kill_worker(program, directory, end, profiles):
    """The worker dies in the middle; the program goes on with another."""
    run = Run(program, directory, end, {})
    check(run.process.stdout.readline() == b"half\n", end + ": the first half")
    run.kill_worker()
    run.finish(b"\n")
    check(run.status == 0 and len(run.profiles) == profiles, "%s: %d %d profiles %r" % (end, run.status, len(run.profiles), run.errors))
    return run


def main():
    program = os.path.abspath(sys.argv[1])
    strobe = {"STROBE_WORKER_COMMAND": os.path.abspath(sys.argv[2])} if sys.argv[2:] else {}
    for end, status in (("stop", 0), ("kill", -signal.SIGKILL)):
        for environment in ({}, strobe) if strobe else ({},):
            check_end(program, end, status, environment)
    check_end(program, "fork", 0, {})

    # What is brought is in the profiles, to the byte.
    in_process = {"STROBE_WORKER_COMMAND": "/nonexistent", "STROBE_WORKER_FALLBACK": "in_process"}
    for environment in ({}, in_process):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(program, directory, "exact", environment).finish()
            check(run.status == 0, "exact: %d %r" % (run.status, run.errors))
            sums = {what: total(run.profiles, what) for what in ("alloc_objects", "alloc_space", "inuse_space")}
            check((sums["alloc_objects"], sums["alloc_space"]) == (run.said.get(b"objects"), run.said.get(b"bytes")), "exact: %r of %r" % (sums, run.said))
            check(sums["alloc_objects"] == 50000 and sums["inuse_space"] == 0, "exact: %r" % sums)
            # What a thread brings before the worker has seen its registration is with that of the threads without one.
            unregistered = total(run.profiles, "alloc_objects", thread="[unregistered thread]")
            check(20000 <= unregistered < 50000, "exact: of threads that are not registered: %d" % unregistered)
            named = total(run.profiles, "alloc_objects", "Bring")
            print("exact", sums, "with their stacks:", named)
            check(named > 0.5 * sums["alloc_objects"], "exact: with their stacks: %d" % named)

    # What is lost with a worker is in the last profile of the next one, to the byte.
    with tempfile.TemporaryDirectory() as directory:
        run = run_and_kill_worker(program, directory, "lost", profiles=2)
        sums = {what: total(run.profiles, what) for what in ("alloc_objects", "alloc_space")}
        check((sums["alloc_objects"], sums["alloc_space"]) == (run.said.get(b"objects"), run.said.get(b"bytes")), "lost: %r of %r" % (sums, run.said))
        lost = total(run.profiles, "alloc_objects", "[lost]")
        print("lost", sums, "of which", lost)
        check(lost >= 25000, "lost: what the first worker had not exported: %d" % lost)

    # The worker dies: the next one sees what is live.
    with tempfile.TemporaryDirectory() as directory:
        run = run_and_kill_worker(program, directory, "again", profiles=3)
        if run.said and run.profiles:
            check_live_heap(run, "again")
            # Of the first worker, what it had not exported is [lost].
            check_near("again: allocated", total(run.profiles[-1:], "alloc_space"), run.said[b"allocated"] + (128 << 20), 8 << 20)

    # The program writes into all that it shares, the live heap too: the worker lives, and exports what it has.
    for _ in range(3):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(program, directory, "scribble", {"STROBE_EXPORT_PERIOD_S": "1"}).finish()
            check(run.status == -signal.SIGKILL, "scribble: %d" % run.status)
            check(len(run.profiles) >= 3, "scribble: profiles: %d; %r" % (len(run.profiles), run.errors))
            check("killed by signal 9" in run.profiles[-1].comments[0], "scribble: how it ended")
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
