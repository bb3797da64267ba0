#!/usr/bin/env python3
"""Many programs under one worker, run by hand: what each leaves in the worker, and what they share.

  listener_soak.py PROGRAM STROBE [--programs N] [--at-a-time N] [--seconds N] [--together N] [--connects N]

Begins `strobe worker --listen`. First N programs that live at the same time (--together): the memory of their unwind tables, and how
long each took to attach. (A test of the TableStore measures whole libraries.) Then N short ones (--programs), some at a time, spread
over some time (--seconds; as fast as they come without it), each of which is killed at its end with a chance of 1 in 10: the worker's
memory and descriptors must stay flat, and each has its profile.
Before both, N peers that are no programs (--connects), a program among them, and slow peers: the same, and each refusal is counted by
its reason.
"""
import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from listener_test import Listener, failures, meet_hostile_peers

TIMEOUT_S = 300
ROWS = 10
SLOW_PEERS = 100
SETTLING_PROGRAMS = 200  # until then the worker's memory grows: its allocator's, with each program that lives at the same time


def mapped_kib(pid, name):
    """Resident memory of the process's mappings of a memfd."""
    total, is_meant = 0, False
    for line in pathlib.Path("/proc/%d/smaps" % pid).read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_meant = "/memfd:" + name + " " in line
        elif is_meant and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


def begin(program, directory, arguments, listener, **options):
    return subprocess.Popen([program, directory, *arguments], env={**os.environ, "STROBE_MAX_OVERHEAD": "1", **listener.environment},
                            stdout=subprocess.PIPE, stdin=subprocess.PIPE, **options)


def together(program, listener, count, directory):
    """Programs that wait after their first half: what the worker has of one, and of all."""
    worker = listener.process.pid
    running, attach_ns, rows = [], [], {}
    for i in range(count):
        process = begin(program, directory, ["0.1", "attach"], listener)
        attach_ns.append(int(process.stdout.readline().split()[1]))
        assert process.stdout.readline() == b"half\n"
        running.append(process)
        if i in (0, count // 2, count - 1):
            rows[i] = mapped_kib(worker, "strobe-table-store"), mapped_kib(worker, "strobe-tables"), listener.memory_kib()
    for process in running:
        process.communicate(b"\n", timeout=TIMEOUT_S)
    for i, (tables, lists, memory) in sorted(rows.items()):
        print("%3d programs: tables %4d KiB, lists of modules %4d KiB, the worker's memory %6d KiB" % (i + 1, tables, lists, memory))
    print("attach: %.2f ms the first, %.2f ms the last; median of the last ten %.2f ms" %
          (attach_ns[0] / 1e6, attach_ns[-1] / 1e6, sorted(attach_ns[-10:])[5] / 1e6))
    # Chance decides in which code a short program is sampled, so the first ones add some tables.
    return rows[count - 1][0] <= 1.05 * rows[count // 2][0]


def soak(program, listener, options, directory):
    worker, chance = listener.process.pid, random.Random(1)
    running, killed, failed = [], 0, 0
    begin_s, rows = time.monotonic(), []

    def finish(process):
        nonlocal killed, failed
        process.communicate(timeout=TIMEOUT_S)
        killed += process.returncode == -signal.SIGKILL
        failed += process.returncode not in (0, -signal.SIGKILL)

    for i in range(options.programs):
        if len(running) == options.at_a_time:
            finish(running.pop(0))
        time.sleep(max(0, begin_s + options.seconds * i / options.programs - time.monotonic()))
        # The files of one program in a directory are limited.
        running.append(begin(program, "%s/%d" % (directory, i), ["0.01", "kill" if chance.random() < 0.1 else "stop"], listener))
        if (i + 1) % max(options.programs // ROWS, 1) == 0:
            rows.append((i + 1, listener.memory_kib(), listener.descriptors()))
            print("%5.0f s %5d programs: worker has %6d KiB, %3d descriptors, %3d threads" %
                  (time.monotonic() - begin_s, *rows[-1], len(os.listdir("/proc/%d/task" % worker))), flush=True)
    for process in running:
        finish(process)
    listener.await_descriptors(options.descriptors)
    print("after the last: %d descriptors, before the first %d; %d KiB" % (listener.descriptors(), options.descriptors, listener.memory_kib()))
    listener.finish()
    profiles = [len(list(pathlib.Path("%s/%d" % (directory, i)).glob("*.pb.gz"))) for i in range(options.programs)]
    without = profiles.count(0)
    print("%d programs, %d killed, %d failed; %d without a profile, %d with more than one; the worker: %s" %
          (options.programs, killed, failed, without, sum(count > 1 for count in profiles), listener.errors.decode().strip()))
    # Memory of the second half of the run against the first: the allocator's, which keeps what it had at most.
    grows = options.programs >= 2 * SETTLING_PROGRAMS and rows[-1][1] > 1.1 * rows[len(rows) // 2 - 1][1]
    return not grows and failed == 0 and not without and listener.status == 0


def hostile(program, strobe, connects, root):
    begin_s = time.monotonic()
    half, end = meet_hostile_peers(program, strobe, root, connects, SLOW_PEERS)
    print("%d hostile peers and %d slow ones in %.0f s: %d failures; the worker's memory: %d KiB after half of them, %d KiB at the end" %
          (connects, SLOW_PEERS, time.monotonic() - begin_s, len(failures), half, end))
    return not failures and end <= 1.05 * half


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("strobe")
    for name, default in (("programs", 2000), ("at-a-time", 8), ("seconds", 0), ("together", 100), ("connects", 10000)):
        parser.add_argument("--" + name, type=int, default=default)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as root:
        is_well = options.connects == 0 or hostile(program, os.path.abspath(options.strobe), options.connects, root)
        listener = Listener(os.path.abspath(options.strobe), root + "/own/worker.sock")
        options.descriptors = listener.descriptors() + 1  # the store of tables is made for the first program
        is_well &= options.together == 0 or together(program, listener, options.together, root + "/together")
        is_well &= soak(program, listener, options, root + "/soak")
    print("PASS" if is_well else "FAIL")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
