#!/usr/bin/env python3
"""A program with a worker process, however it ends: its profile follows, and adds up.

  worker_test.py PROGRAM SLIM_PROGRAM [STROBE]

What a thread has is at least what it has worked by its own clock, and all threads together have at most what the system says that the
program has used. In which functions samples lie is checked for each sample; a run is repeated until it has been seen that each has one.
"""
import http.server
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402
from until_seen import wait_until, work_until  # noqa: E402

TIMEOUT_S = 100
CPU_S = 0.6


def cpu_time_of_children():
    """Of those that have ended, in nanoseconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e9 * (usage.ru_utime + usage.ru_stime)


class Run:
    """The worker has the program's standard error, so that ends when both have ended."""

    def __init__(self, program, directory, end, environment=None):
        self.directory = pathlib.Path(directory)
        self.used_before_ns = cpu_time_of_children()
        self.process = subprocess.Popen([program, directory, str(CPU_S), end], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "STROBE_WORKER": "1", "STROBE_MAX_OVERHEAD": "1", **(environment or {})})
        self.end = end

    def finish(self, given=b""):
        self.output, self.errors = self.process.communicate(given, timeout=TIMEOUT_S)
        self.status = self.process.returncode
        # The system says it in microseconds.
        self.used_ns = cpu_time_of_children() - self.used_before_ns + 10_000
        self.profiles = [pprof_file.read(path) for path in sorted(self.directory.glob("*.pb.gz"))]
        return self

    def worker(self):
        """The worker's process id: another process of the program, with the program's standard error."""
        errors = os.readlink("/proc/%d/fd/2" % self.process.pid)
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int(process.name) != self.process.pid and os.readlink(process / "fd/2") == errors:
                    return int(process.name)
            except OSError:
                continue
        return None


def sums(profiles):
    """CPU time by thread's name."""
    threads = {}
    for profile in profiles:
        column = profile.types.index("cpu")
        for _, values, labels in profile.rows:
            threads[labels["thread_name"]] = threads.get(labels["thread_name"], 0) + values[column]
    return threads


def kind_of(labels):
    return "pay" if labels.get("endpoint") == "/pay" and labels.get("shard") == 7 else labels.get("zone_path", "none")


def check_sample(names, labels, what):
    """What a thread's numbers mean: labels, zones, traces, slow spans. Exact for each sample. Returns what it shows."""
    kind, seen = kind_of(labels), set()
    for function, expected in (("MostOfIt", "pay"), ("TheRest", "rest;of it")):
        if "Spin" in names and function in names:
            check(kind == expected, "%s: labels of %s: %r" % (what, function, labels))
            seen.add(function)
        # They are set in the function, and left there.
        check(kind != expected or function in names, "%s: %r are not in %s: %s" % (what, labels, function, names))
    # The whole process's.
    check(labels.get("level") == "forest", "%s: the label of the process: %r" % (what, labels))
    is_other = labels["thread_name"] == "other"
    check(is_other or "trace_id" not in labels, "%s: no trace: %r" % (what, labels))
    if is_other and "Spin" in names:
        check(labels["trace_id"] == "0000000000001234", "%s: the trace: %r" % (what, labels))
        seen.add("span " + labels["span_id"])
    if "Spin" in names:
        check((labels.get("slow") == "true") == (labels.get("span_id") == "0000000000000056"), "%s: slow: %r" % (what, labels))
    if "count_down" in names:
        check("WorkInGeneratedCode" in names, "%s: generated code: %s" % (what, names))
        seen.add("count_down")
    return seen


def check_samples(profiles, what):
    """Returns what no sample shows."""
    unseen = {"MostOfIt", "TheRest", "count_down", "span 0000000000000056", "span 0000000000000057"}
    for profile in profiles:
        count = profile.types.index("samples")
        for locations, values, labels in profile.rows:
            names = [location.function[0] for location in locations]
            if values[count] > 0 and not names[-1].startswith("["):
                unseen -= check_sample(" ".join(names), labels, what)
    return unseen


def check_samples_are_whole(profile, what):
    """Of a program that has ended suddenly: each capture counts the end of its stack, in memory that outlives the program."""
    match = re.search(r"samples: (\d+); drops: \d+[^;]*; stack ends: (\d+)", profile.comments[1])
    check(match[1] == match[2], "%s: %s of %s samples are in the profile" % (what, match[1], match[2]))


