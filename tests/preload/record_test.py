#!/usr/bin/env python3
"""Runs programs bare and under `strobe record`, and compares what they do and see; and compares their profiles with what they did.

  record_test.py PART STROBE PROGRAM STROBE_PROGRAM

PART names a function below. PROGRAM is recorded_program.cc, STROBE_PROGRAM one that has a profiler of its own.
"""
import http.server
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, equal, failures  # noqa: E402

TIMEOUT_S = 60
SKIPPED = 77


class Recorder:
    def __init__(self, strobe, program, strobe_program, directory):
        self.strobe, self.program, self.strobe_program, self.directory = strobe, program, strobe_program, directory
        # Samples within no budget, so that a loaded machine has as many.
        self.environment = {**os.environ, "STROBE_MAX_OVERHEAD": "1", "UNUSUAL": "a b=c\td", "TMPDIR": directory + "/temporary"}
        os.mkdir(self.environment["TMPDIR"])

    def bare(self, *command, **options):
        return subprocess.run(command, capture_output=True, env=self.environment, cwd=self.directory, timeout=TIMEOUT_S, **options)

    def record(self, *command, arguments=(), **options):
        return self.bare(self.strobe, "record", "--no-top", "-o", "out.pb.gz", *arguments, "--", *command, **options)

    def top(self, *arguments, file="out.pb.gz"):
        """The sum, and the totals of functions, of a profile in seconds."""
        text = self.bare(self.strobe, "top", "-n", "0", "--json", *arguments, file).stdout
        table = json.loads(text)
        return table["sum"] / 1e9, {row["function"]: row["total"] / 1e9 for row in table["functions"]}

    def info(self):
        return self.bare(self.strobe, "info", "out.pb.gz").stdout.decode()


def ends(recorder):
    """Exit statuses and signals are those of the program, and what can be exported is."""
    for how, is_recorded in [("return", True), ("exit", True), ("_exit", True), ("_Exit", True), ("quick_exit", True),
                             ("SIGTERM", True), ("SIGKILL", False)]:
        pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
        bare = recorder.bare(recorder.program, "end", how)
        recorded = recorder.record(recorder.program, "end", how)
        equal(recorded.returncode, bare.returncode, how)
        equal(recorded.stdout, bare.stdout, "output of " + how)
        if is_recorded:
            total, functions = recorder.top()
            check(0.24 < total < 0.5 and functions.get("WorkOfMain", 0) > 0.2, "%s: %.3f s, %r" % (how, total, functions))
        else:
            equal(recorded.stderr, b"strobe: the program left no profile\n", "what is said of " + how)
    # The handler has interrupted an allocator, most likely. If it holds what the export needs, there is no profile, but an end.
    equal(recorder.record(recorder.program, "exit_in_handler").returncode, 11, "_exit in a handler")
    equal(os.listdir(recorder.environment["TMPDIR"]), [], "temporary directories")


def surroundings(recorder):
    """The program sees what it would see, but for our variables and the handler of the profiler's signal."""
    bare = recorder.bare(recorder.program, "surroundings").stdout.decode().splitlines()
    recorded = recorder.record(recorder.program, "surroundings").stdout.decode().splitlines()
    ours = [line for line in recorded if line.startswith("LD_PRELOAD=") or line.startswith("STROBE_RECORD_")]
    check(len(ours) >= 2, "our variables: %r" % ours)
    left = [line for line in recorded if line not in ours]
    changed = [(a, b) for a, b in zip(bare, left) if a != b]
    equal(len(left), len(bare), "lines")
    equal(changed, [("signal 23: default, blocked 0", "signal 23: handled, blocked 0")], "what the program sees")

    recorder.environment["LD_PRELOAD"] = "/lib/x86_64-linux-gnu/libm.so.6"
    recorded = recorder.record(recorder.program, "surroundings").stdout.decode()
    preload = next(line for line in recorded.splitlines() if line.startswith("LD_PRELOAD="))
    check(preload.endswith("libstrobe-preload.so:/lib/x86_64-linux-gnu/libm.so.6"), preload)
    del recorder.environment["LD_PRELOAD"]


