#!/usr/bin/env python3
"""Kills workers and programs at random instants, and adds up what is left; then hostile peers of a worker.

  worker_soak.py PROGRAM [--kills N] [--seed N]

A program whose worker is killed (kill -9) goes on. The sum of its profiles and of what it counts as lost is the CPU time of its threads.
The profile of a program that is killed has all samples that its rings have had. A hostile peer is refused, and the worker
ends. (One that listens goes on: see listener_soak.py.) Prints the figures; exit status 1 if one is wrong.
"""
import argparse
import os
import pathlib
import random
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, failures  # noqa: E402
from hostile_peers import HEAD, OFFER, OTHER_USER_ID, head  # noqa: E402
import hostile_peers  # noqa: E402
import pprof_file  # noqa: E402

TIMEOUT_S = 100
CPU_S = 0.4
THREADS = 4  # that the program has at a time, at most: each may be in the middle of a capture when it is killed


def begin(program, directory, end, **environment):
    return subprocess.Popen([program, directory, str(CPU_S), end], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "STROBE_WORKER": "1", "STROBE_MAX_OVERHEAD": "1", "STROBE_EXPORT_PERIOD_S": "0.2", **environment})


def begin_count(program, directory, **environment):
    """A program that has a worker by now."""
    process = begin(program, directory, "count", **environment)
    check(process.stdout.readline() == b"begun\n", "a program begins")
    return process


def worker_of(process):
    """Another process with the program's standard error; None if there is none now."""
    errors = os.readlink("/proc/%d/fd/2" % process.pid)
    for other in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(other.name) != process.pid and os.readlink(other / "fd/2") == errors:
                return int(other.name)
        except OSError:
            continue
    return None


def profiles(directory):
    return [pprof_file.read(path) for path in sorted(pathlib.Path(directory).glob("*.pb.gz"))]


def cpu_ns(found):
    return sum(values[profile.types.index("cpu")] for profile in found for _, values, _ in profile.rows)


def cpu_time_of_children():
    """Of those that have ended, in nanoseconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e9 * (usage.ru_utime + usage.ru_stime)


class Counted:
    """A run whose worker is killed after that time."""

    def __init__(self, program, directory, kill_after_s):
        used_before_ns = cpu_time_of_children()
        output = self.run(begin_count(program, directory), kill_after_s)
        # At least what the threads have used by their own clocks, and at most what the program has used by the system's.
        self.least_ns, self.lost_ns, self.rounds = map(int, re.search(rb"cpu (\d+) lost (\d+) rounds (\d+)", output).groups())
        self.most_ns = cpu_time_of_children() - used_before_ns + 10_000  # in microseconds
        found = profiles(directory)
        self.sampled_ns = cpu_ns(found)
        self.longest_period_ns = max(cpu_ns([profile]) for profile in found)

    def run(self, process, kill_after_s):
        self.is_killed = kill_after_s is not None and self.kill_worker(process, kill_after_s)
        output, errors = process.communicate(timeout=TIMEOUT_S)
        check(process.returncode == 0, "a program whose worker was killed: %d %r" % (process.returncode, errors))
        return output

    def kill_worker(self, process, after_s):
        time.sleep(after_s)
        try:
            worker = worker_of(process)
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
            return worker is not None
        except OSError:
            return False  # either has just ended

    def adds_up(self):
        # Of a worker that is killed between the export of a period and its note of that, the period counts as lost, too.
        twice_ns = self.longest_period_ns if self.is_killed else 0
        return self.least_ns <= self.sampled_ns + self.lost_ns <= self.most_ns + twice_ns


def kill_workers(program, kills, chance):
    """Each loss is counted."""
    runs = []
    for number in range(kills):
        with tempfile.TemporaryDirectory() as directory:
            wants_kill = number % 5 != 4  # the others say what noise is
            run = Counted(program, directory, chance.uniform(0.02, 3 * CPU_S) if wants_kill else None)
            runs.append(run)
            check(run.adds_up(), "run %d: %d ns in profiles and %d lost are not %d to %d by the clocks; the longest period has %d" %
                  (number, run.sampled_ns, run.lost_ns, run.least_ns, run.most_ns, run.longest_period_ns))
    errors = [(run.sampled_ns + run.lost_ns - run.least_ns) / run.least_ns for run in runs]
    killed = sum(run.is_killed for run in runs)
    print("workers killed: %d of %d runs; sums beside the clocks: median %+.3f %%, worst %.3f %%; lost in the mean: %.1f ms" %
          (killed, kills, 100 * statistics.median(errors), 100 * max(map(abs, errors)), sum(run.lost_ns for run in runs) / max(killed, 1) / 1e6))
    rates = {is_killed: [run.rounds / run.least_ns * 1e6 for run in runs if run.is_killed == is_killed] for is_killed in (False, True)}
    if rates[True] and rates[False]:
        print("rounds of work a ms of CPU time: median %.2f with a kill, %.2f without" % (statistics.median(rates[True]), statistics.median(rates[False])))


def kill_programs(program, kills, chance):
    kept = had = none = 0
    for _ in range(kills):
        with tempfile.TemporaryDirectory() as directory:
            process = begin_count(program, directory, STROBE_EXPORT_PERIOD_S="60")
            time.sleep(chance.uniform(0.02, 2 * CPU_S))
            process.kill()
            process.communicate(timeout=TIMEOUT_S)  # the worker has its standard error
            found = profiles(directory)
            none += not found
            for profile in found:
                check("killed by signal 9" in profile.comments[0] or "stopped" in profile.comments[0], "the end: %r" % profile.comments[0])
                # Each capture counts the end of its stack, in memory that outlives the program. A drop is no capture's.
                match = re.search(r"samples: (\d+); drops: \d+[^;]*; stack ends: (\d+)", profile.comments[1])
                check(abs(int(match[1]) - int(match[2])) <= THREADS, "%s of %s samples are in a profile" % (match[1], match[2]))
                kept += int(match[1])
                had += int(match[2])
            left = [path.name for path in pathlib.Path(directory).iterdir() if not path.name.endswith(".pb.gz")]
            check(not left, "files that are no profiles: %r" % left)
    print("programs killed: %d; without a profile: %d; %d of %d samples are in profiles: %.2f %%" % (kills, none, kept, had, 100 * kept / max(had, 1)))


# ---- hostile peers

def pair_of(user):
    """A socket pair that a process of that user has made."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        os.setgid(user)
        os.setuid(user)
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(other, [b"x"], [end.fileno() for end in ends])
        os._exit(0)
    os.waitpid(child, 0)
    _, files, _, _ = socket.recv_fds(own, 16, 2)
    return [socket.socket(fileno=file) for file in files]


