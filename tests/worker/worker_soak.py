#!/usr/bin/env python3
"""Kills workers and programs at random instants, and adds up what is left; then hostile peers of a worker.

  worker_soak.py PROGRAM [--kills N] [--seed N]

A program whose worker is killed (kill -9) goes on. The sum of its profiles and of what it counts as lost is the CPU time of its threads.
The profile of a program that is killed has at least 99 % of the samples that its rings have had. A hostile peer is refused, and the worker
ends. (One that listens goes on: see listener_soak.py.) Prints the figures; exit status 1 if one is wrong.
"""
import argparse
import os
import pathlib
import random
import re
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
# Of the CPU time: the kernel brings a thread's clock up to date for other processes at its ticks, of 4 ms; and 20 ms for each of the
# threads that end while the worker is killed.
TOLERANCE = 0.03
TOLERANCE_NS = 20e6


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


def counted(program, directory, kill_after_s):
    """A run whose worker is killed after that time: (CPU time, in profiles, counted as lost, rounds of work, whether it was killed)."""
    process = begin_count(program, directory)
    killed = False
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        try:
            worker = worker_of(process)
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
                killed = True
        except OSError:
            pass  # either has just ended
    output, errors = process.communicate(timeout=TIMEOUT_S)
    check(process.returncode == 0, "a program whose worker was killed: %d %r" % (process.returncode, errors))
    used, lost, rounds = map(int, re.search(rb"cpu (\d+) lost (\d+) rounds (\d+)", output).groups())
    return used, cpu_ns(profiles(directory)), lost, rounds, killed


def kill_workers(program, kills, chance):
    """Each loss is counted."""
    errors, killed, lost_sum, rates = [], 0, 0, {False: [], True: []}
    for number in range(kills):
        with tempfile.TemporaryDirectory() as directory:
            wants_kill = number % 5 != 4  # the others say what noise is
            used, sampled, lost, rounds, was_killed = counted(program, directory, chance.uniform(0.02, 3 * CPU_S) if wants_kill else None)
            killed += was_killed
            lost_sum += lost
            rates[was_killed].append(rounds / used * 1e6)
            errors.append((sampled + lost - used) / used)
            check(abs(sampled + lost - used) <= TOLERANCE * used + TOLERANCE_NS,
                  "run %d: %d ns in profiles and %d lost are not the %d of the clocks" % (number, sampled, lost, used))
    print("workers killed: %d of %d runs; sums beside the clocks: median %+.3f %%, worst %.3f %%; lost in the mean: %.1f ms" %
          (killed, kills, 100 * statistics.median(errors), 100 * max(map(abs, errors)), lost_sum / max(killed, 1) / 1e6))
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
                kept += int(match[1])
                had += int(match[2])
            left = [path.name for path in pathlib.Path(directory).iterdir() if not path.name.endswith(".pb.gz")]
            check(not left, "files that are no profiles: %r" % left)
    print("programs killed: %d; without a profile: %d; %d of %d samples are in profiles: %.2f %%" % (kills, none, kept, had, 100 * kept / max(had, 1)))
    check(kept >= 0.99 * had, "fewer than 99 % of the samples")


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