def check_profile(run, what, threads_of_the_program=b"1 threads"):
    """Returns what its samples do not show."""
    check(len(run.profiles) == 1, "%s: one profile: %d; %s" % (what, len(run.profiles), run.errors.decode(errors="replace")))
    if not run.profiles:
        return set()
    check(threads_of_the_program in run.output, "%s: no thread but the program's: %r" % (what, run.output))
    # An exit stops the session.
    end = {"kill": "killed by signal 9", "orphan": "killed by signal 9", "abort": "killed by signal 6"}.get(run.end, "stopped")
    check("the program has ended: " + end in run.profiles[0].comments[0], "%s: how it ended: %r" % (what, run.profiles[0].comments))
    if end != "stopped":
        check_samples_are_whole(run.profiles[0], what)
    threads = sums(run.profiles)
    print(what, {name: round(ns / 1e6) for name, ns in threads.items()}, "of", round(run.used_ns / 1e6), flush=True)
    for name, least_s in (("main", CPU_S), ("other", CPU_S / 2), ("generated", CPU_S / 4), ("short", 20 * 0.001)):
        check(threads.get(name, 0) >= 1e9 * least_s, "%s: CPU time of %s: %d, it has worked for %.3f s" % (what, name, threads.get(name, 0), least_s))
    check(sum(threads.values()) <= run.used_ns, "%s: CPU time: %r, the program has used %d" % (what, threads, run.used_ns))
    return check_samples(run.profiles, what)


def until_seen(check_run, what):
    """check_run() runs a program, checks what follows in each run, and returns what chance has not shown in this one."""
    runs = []

    def is_seen(unseen):
        runs.append(unseen)
        return bool(failures) or not set.intersection(*runs)

    work_until(is_seen, check_run, what)