def answer_of(program, packets, ends=None):
    """What a worker process does with these packets: (its answer, its exit status)."""
    own, its = ends or socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def inherit():
        os.dup2(its.fileno(), 3)
        os.set_inheritable(3, True)

    process = subprocess.Popen([program, "--strobe-worker"], stdin=subprocess.DEVNULL, preexec_fn=inherit, close_fds=False)
    its.close()
    for packet in packets:
        try:
            own.send(packet)
        except OSError:
            break  # it has refused already
    own.settimeout(TIMEOUT_S)
    try:
        answer = hostile_peers.receive(own)
        if len(answer) >= HEAD.size and HEAD.unpack_from(answer)[2] == OFFER:
            answer = hostile_peers.receive(own)
    except OSError:
        answer = b""
    own.close()
    return answer, process.wait(timeout=TIMEOUT_S)


def refuse_peers(program, chance):
    noise = [chance.randbytes(chance.choice([0, 1, 23, 24, 25, 100, 4096, 60000])) for _ in range(10)]
    peers = {what: [packet] for what, (packet, _) in hostile_peers.packets().items()}
    peers.update({"noise %d" % number: [packet] for number, packet in enumerate(noise)})
    peers.update({"noise in a hello %d" % number: [head(text=packet)] for number, packet in enumerate(noise)})
    for what, packets in peers.items():
        answer, status = answer_of(program, packets)
        check(status == 1, "%s: exit status %d" % (what, status))
        check(answer == b"" or HEAD.unpack_from(answer)[2] == 2 and HEAD.unpack_from(answer)[3] != 0, "%s: not refused: %r" % (what, answer[:100]))
    if os.geteuid() == 0:
        answer, status = answer_of(program, [head()], pair_of(OTHER_USER_ID))
        check(status == 1 and b"belongs to the user 65534" in answer, "another user: %d %r" % (status, answer[:200]))
    print("peers of a worker process refused: %d%s" % (len(peers), ", and another user" if os.geteuid() == 0 else ""))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--kills", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    program, chance = os.path.abspath(options.program), random.Random(options.seed)
    refuse_peers(program, chance)
    kill_workers(program, options.kills, chance)
    kill_programs(program, options.kills, chance)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
