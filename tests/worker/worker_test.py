#!/usr/bin/env python3
"""A program with a worker process, however it ends: its profile follows, and adds up.

  worker_test.py PROGRAM SLIM_PROGRAM [STROBE]
"""
import http.server
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402

TIMEOUT_S = 100
CPU_S = 0.6


class Run:
    """The worker has the program's standard error, so that ends when both have ended."""

    def __init__(self, program, directory, end, environment=None):
        self.directory = pathlib.Path(directory)
        self.process = subprocess.Popen([program, directory, str(CPU_S), end], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "STROBE_WORKER": "1", "STROBE_MAX_OVERHEAD": "1", **(environment or {})})
        self.end = end

    def finish(self, given=b""):
        self.output, self.errors = self.process.communicate(given, timeout=TIMEOUT_S)
        self.status = self.process.returncode
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
    """CPU time by thread's name, and samples by function for those on the stack."""
    threads, functions = {}, {}
    for profile in profiles:
        column, count = profile.types.index("cpu"), profile.types.index("samples")
        for locations, values, labels in profile.rows:
            name = labels["thread_name"]
            threads[name] = threads.get(name, 0) + values[column]
            for function in {location.function[0] for location in locations}:
                functions[function] = functions.get(function, 0) + values[count]
    return threads, functions


def check_labels(run, what):
    """What the threads' numbers mean: labels, zones, traces, slow spans. Exact for each sample, and they add up."""
    totals, by_function, spans = {}, {}, {"0000000000000056": 0, "0000000000000057": 0}
    for profile in run.profiles:
        column, count = profile.types.index("cpu"), profile.types.index("samples")
        for locations, values, labels in profile.rows:
            names = " ".join(location.function[0] for location in locations)
            kind = "pay" if labels.get("endpoint") == "/pay" and labels.get("shard") == 7 else labels.get("zone_path", "none")
            totals[kind] = totals.get(kind, 0) + values[column]
            for function, expected in (("MostOfIt", "pay"), ("TheRest", "rest;of it")):
                if function in names:
                    by_function[expected] = by_function.get(expected, 0) + values[column]
                if "Spin" in names and function in names:
                    check(kind == expected, "%s: labels of %s: %r" % (what, function, labels))
            is_other = labels["thread_name"] == "other"
            check(is_other or "trace_id" not in labels, "%s: no trace: %r" % (what, labels))
            if is_other and "Spin" in names:
                check(labels["trace_id"] == "0000000000001234", "%s: the trace: %r" % (what, labels))
                spans[labels["span_id"]] += values[count]
            if "Spin" in names:
                check((labels.get("slow") == "true") == (labels.get("span_id") == "0000000000000056"), "%s: slow: %r" % (what, labels))
    print(what, {kind: round(ns / 1e6) for kind, ns in totals.items()}, spans)
    check(set(totals) - {"none", "rest"} == {"pay", "rest;of it"}, "%s: kinds of labels: %r" % (what, totals))
    for kind in ("pay", "rest;of it"):
        # A few samples lie before the labels are set, or after.
        check(abs(by_function.get(kind, 0) - totals.get(kind, 0)) < 0.03 * sum(totals.values()),
              "%s: labels add up: %r and %r" % (what, totals, by_function))
    check(min(spans.values()) > 0, "%s: both spans: %r" % (what, spans))


def check_profile(run, what, least_share=0.97, threads_of_the_program=b"1 threads"):
    check(len(run.profiles) == 1, "%s: one profile: %d; %s" % (what, len(run.profiles), run.errors.decode(errors="replace")))
    if not run.profiles:
        return
    check(threads_of_the_program in run.output, "%s: no thread but the program's: %r" % (what, run.output))
    # An exit stops the session.
    end = {"kill": "killed by signal 9", "orphan": "killed by signal 9", "abort": "killed by signal 6"}.get(run.end, "stopped")
    check("the program has ended: " + end in run.profiles[0].comments[0], "%s: how it ended: %r" % (what, run.profiles[0].comments))
    threads, functions = sums(run.profiles)
    print(what, {name: round(ns / 1e6) for name, ns in threads.items()})
    cpu_ns = int(run.output.split()[-1])
    # Of the main thread, all up to what it printed; of the others, all up to their clocks' end.
    check(threads.get("main", 0) > least_share * cpu_ns, "%s: main's CPU time %d of %d" % (what, threads.get("main", 0), cpu_ns))
    check(threads.get("main", 0) < 1.2 * cpu_ns, "%s: main's CPU time %d of %d" % (what, threads.get("main", 0), cpu_ns))
    check(abs(threads.get("other", 0) - CPU_S / 2 * 1e9) < 0.1e9, "%s: the other thread's CPU time: %d" % (what, threads.get("other", 0)))
    check(threads.get("short", 0) >= 20e6, "%s: 20 threads of a millisecond: %d" % (what, threads.get("short", 0)))
    most = sum(samples for name, samples in functions.items() if "MostOfIt" in name)
    rest = sum(samples for name, samples in functions.items() if "TheRest" in name)
    # A busy machine gives few samples: five standard errors.
    error = 5 * (0.75 * 0.25 / max(most + rest, 1)) ** 0.5
    check(most + rest > 5 and abs(most / (most + rest) - 0.75) < error, "%s: three quarters and a quarter: %d and %d" % (what, most, rest))
    check(any("Spin" in name for name in functions), "%s: names: %r" % (what, sorted(functions)))
    check_labels(run, what)