def pipes(recorder):
    """Standard input, output and error are the program's, with every byte."""
    text = bytes(range(256)) * 4000
    script = "cat; echo to-stderr >&2; exit 9"
    recorded = recorder.record("sh", "-c", script, input=text)
    equal((recorded.returncode, recorded.stdout), (9, text), "what goes through cat")
    equal(recorded.stderr.splitlines()[0], b"to-stderr", "standard error")
    # A terminal stays one.
    controller, terminal = pty.openpty()
    process = subprocess.run([recorder.strobe, "record", "--no-top", "-o", "out.pb.gz", "sh", "-c", "tty <&1; test -t 0 && exit 3"],
                             stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL, cwd=recorder.directory, timeout=TIMEOUT_S)
    check(os.read(controller, 100).startswith(b"/dev/pts/"), "the terminal")
    equal(process.returncode, 3, "input from a terminal")


def signals(recorder):
    """Signals that are sent to the command reach the program; those that end the program end the command."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        process = subprocess.Popen([recorder.strobe, "record", "--no-top", "-o", "out.pb.gz", recorder.program, "signal"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=recorder.directory)
        equal(process.stdout.readline(), b"ready\n", "the program's first line")
        process.send_signal(number)
        equal(process.wait(TIMEOUT_S), number, "status after %s" % number.name)
        process.stdout.close()
    # One that ends the program leaves a whole profile, however often it comes: from the terminal, and once more through the command.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
        process = subprocess.Popen([recorder.strobe, "record", "--no-top", "-o", "out.pb.gz", recorder.program, "forever"], start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=recorder.directory, env=recorder.environment)
        equal(process.stdout.readline(), b"ready\n", "the program's first line")
        process.send_signal(number)
        os.killpg(process.pid, number)
        equal(process.wait(TIMEOUT_S), -number, "status after %s" % number.name)
        equal(process.stdout.read(), b"", "the program goes no further")
        process.stdout.close()
        total, functions = recorder.top()
        check(functions.get("WorkOfMain", 0) > 0.2, "%s: %.3f s, %r" % (number.name, total, functions))


def threads(recorder):
    """Every thread is in the profile, with its CPU time, however it was started and however it ended."""
    bare = recorder.bare(recorder.program, "threads")
    recorded = recorder.record(recorder.program, "threads", arguments=["-F", "1000"])
    equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "threads")
    total, functions = recorder.top()
    for name in ("WorkOfPthread", "WorkOfC11", "WorkOfCpp", "WorkOfDetached", "WorkOfCancelled", "WorkOfExiting"):
        check(functions.get(name, 0) > 0.1, "%s: %r" % (name, functions.get(name)))
    check(not any("RunRegistered" in function for function in functions), "no frame of ours: %r" % functions)
    check(1.5 <= total < 2.5, "six threads of 0.25 s: %.3f s" % total)
    check("named-thread" in recorder.info(), "the name that a thread gives itself")


def usage(recorder):
    """The sum is what the system says that the process used, but for starting and ending."""
    recorded = recorder.record(recorder.program, "usage")
    used = float(recorded.stdout)
    total = recorder.top()[0]
    check(used - 0.03 < total <= used + 0.03, "%.4f s of %.4f s" % (total, used))


def children(recorder):
    """Forked children and those that exec are followed; a vfork's child does no harm."""
    bare = recorder.bare(recorder.program, "forks")
    recorded = recorder.record(recorder.program, "forks")
    equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "forks")
    check(b"of 3 processes" in recorded.stderr, recorded.stderr.decode())
    total, functions = recorder.top()
    for name in ("WorkOfChild", "EndBy", "RunForks"):
        check(any(name in function and total > 0.2 for function, total in functions.items()), "%s in %r" % (name, functions))
    directory = os.path.join(recorder.directory, "each/")
    equal(recorder.bare(recorder.strobe, "record", "--no-top", "-o", directory, recorder.program, "forks").returncode, 0, "a directory")
    equal(len(os.listdir(directory)), 3, "one file a process")


