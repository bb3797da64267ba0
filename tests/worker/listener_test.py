#!/usr/bin/env python3
"""One worker for many programs: `strobe worker --listen`.

  listener_test.py PROGRAM STROBE
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
import hostile_peers  # noqa: E402
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402
from until_seen import wait_until, work_until  # noqa: E402

TIMEOUT_S = 100
WELCOME_S = 20  # how long a program waits for a worker of its own
PROGRAMS = 40
AT_A_TIME = 8
CONNECTS = 300  # by hand, in listener_soak.py: 10,000
SLOW_PEERS = 20
PEERS_AT_A_TIME = 32


class Listener:
    """The command, from the line that says where it listens to its end."""

    def __init__(self, strobe, path):
        self.process = subprocess.Popen([strobe, "worker", "--listen", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline().decode().strip()
        self.environment = dict([line.split("=", 1), ("STROBE_WORKER", "1")]) if line else {}

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def memory_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/%d/status" % self.process.pid).read_text())[1])

    def await_descriptors(self, count):
        """What belongs to a program goes a moment after the program."""
        wait_until(lambda: self.descriptors() == count, "%d descriptors, now %d" % (count, self.descriptors()))

    def finish(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, self.errors = self.process.communicate(timeout=TIMEOUT_S)
        self.status = self.process.returncode
        served = re.search(rb"served (\d+) programs; refused (\d+)(?:: (.*))?\n", self.errors)
        self.counts = [int(count) for count in served.groups()[:2]] if served else None
        reasons = served[3].decode().split(", ") if served and served[3] else []
        self.reasons = {name: int(count) for count, name in (reason.split(" ", 1) for reason in reasons)}
        return self


def begin(program, directory, seconds, end, environment):
    return subprocess.Popen([program, directory, str(seconds), end], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "STROBE_MAX_OVERHEAD": "1", **environment})


def profiles(directory):
    """By process id: the profiles of that process."""
    found = {}
    for path in sorted(pathlib.Path(directory).glob("*.pb.gz")):
        found.setdefault(int(path.name.split(".")[-4]), []).append(pprof_file.read(path))
    return found


def cpu_ns(found, thread=None):
    """CPU time of the profiles, or of their threads with that name."""
    return sum(values[profile.types.index("cpu")] for profile in found for _, values, labels in profile.rows
               if thread in (None, labels["thread_name"]))


def names(found):
    return {location.function[0] for profile in found for locations, _, _ in profile.rows for location in locations}


def serve_many(program, listener, directory):
    """Short programs, some at a time: each has its profile, and leaves nothing in the worker. True if names and labels of several are seen."""
    running, pids = [], []
    for _ in range(PROGRAMS):
        if len(running) == AT_A_TIME:
            process = running.pop(0)
            _, errors = process.communicate(timeout=TIMEOUT_S)
            check(process.returncode == 0 and errors == b"", "a program: %d %r" % (process.returncode, errors))
        running.append(begin(program, directory, 0.02, "stop", listener.environment))
        pids.append(running[-1].pid)
    for process in running:
        _, errors = process.communicate(timeout=TIMEOUT_S)
        check(process.returncode == 0 and errors == b"", "a program: %d %r" % (process.returncode, errors))
    found = profiles(directory)
    check(sorted(found) == sorted(pids), "a profile of each program, and no other: %d of %d" % (len(found), len(pids)))
    for pid, own in found.items():
        main_ns, short_ns = cpu_ns(own, "main"), cpu_ns(own, "short")
        check(len(own) == 1 and main_ns >= 0.02e9 and short_ns >= 20e6,
              "program %d: CPU times: %d profiles, main %d ns, short %d ns" % (pid, len(own), main_ns, short_ns))
    # Chance decides in which functions programs so short are sampled.
    labelled = sum(any(labels.get("endpoint") == "/pay" for profile in own for _, _, labels in profile.rows) for own in found.values())
    return labelled > 1 and any("Spin" in name for own in found.values() for name in names(own))


def meet_hostile_peers(program, strobe, root, connects, slow_peers):
    """Peers that are no programs, and slow ones, beside a program: the worker's memory in KiB after half of them, and at the end."""
    listener = Listener(strobe, root + "/hostile/worker.sock")
    path, chance, memory_kib = listener.environment["STROBE_WORKER_SOCKET"], random.Random(1), []
    descriptors = listener.descriptors() + 1  # the store of tables is made for the first peer
    genuine = []
    steps = {connects // 4: lambda: genuine.append(begin(program, root + "/genuine", 0.1, "stop", listener.environment)),
             connects // 2: lambda: memory_kib.append(listener.memory_kib())}

    slow = hostile_peers.connect_slow(path, slow_peers)
    expected, late = hostile_peers.connect_many(path, connects, PEERS_AT_A_TIME, chance, steps)
    memory_kib.append(listener.memory_kib())
    _, errors = genuine[0].communicate(timeout=TIMEOUT_S)
    check(genuine[0].returncode == 0 and errors == b"", "a program among them: %d %r" % (genuine[0].returncode, errors))
    refused, _ = hostile_peers.await_refusals(slow)
    check(refused == slow_peers, "slow peers refused: %d" % refused)
    expected["too slow"] += slow_peers
    if os.geteuid() == 0:
        check(hostile_peers.other_user_is_refused(path), "another user")
        expected["other user"] += 1
    listener.await_descriptors(descriptors)
    listener.finish()
    print(listener.errors.decode().strip())
    check(listener.counts == [1, sum(expected.values())], "served and refused: %r" % listener.errors)
    check(hostile_peers.are_as_expected(listener.reasons, expected, late), "reasons: %r, not %r; %d peers were late" % (listener.reasons, expected, late))
    check(len(profiles(root + "/genuine")) == 1, "the profile of the program among them")
    return memory_kib


def main():
    program, strobe = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as root:
        path = root + "/own/worker.sock"
        listener = Listener(strobe, path)
        check(listener.environment.get("STROBE_WORKER_SOCKET") == path, "it says where it listens: %r" % listener.environment)
        check(os.stat(root + "/own").st_mode & 0o777 == 0o700, "a private directory")

        # A second one at the same path says so, and the first goes on.
        second = subprocess.run([strobe, "worker", "--listen", path], capture_output=True, timeout=TIMEOUT_S)
        check(second.returncode == 1 and b"another worker listens" in second.stderr, "a second one: %d %r" % (second.returncode, second.stderr))

        descriptors = listener.descriptors() + 1  # the store of tables is made for the first program
        served = []

        def serve_more():
            served.append(root + "/many%d" % len(served))
            return serve_many(program, listener, served[-1])

        work_until(bool, serve_more, "names, and labels of several programs")
        listener.await_descriptors(descriptors)

        # A forked child, and one that is executed, join as themselves.
        family = begin(program, root + "/family", 0.3, "family", listener.environment)
        _, errors = family.communicate(timeout=TIMEOUT_S)
        check(family.returncode == 0 and errors == b"", "a family: %d %r" % (family.returncode, errors))
        found = profiles(root + "/family")
        check(len(found) == 3 and all(len(own) == 1 for own in found.values()), "three profiles: %r" % sorted(found))
        check(sum(cpu_ns(own, "child") >= 0.3e9 for own in found.values()) == 1, "the forked child's CPU time")
        check(sum(cpu_ns(own, "main") >= 0.3e9 for own in found.values()) == 2, "those of the program, and of what it has executed")

        # A program that is killed.
        killed = begin(program, root + "/killed", 0.3, "kill", listener.environment)
        killed.communicate(timeout=TIMEOUT_S)
        check(killed.returncode == -signal.SIGKILL, "killed: %d" % killed.returncode)

        # SIGTERM: what the program has so far is exported. Then the program begins a worker of its own.
        half = begin(program, root + "/half", 0.3, "again", listener.environment)
        check(half.stdout.readline() == b"half\n", "the first half")
        listener.finish()
        check(listener.status == 0, "SIGTERM: %d %r" % (listener.status, listener.errors))
        check(listener.counts == [len(served) * PROGRAMS + 5, 0], "what was served: %r %r" % (listener.counts, listener.errors))
        found = profiles(root + "/half")
        check(list(found) == [half.pid] and cpu_ns(found[half.pid], "main") >= 0.3e9, "the first half's profile")
        check(len(profiles(root + "/killed")) == 1, "the killed program's profile")
        half.communicate(b"\n", timeout=TIMEOUT_S)
        check(half.returncode == 0, "the second half: %d" % half.returncode)
        found = profiles(root + "/half")
        check(len(found[half.pid]) == 2, "the second half's profile: %d" % len(found[half.pid]))
        check(not os.path.exists(path), "the socket is removed")

        # Nobody listens: the same.
        alone = begin(program, root + "/alone", 0.05, "stop", listener.environment)
        alone.communicate(timeout=TIMEOUT_S)
        check(alone.returncode == 0 and len(profiles(root + "/alone")) == 1, "without a listener")

        # One that is stopped answers nothing: the same, long before its patience with a worker of its own is over.
        listener = Listener(strobe, path)
        os.kill(listener.process.pid, signal.SIGSTOP)
        stopped = begin(program, root + "/stopped", 0.05, "attach", listener.environment)
        begin_s = int(stopped.stdout.readline().split()[1]) / 1e9
        check(begin_s < WELCOME_S, "beside a stopped listener the begin took %.1f s" % begin_s)
        check(stopped.stdout.readline() == b"half\n", "the first half beside a stopped listener")
        stopped.communicate(b"\n", timeout=TIMEOUT_S)
        check(stopped.returncode == 0 and len(profiles(root + "/stopped")) == 1, "beside a stopped listener")
        os.kill(listener.process.pid, signal.SIGCONT)
        listener.finish()

        # A dead one's socket is replaced. Relative directories are the program's.
        listener = Listener(strobe, path)
        listener.finish(signal.SIGKILL)
        check(os.path.exists(path), "a dead listener leaves its socket")
        listener = Listener(strobe, path)
        after = begin(program, os.path.relpath(root) + "/after", 0.05, "stop", listener.environment)
        after.communicate(timeout=TIMEOUT_S)
        check(after.returncode == 0 and len(profiles(root + "/after")) == 1, "after a dead one")
        check(listener.finish(signal.SIGINT).status == 0 and listener.counts == [1, 0], "SIGINT: %r" % listener.errors)
        meet_hostile_peers(program, strobe, root, CONNECTS, SLOW_PEERS)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
