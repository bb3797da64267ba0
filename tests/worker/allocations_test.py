#!/usr/bin/env python3
"""Allocations and the live heap of a program with a worker, however either of them ends.

  allocations_test.py PROGRAM [STROBE]

How many of the program's blocks are sampled is decided by the random numbers of the thread that allocates them, whose seed is a time.
"""
import math
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
import chance  # noqa: E402
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402
from until_seen import work_until  # noqa: E402

TIMEOUT_S = 100
BLOCK_BYTES = 16 << 10
INTERVAL_BYTES = 32 << 10
# A sample of a block counts for so much.
BLOCKS_OF_A_SAMPLE = -1 / math.expm1(-BLOCK_BYTES / INTERVAL_BYTES)
BYTES_OF_A_SAMPLE = round(BLOCK_BYTES * BLOCKS_OF_A_SAMPLE)
# Far more than what the program allocates besides: hundreds of kilobytes.
OTHER_BYTES = 16 << 20


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


def check_blocks(what, sampled_bytes, truth_bytes, other_bytes=0):
    """An estimate of what blocks of one size, and a little besides, add up to."""
    low, high = chance.binomial_bounds(truth_bytes // BLOCK_BYTES, 1 / BLOCKS_OF_A_SAMPLE)
    check(other_bytes > 0 or sampled_bytes % BYTES_OF_A_SAMPLE == 0, "%s: %d bytes are not those of samples" % (what, sampled_bytes))
    chance.within(sampled_bytes / BYTES_OF_A_SAMPLE, (low, high + other_bytes / BYTES_OF_A_SAMPLE), what)


def check_live_heap(run, what):
    live, last = run.said[b"live"], run.profiles[-1:]
    kept = total(last, "inuse_space", "Keep", "[live]")
    check_blocks(what + ": live bytes of Keep", kept, live)
    others = total(last, "inuse_space", thread="[live]") - kept
    check(0 <= others <= OTHER_BYTES, "%s: live bytes of others: %d" % (what, others))
    samples, objects = kept // BYTES_OF_A_SAMPLE, total(last, "inuse_objects", "Keep")
    # The count of a sample is rounded at random.
    check(samples * math.floor(BLOCKS_OF_A_SAMPLE) <= objects <= samples * math.ceil(BLOCKS_OF_A_SAMPLE),
          "%s: %d live objects of %d samples" % (what, objects, samples))


def check_allocations(run, what):
    check(len(run.profiles) == 3, "%s: three profiles: %d; %r" % (what, len(run.profiles), run.errors))
    last = run.profiles[-1:]
    check(run.said[b"untaken"] == 0, "%s: a session takes all: %r" % (what, run.said))
    known = total(last, "alloc_space", "Keep")
    check_blocks(what + ": allocated by Keep", known, run.said[b"live"])
    for thread in ("main", "[unregistered thread]"):
        garbage = total(last, "alloc_space", "MakeGarbage", thread)
        check_blocks("%s: garbage of %s" % (what, thread), garbage, 64 << 20)
        known += garbage
    others = total(last, "alloc_space") - known
    check(0 <= others <= OTHER_BYTES, "%s: allocated by others: %d" % (what, others))
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


def check_exact(program, environment):
    """What is brought is in the profiles, to the byte. True once it has been seen that stacks and registered threads have some of it."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "exact", environment).finish()
        check(run.status == 0, "exact: %d %r" % (run.status, run.errors))
        sums = {what: total(run.profiles, what) for what in ("alloc_objects", "alloc_space", "inuse_space")}
        check((sums["alloc_objects"], sums["alloc_space"]) == (run.said.get(b"objects"), run.said.get(b"bytes")), "exact: %r of %r" % (sums, run.said))
        check(sums["alloc_objects"] == 50000 and sums["inuse_space"] == 0, "exact: %r" % sums)
        # What a thread brings before the worker has seen its registration is with that of the threads without one.
        unregistered = total(run.profiles, "alloc_objects", thread="[unregistered thread]")
        check(20000 <= unregistered <= 50000, "exact: of threads that are not registered: %d" % unregistered)
        # Until there are unwind tables, a stack is cut.
        named = total(run.profiles, "alloc_objects", "Bring")
        for profile in run.profiles:
            for locations, values, _ in profile.rows:
                names = [location.function[0] for location in locations]
                is_whole = values[profile.types.index("alloc_objects")] > 0 and not names[-1].startswith("[")
                check(not is_whole or any("Bring" in name for name in names), "exact: a stack of others: %r" % names)
        print("exact", sums, "of registered threads:", 50000 - unregistered, "with their stacks:", named)
        return bool(failures) or (unregistered < 50000 and named > 0)


def main():
    program = os.path.abspath(sys.argv[1])
    strobe = {"STROBE_WORKER_COMMAND": os.path.abspath(sys.argv[2])} if sys.argv[2:] else {}
    for end, status in (("stop", 0), ("kill", -signal.SIGKILL)):
        for environment in ({}, strobe) if strobe else ({},):
            check_end(program, end, status, environment)
    check_end(program, "fork", 0, {})

    in_process = {"STROBE_WORKER_COMMAND": "/nonexistent", "STROBE_WORKER_FALLBACK": "in_process"}
    for environment in ({}, in_process):
        work_until(bool, lambda environment=environment: check_exact(program, environment), "events of registered threads, with stacks")

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
            check_blocks("again: allocated", total(run.profiles[-1:], "alloc_space"), run.said[b"allocated"] + (128 << 20), OTHER_BYTES)

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