def refusals(recorder):
    """What cannot be run or profiled is said in a sentence, with the status of a shell."""
    def say(*command, status, sentence):
        recorded = recorder.record(*command)
        equal(recorded.returncode, status, "status of %r" % (command,))
        check(sentence in recorded.stderr.decode() and recorded.stderr.count(b"\n") == 1, "%r: %r" % (command, recorded.stderr))

    def write(name, data, mode=0o755):
        path = pathlib.Path(recorder.directory, name)
        path.write_bytes(data)
        path.chmod(mode)
        return str(path)

    say("no-such-command", status=127, sentence="command not found")
    say("./no-such-file", status=127, sentence="No such file")
    write("main.cc", b"int main() {}", 0o644)
    for name in ("main.cc", "./main.cc"):
        say(name, status=126, sentence=name + " is no program: record what a compiler makes of it")
    say(recorder.directory, status=126, sentence=recorder.directory + " is a directory, and no program")
    program = bytearray(pathlib.Path(recorder.program).read_bytes())
    say(write("no_x", bytes(program), 0o644), status=126, sentence="no_x may not be executed: chmod +x ")
    say(write("no_x.sh", b"#!/bin/sh\n", 0o644), status=126, sentence="no_x.sh may not be executed: chmod +x ")
    write("here", bytes(program))
    say("here", status=127, sentence="here: command not found; did you mean ./here?")
    say(write("small", bytes([*program[:4], 1, *program[5:64]])), status=126, sentence="32-bit")
    without_loader = bytearray(program)
    for i in range(int.from_bytes(program[56:58], "little")):
        offset = int.from_bytes(program[32:40], "little") + 56 * i
        if int.from_bytes(program[offset:offset + 4], "little") == 3:
            without_loader[offset:offset + 4] = bytes(4)
    path = write("static", bytes(without_loader))
    say(path, status=126, sentence="statically linked, so nothing can be preloaded; strobe record --perf")
    say(write("script_of_it", b"#! %s -x\n" % path.encode()), status=126, sentence="statically linked")
    if os.geteuid() == 0:
        setuid = write("setuid", bytes(program), 0o4755)
        os.chmod(recorder.directory, 0o755)
        refused = subprocess.run([recorder.strobe, "record", setuid], capture_output=True, cwd="/tmp", user=65534, group=65534,
                                 timeout=TIMEOUT_S)
        check(refused.returncode == 126 and b"more rights" in refused.stderr, "setuid: %r" % refused)
        refused = subprocess.run([recorder.strobe, "record", "--perf", setuid], capture_output=True, cwd="/tmp", user=65534, group=65534,
                                 timeout=TIMEOUT_S)
        check(refused.returncode == 126 and b"run strobe record as root" in refused.stderr, "setuid, by perf events: %r" % refused)
    equal(recorder.bare(recorder.strobe, "record", "-o", "x.unknown", "true").returncode, 2, "an unknown format")
    equal(recorder.bare(recorder.strobe, "record").returncode, 2, "no program")
    check(b"standard output is the program's" in recorder.bare(recorder.strobe, "record", "-o", "-", "true").stderr, "standard output as the file")
    # Scripts run, with and without a first line.
    equal(recorder.record(write("script", b"#!/bin/sh\nexit 5\n")).returncode, 5, "a script")
    equal(recorder.record(write("plain", b"exit $1\n"), "6").returncode, 6, "a script without a first line")


def programs(recorder):
    """Real programs do what they do, and have their functions in the profile. Each has some 40 samples: fewer could be all in one place."""
    for command in (["bash", "-c", "for i in 1 2 3; do x=$(echo $i | tr 1 2); done; i=0; while ((i<200000)); do ((++i)); done; echo $x; exit 4"],
                    ["python3", "-c", "import threading as t\nr=[]\nf=lambda: r.append(sum(i*i for i in range(1500000)))\n"
                     "a=[t.Thread(target=f) for _ in 'abc']\n[x.start() for x in a]; [x.join() for x in a]; print(r)"],
                    ["sqlite3", ":memory:", "with recursive c(x) as (select 1 union all select x+1 from c where x<2000000) select sum(x) from c;"]):
        if shutil.which(command[0]) is None:
            continue
        for arguments in ([], ["--alloc"]):
            bare = recorder.bare(*command)
            recorded = recorder.record(*command, arguments=arguments)
            equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), " ".join(command[:1] + arguments))
            total, functions = recorder.top()
            check(total > 0.01 and len(functions) > 3, "the profile of %s: %.3f s" % (command[0], total))
        check(recorder.top("--type", "alloc_space")[0] > 0, "allocations of " + command[0])