def check_slim_program(program, strobe):
    """The program has a profile, and no code that writes one."""
    names = subprocess.run(["nm", "-C", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("strobe::internal::WorkerCore::" in names, "slim: it has its own part")
    for name in ("PprofEncoder", "FileExporter", "PlatformSymbolizer", "ProfilerCore<"):
        check("strobe::" + name not in names and "strobe::internal::" + name not in names, "slim: it has " + name)
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run([program, directory], env={**os.environ, "STROBE_WORKER_COMMAND": strobe}, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
        profiles = [pprof_file.read(path) for path in pathlib.Path(directory).glob("*.pb.gz")]
        check(run.returncode == 0 and run.stderr == b"" and len(profiles) == 1, "slim: %d %r %d profiles" % (run.returncode, run.stderr, len(profiles)))
        check(sums(profiles)[0].get("main", 0) > 0, "slim: main's CPU time")


def check_output_to_a_server(program, strobe):
    """The command, as a worker, sends to a server, and knows which ones there are."""
    received = []

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
            check_profile(run, "post")
        run = Run(program, directory, "stop", {**environment, "STROBE_WORKER_OUTPUT": "other"}).finish()
        check(run.status == 3 and b"STROBE_WORKER_OUTPUT=other: expected one of files" in run.errors, "another output: %d %r" % (run.status, run.errors))


def main():
    program, slim = (os.path.abspath(path) for path in sys.argv[1:3])
    strobe = sys.argv[3:] and os.path.abspath(sys.argv[3])
    ends = {"stop": 0, "exit": 0, "kill": -signal.SIGKILL, "abort": -signal.SIGABRT}
    for end, status in ends.items():
        with tempfile.TemporaryDirectory() as directory:
            run = Run(program, directory, end).finish()
            check(run.status == status, "%s: exit status %d: %s" % (end, run.status, run.errors.decode(errors="replace")))
            check(run.errors == b"" or end == "abort", "%s: standard error: %r" % (end, run.errors))
            # What a thread used since the last look before a sudden end is not known: on a busy machine that was long ago.
            check_profile(run, end, 0.97 if status == 0 else 0.5)

    # A child that the program leaves behind still has the socket.
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "orphan").finish()
        os.kill(int(run.output.split(b"child ")[1].split()[0]), signal.SIGKILL)
        check_profile(run, "orphan", 0.5)

    # The program writes into all that it shares: the worker lives, and exports what it has.
    for _ in range(3):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(program, directory, "scribble").finish()
            check(run.status == -signal.SIGKILL, "scribble: exit status %d" % run.status)
            check(len(run.profiles) == 1, "scribble: one profile: %d; %r" % (len(run.profiles), run.errors))
            check(all("killed by signal 9" in profile.comments[0] for profile in run.profiles), "scribble: how it ended")

    # A signal begins the session and ends it. It has a thread of the program.
    with tempfile.TemporaryDirectory() as directory:
        run = Run(program, directory, "toggle", {"STROBE_TOGGLE_SIGNAL": "USR2"})
        check(run.process.stdout.readline() == b"ready\n", "toggle: ready to begin")
        run.process.send_signal(signal.SIGUSR2)
        threads = run.process.stdout.readline()
        check(threads.startswith(b"2 threads"), "toggle: %r" % threads)
        before = len(list(run.directory.glob("*.pb.gz")))
        run.process.send_signal(signal.SIGUSR2)
        while len(list(run.directory.glob("*.pb.gz"))) == before:
            pass
        run.finish(b"\n")
        check(run.status == 0 and run.errors == b"", "toggle: %d %r" % (run.status, run.errors))
        cpu_ns = int(threads.split()[-1])
        main_ns = sums(run.profiles)[0].get("main", 0)
        check(0.8 * cpu_ns < main_ns < 1.2 * cpu_ns, "toggle: main's CPU time %d of %d" % (main_ns, cpu_ns))

    # The worker is the strobe command.
    if strobe:
        with tempfile.TemporaryDirectory() as directory:
            run = Run(program, directory, "stop", {"STROBE_WORKER_COMMAND": strobe}).finish()
            check(run.status == 0, "strobe as the worker: %r" % run.errors)
            check_profile(run, "strobe")
        check_slim_program(slim, strobe)
        check_output_to_a_server(program, strobe)

    # What is no worker, and what is not there: the program says so and goes on to its own end.
    for command in ("/bin/true", "/nonexistent"):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(program, directory, "stop", {"STROBE_WORKER_COMMAND": command}).finish()
            check(run.status == 3 and b"UNAVAILABLE" in run.errors and b"worker" in run.errors, "%s: %d %r" % (command, run.status, run.errors))
        # Or threads of the program take the worker's place: collector, exporter, attendant, and the one that serves.
        for end, status in (("stop", 0), ("exit", 0)):
            with tempfile.TemporaryDirectory() as directory:
                run = Run(program, directory, end, {"STROBE_WORKER_COMMAND": command, "STROBE_WORKER_FALLBACK": "in_process"}).finish()
                what = "%s, %s" % (command, end)
                check(run.status == status, "%s: %d %r" % (what, run.status, run.errors))
                check(run.errors.startswith(b"strobe: samples in process: ") and run.errors.count(b"\n") == 1, "%s: %r" % (what, run.errors))
                check_profile(run, what, threads_of_the_program=b"5 threads")

    # The worker dies: the program goes on, and the next registration begins another.
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
        # The second worker has the second half.
        check_profile(run, "again", 0.4)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