def check_slim_program(program, strobe):
    """The program has a profile, and no code that writes one."""
    names = subprocess.run(["nm", "-C", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("strobe::internal::RemoteCore::" in names, "slim: it has its own part")
    # Sources that share a translation unit are linked together.
    for name in () if "STROBE_TEST_UNITY" in os.environ else ("PprofEncoder", "FileExporter", "PlatformSymbolizer", "ProfilerCore<"):
        check("strobe::" + name not in names and "strobe::internal::" + name not in names, "slim: it has " + name)
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run([program, directory], env={**os.environ, "STROBE_WORKER_COMMAND": strobe}, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        profiles = [pprof_file.read(path) for path in pathlib.Path(directory).glob("*.pb.gz")]
        check(run.returncode == 0 and run.stderr == b"" and len(profiles) == 1, "slim: %d %r %d profiles" % (run.returncode, run.stderr, len(profiles)))
        check(sums(profiles).get("main", 0) > 0, "slim: main's CPU time")


def check_output_to_a_server(program, strobe):
    """The command, as a worker, sends to a server, and knows which ones there are. Returns what the samples do not show."""
    received, unseen = [], set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, tempfile.TemporaryDirectory() as directory:
        threading.Thread(target=server.serve_forever).start()
        environment = {"STROBE_WORKER_COMMAND": strobe, "STROBE_POST_URL": "http://127.0.0.1:%d/in" % server.server_port}
        run = Run(program, directory, "stop", {**environment, "STROBE_WORKER_OUTPUT": "post"}).finish()
        server.shutdown()
        if b"without HTTP" not in run.errors:
            check(run.status == 0 and not run.profiles and len(received) == 1, "post: %d %r %d" % (run.status, run.errors, len(received)))
            path = pathlib.Path(directory) / "received.pb.gz"
            path.write_bytes(b"".join(received[:1]))
            run.profiles = [pprof_file.read(path)]
            unseen = check_profile(run, "post")
        run = Run(program, directory, "stop", {**environment, "STROBE_WORKER_OUTPUT": "other"}).finish()
        check(run.status == 3 and b"STROBE_WORKER_OUTPUT=other: expected one of files" in run.errors, "another output: %d %r" % (run.status, run.errors))
    return unseen


def check_end(program, end, status, environment=None, threads_of_the_program=b"1 threads"):
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, end, environment).finish()
        check(run.status == status, "%s: exit status %d: %s" % (end, run.status, run.errors.decode(errors="replace")))
        check(run.errors == b"" or end == "abort", "%s: standard error: %r" % (end, run.errors))
        return check_profile(run, end, threads_of_the_program)


def check_orphan(program):
    """A child that the program leaves behind still has the socket."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "orphan").finish()
        os.kill(int(run.output.split(b"child ")[1].split()[0]), signal.SIGKILL)
        return check_profile(run, "orphan")


def check_fork(program, end, fallback):
    """A child has no session until it begins one of its own, with a worker of its own, or with threads of its own; or it is followed."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, end, {"STROBE_FOLLOW_FORKS": "1", **fallback} if end == "follow" else fallback).finish()
        check(run.status == 0 and run.errors.count(b"\n") == (2 if fallback else 0), "%s: %d %r" % (end, run.status, run.errors))
        profiles, unseen = run.profiles, set()
        check(len(profiles) == 2, "%s: a profile of each: %d" % (end, len(profiles)))
        check(sum(sum(sums([profile]).values()) for profile in profiles) <= run.used_ns, "%s: CPU time of both" % end)
        for run.profiles in ([profile] for profile in profiles):
            unseen |= check_profile(run, end, b"5 threads" if fallback else b"1 threads")
        return unseen


def check_recordings(program):
    """Recordings come back as profiles, and change nothing of the session's."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "record").finish()
        check(run.status == 0 and run.errors == b"", "record: %d %r" % (run.status, run.errors))
        unseen = check_profile(run, "record")
        print(run.output.decode())
        recorded, least_ns = {}, 0
        for words in map(str.split, run.output.decode().splitlines()[:4]):
            if words[0] == "least":
                least_ns = int(words[1])
                continue
            check(len(words) == 10 and words[1] == "OK", "record: %r" % words)
            recorded[words[0]] = dict(zip(words[2::2], map(int, words[3::2]))) if len(words) == 10 else {}
        check(set(recorded) == {"whole", "cancelled", "short"}, "record: three recordings: %r" % recorded)
        main_ns = sums(run.profiles).get("main", 0)
        whole, short = recorded.get("whole", {}), recorded.get("short", {})
        # The main thread works at once, also before the recording has begun.
        check(least_ns <= whole.get("main", 0) <= main_ns, "record: the whole: %r, at least %d, the session's: %d" % (whole, least_ns, main_ns))
        check(0 <= whole.get("pay", -1) <= whole.get("main", 0), "record: a label of the whole: %r" % whole)
        check(short.get("columns") == 1 and whole.get("columns") == 2, "record: columns: %r" % recorded)
        check(200e6 <= short.get("duration", 0) and 0 <= short.get("main", -1) <= main_ns, "record: a short one: %r" % short)
        check(recorded.get("cancelled", {}).get("duration", 1e18) < 3600e9, "record: a cancelled one: %r" % recorded)
        shown = {"the whole's main": least_ns > 0, "a label in the whole": whole.get("pay", 0) > 0, "the short one's main": short.get("main", 0) > 0}
        return unseen | {name for name, is_shown in shown.items() if not is_shown}


def check_toggle(program):
    """A signal begins the session and ends it. It has a thread of the program."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "toggle", {"STROBE_TOGGLE_SIGNAL": "USR2"})
        check(run.process.stdout.readline() == b"ready\n", "toggle: ready to begin")
        run.process.send_signal(signal.SIGUSR2)
        threads = run.process.stdout.readline()
        check(threads.startswith(b"2 threads"), "toggle: %r" % threads)
        before = len(list(run.directory.glob("*.pb.gz")))
        run.process.send_signal(signal.SIGUSR2)
        wait_until(lambda: len(list(run.directory.glob("*.pb.gz"))) > before, "toggle: the last profile")
        run.finish(b"\n")
        check(run.status == 0 and run.errors == b"", "toggle: %d %r" % (run.status, run.errors))
        main_ns = sums(run.profiles).get("main", 0)
        check(1e9 * CPU_S <= main_ns <= run.used_ns, "toggle: main's CPU time %d of %d" % (main_ns, run.used_ns))


def check_no_worker(program, command, end):
    """What is no worker, and what is not there: the program says so and goes on to its own end."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, end, {"STROBE_WORKER_COMMAND": command}).finish()
        check(run.status == 3 and b"UNAVAILABLE" in run.errors and b"worker" in run.errors, "%s: %d %r" % (command, run.status, run.errors))
    # Or threads of the program take the worker's place: collector, exporter, attendant, and the one that serves.
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, end, {"STROBE_WORKER_COMMAND": command, "STROBE_WORKER_FALLBACK": "in_process"}).finish()
        check(run.status == 0, "%s: %d %r" % (command, run.status, run.errors))
        check(run.errors.startswith(b"strobe: samples in process: ") and run.errors.count(b"\n") == 1, "%s: %r" % (command, run.errors))
        return check_profile(run, command, threads_of_the_program=b"5 threads")


def check_again(program):
    """The worker dies: the program goes on, and the next registration begins another, which has the second half."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "again")
        check(run.process.stdout.readline() == b"half\n", "the first half")
        worker = run.worker()
        check(worker is not None, "there is a worker")
        if worker is not None:
            handle = os.pidfd_open(worker)
            os.kill(worker, signal.SIGKILL)
            check(select.select([handle], [], [], TIMEOUT_S)[0] == [handle], "the worker's death")
            os.close(handle)
        run.finish(b"\n")
        check(run.status == 0, "after the worker's death: %d %r" % (run.status, run.errors))
        return check_profile(run, "again")


def check_signals(program):
    """A thread that blocks all signals after it has registered finds none of the worker's pending. Its CPU time is in the profile."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "signals", {"STROBE_WALL_FREQUENCY_HZ": "200"}).finish()
        check(run.status == 0 and run.output.startswith(b"taken 0\n"), "signals: %d %r %r" % (run.status, run.output, run.errors))
        return check_profile(run, "signals")


def lost_ns(profiles):
    """The CPU time that a worker has had of the one before, and that no profile has."""
    return sum(int(amount) for profile in profiles for amount in re.findall(r"amount in no profile: (\d+)", profile.comments[0]))


def check_lost(program, end, is_stopped):
    """The program closes its end of the connection, which a child keeps open: so its worker lives on, or is stopped, and goes on later.
    Another one takes its place, or threads of the program. Each nanosecond counts once."""
    what = end + (" while stopped" if is_stopped else "")
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, end, {"STROBE_WORKER_FALLBACK": "in_process"})
        check(run.process.stdout.readline() == b"half\n", what)
        worker = run.worker()
        if is_stopped:
            os.kill(worker, signal.SIGSTOP)
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
        run.process.stdout.readline()
        if is_stopped:
            os.kill(worker, signal.SIGCONT)
        run.finish()
        check(run.status == 0, "%s: %d %r" % (what, run.status, run.errors))
        threads, lost = sum(sums(run.profiles).values()), lost_ns(run.profiles)
        print("%s: %d profiles of %d ms, lost %d ms, of %d" % (what, len(run.profiles), threads / 1e6, lost / 1e6, run.used_ns / 1e6), flush=True)
        check(threads <= run.used_ns, "%s: CPU time: %d, the program has used %d" % (what, threads, run.used_ns))
        check(threads + lost >= 2e9 * (CPU_S * 7 / 4 + 0.02), "%s: CPU time: %d, lost %d" % (what, threads, lost))
        check(not is_stopped or len(run.profiles) == 1, "%s: %d profiles" % (what, len(run.profiles)))


def check_scribble(program):
    """The program writes into all that it shares: the worker lives, and exports what it has."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "scribble").finish()
        seed = run.process.pid
        check(run.status == -signal.SIGKILL, "scribble %d: exit status %d" % (seed, run.status))
        check(len(run.profiles) == 1, "scribble %d: one profile: %d; %r" % (seed, len(run.profiles), run.errors))
        check(all("killed by signal 9" in profile.comments[0] for profile in run.profiles), "scribble %d: how it ended" % seed)


def main():
    program, slim = (os.path.abspath(path) for path in sys.argv[1:3])
    strobe = sys.argv[3:] and os.path.abspath(sys.argv[3])
    for end, status in {"stop": 0, "exit": 0, "kill": -signal.SIGKILL, "abort": -signal.SIGABRT}.items():
        until_seen(lambda end=end, status=status: check_end(program, end, status), end)
    until_seen(lambda: check_orphan(program), "orphan")
    for fallback in ({}, {"STROBE_WORKER_COMMAND": "/nonexistent", "STROBE_WORKER_FALLBACK": "in_process"}):
        for end in "fork", "follow":
            until_seen(lambda end=end, fallback=fallback: check_fork(program, end, fallback), end)
    until_seen(lambda: check_recordings(program), "record")
    for _ in range(3):
        check_scribble(program)
    until_seen(lambda: check_signals(program), "signals")
    for end in "lost", "closed":
        for is_stopped in False, True:
            check_lost(program, end, is_stopped)
    check_toggle(program)
    # The worker is the strobe command.
    if strobe:
        until_seen(lambda: check_end(program, "stop", 0, {"STROBE_WORKER_COMMAND": strobe}), "strobe")
        check_slim_program(slim, strobe)
        until_seen(lambda: check_output_to_a_server(program, strobe), "post")
    for command, end in (("/bin/true", "stop"), ("/nonexistent", "exit")):
        until_seen(lambda command=command, end=end: check_no_worker(program, command, end), command)
    until_seen(lambda: check_again(program), "again")
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