def generated_code(recorder):
    """Code of just-in-time compilers has the names that they write for perf."""
    node = shutil.which("node")
    if node is None:
        print("there is no node here")
        sys.exit(SKIPPED)
    script = ("function hotInScript(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }"
              "let t = 0; for (let i = 0; i < 60; i++) t += hotInScript(1000000); console.log(t);")
    process = recorder.record(node, "--perf-basic-prof", "-e", script)
    equal(process.returncode, 0, "node")
    total, functions = recorder.top()
    named = sum(value for name, value in functions.items() if "hotInScript" in name)
    check(named > 0.3 * total, "hotInScript has %.3f s of %.3f s: %r" % (named, total, functions))


def progress(recorder):
    """A terminal shows how long the recording is and how many samples it has; but not while the program has the terminal for itself."""
    def on_terminal(*command):
        controller, terminal = pty.openpty()
        environment = {**recorder.environment, "STROBE_EXPORT_PERIOD_S": "1"}
        process = subprocess.Popen([recorder.strobe, "record", "--no-top", "-o", "out.pb.gz", *command],
                                   stdin=terminal, stdout=terminal, stderr=terminal, cwd=recorder.directory, env=environment)
        os.close(terminal)
        seen = b""
        try:
            while more := os.read(controller, 4096):
                seen += more
        except OSError:  # the terminal's other end is closed
            pass
        os.close(controller)
        equal(process.wait(TIMEOUT_S), 0, "the recording")
        return seen.decode()

    seen = on_terminal("python3", "-c", "import time\nend = time.time() + 4\nwhile time.time() < end: sum(range(999))")
    lines = [(int(seconds), int(samples)) for seconds, samples in re.findall(r"recording: (\d+) s, (\d+) samples", seen)]
    check(len(lines) > 1 and lines == sorted(lines) and lines[-1][0] >= 2, "lines of progress: %r" % seen)
    check(lines and lines[-1][1] > 10, "samples so far: %r" % lines)
    check(seen.rstrip().endswith("strobe: out.pb.gz"), "the last line: %r" % seen[-100:])
    seen = on_terminal("sh", "-c", "stty raw; sleep 3; stty sane")
    check("recording" not in seen, "a terminal that the program has taken: %r" % seen)


def servers(recorder):
    """A profile goes to a server; if it does not get there, to a file."""
    posted = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if "/takes" in self.path else 400)
            self.end_headers()

        def log_message(self, *_):
            pass

    def record(*arguments, **variables):
        recorder.environment.update(variables)
        recorder.environment["STROBE_HTTP_ATTEMPTS"] = "1"
        return recorder.bare(recorder.strobe, "record", "--no-top", *arguments, "--", recorder.program, "usage")

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_address[1]
    sent = record("--http", url + "/takes")
    if b"built without the library for HTTP" in sent.stderr:
        check(len(list(pathlib.Path(recorder.directory).glob("*.pb.gz"))) == 1, "a file all the same")
        return
    equal(sent.returncode, 0, "the program")
    check(len(posted) == 1 and posted[0][0] == "/takes" and b"sent to " + url.encode() in sent.stderr, "a post: %r" % sent.stderr)
    pathlib.Path(recorder.directory, "posted.pb.gz").write_bytes(posted.pop()[1])
    check(recorder.top(file="posted.pb.gz")[0] > 0.1, "what was posted")
    equal(list(pathlib.Path(recorder.directory).glob("recorded_program*")), [], "no file where a server has it")
    record("--datadog", "--http", url + "/takes", "-o", "out.pb.gz", DD_TRACE_AGENT_URL=url + "/takes/agent", DD_SERVICE="shop")
    equal([path for path, _ in posted], ["/takes", "/takes/agent/profiling/v1/input"], "two servers, as their options are declared")
    check(b"service:shop" in posted[1][1], "what Datadog's agent gets: %r" % posted[1][1][:300])
    check(recorder.top()[0] > 0.1, "and a file")
    refused = record("--http", url + "/refuses")
    equal(refused.returncode, 0, "the program's status where a server refuses")
    check(b"strobe: post: http" in refused.stderr and len(list(pathlib.Path(recorder.directory).glob("recorded_program*.pb.gz"))) == 1,
          "a file where a server does not take it: %r" % refused.stderr)
    server.shutdown()


def worker(recorder):
    """With a worker the program has one thread, and its profile is whole even if kill -9 ends it."""
    for how in ("return", "_exit", "SIGKILL"):
        pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
        bare = recorder.bare(recorder.program, "end", how)
        recorded = recorder.record(recorder.program, "end", how, arguments=["--worker"])
        equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), how)
        check(b"out.pb.gz" in recorded.stderr, "%s: %r" % (how, recorded.stderr))
        total, functions = recorder.top()
        check(0.2 < total < 0.5 and functions.get("WorkOfMain", 0) > 0.2, "%s: %.3f s, %r" % (how, total, functions))
    threads = recorder.record("grep", "Threads", "/proc/self/status", arguments=["--worker"])
    equal(threads.stdout.split(), [b"Threads:", b"1"], "the threads of the program")
    forks = recorder.record(recorder.program, "forks", arguments=["--worker"])
    check(b"of 3 processes" in forks.stderr, "children: %r" % forks.stderr)
    equal(os.listdir(recorder.environment["TMPDIR"]), [], "temporary directories")


def worker_allocations(recorder):
    """With a worker, the profile has the allocations and the live heap, also of a program that kill -9 ends."""
    mib = float(1 << 20) / 1e9  # as the totals of top()
    # Blocks are made faster than they are drained on a busy machine: what overfills the ring would have no stack.
    recorder.environment["STROBE_RING_BYTES"] = str(1 << 20)
    for arguments in (["--alloc"], ["--alloc", "--worker"]):
        for how in ("return",) + (("_exit", "SIGKILL") if "--worker" in arguments else ()):
            what = " ".join(arguments + [how])
            pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
            bare = recorder.bare(recorder.program, "allocations", how)
            recorded = recorder.record(recorder.program, "allocations", how, arguments=arguments)
            equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), what)
            allocated, allocators = recorder.top("--type", "alloc_space")
            live, keepers = recorder.top("--type", "inuse_space")
            print(what, "%.0f MiB, live %.0f MiB" % (allocated / mib, live / mib), {name: round(keepers[name] / mib) for name in keepers if "Keep" in name})
            # Blocks of 512 KiB, one sample for 512 KiB in the mean: five standard errors.
            check(abs(allocated / mib - 500) < 5 * 0.5 * (1000 * 0.58) ** 0.5, "%s: allocated %.0f MiB" % (what, allocated / mib))
            check(abs(live / mib - 100) < 5 * 0.5 * (200 * 0.58) ** 0.5, "%s: live %.0f MiB" % (what, live / mib))
            # Until the unwind tables are there, a block's stack is not known.
            check(keepers.get("KeepBlocks", 0) > 0.9 * live, "%s: live by function: %r" % (what, keepers))
            check(allocators.get("MakeGarbage", 0) > 0.3 * allocated, "%s: allocated by function: %r" % (what, allocators))
            check(recorder.top("--type", "cpu")[0] > 0.4, what + ": CPU time")
    forks = recorder.record(recorder.program, "forks", arguments=["--worker", "--alloc"])
    check(b"of 3 processes" in forks.stderr, "children: %r" % forks.stderr)


def own_profiler(recorder):
    """A program with a profiler of its own keeps it, and has a profile of each."""
    own = os.path.join(recorder.directory, "own")
    recorder.environment.update({"STROBE_OUTPUT_DIRECTORY": own, "STROBE_FREQ": "1000"})
    recorded = recorder.record(recorder.strobe_program)
    equal(recorded.returncode, 0, "the program")
    equal(recorded.stderr.decode().splitlines(), ["strobe: STROBE_FREQ is not an option; did you mean STROBE_CPU_FREQUENCY_HZ?",
                                                  "strobe: out.pb.gz"], "what is said, once, whoever reads the variable")
    check("strobe-" not in recorder.info(), "threads of its own profiler: " + recorder.info())
    files = os.listdir(own)
    equal(len(files), 1, "its own profiles")
    own_total = recorder.top(file=os.path.join(own, files[0]))[0]
    total = recorder.top()[0]
    check(own_total > 0.02 and abs(total - own_total) < 0.05 + 0.1 * own_total, "%.3f s, its own %.3f s" % (total, own_total))


def main():
    part, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        globals()[part](Recorder(*map(os.path.abspath, paths), directory))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
