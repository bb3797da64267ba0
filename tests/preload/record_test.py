#!/usr/bin/env python3
"""Runs programs bare and under `strobe record`, and compares what they do and see; and compares their profiles with what they did.

  record_test.py PART STROBE PROGRAM STROBE_PROGRAM

PART names a function below. PROGRAM is recorded_program.cc, STROBE_PROGRAM one that has a profiler of its own.

What a profile has is at least what threads have worked by their own clocks, and at most what the system says that the programs have used. A
program is recorded again until it has been seen that each of its functions has a sample.
"""
import http.server
import json
import math
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
import chance  # noqa: E402
from checks import check, equal, failures  # noqa: E402
import pprof_file  # noqa: E402
from recorder import OnTerminal, Recorder, TIMEOUT_S  # noqa: E402
from until_seen import wait_until, work_until  # noqa: E402

BUSY_S = 0.25  # of each function that works
LIBRARY_S = 0.2  # slow_library.cc
SKIPPED = 77
NO_PROFILE = b"strobe: the program left no profile: --worker keeps that of a program that is killed, and --perf needs nothing of the program\n"


def ends(recorder):
    """Exit statuses and signals are those of the program, and what can be exported is."""
    def record(how):
        pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
        bare = recorder.bare(recorder.program, "end", how)
        recorded = recorder.record(recorder.program, "end", how)
        equal(recorded.returncode, bare.returncode, how)
        equal(recorded.stdout, bare.stdout, "output of " + how)
        return recorded

    def record_all(how):
        recorded = record(how)
        # Ends other than return and exit() wait for the last export for a bounded time only.
        if not os.path.exists(os.path.join(recorder.directory, "out.pb.gz")) and how not in ("return", "exit"):
            equal(recorded.stderr, NO_PROFILE, "what is said of " + how)
            return {}
        total, functions = recorder.top()
        # Nothing announces SIGKILL: what has been exported before is there.
        recorder.check_total(total, 0 if how == "SIGKILL" else BUSY_S, how)
        return functions

    for how in ("return", "exit", "_exit", "_Exit", "quick_exit", "SIGTERM", "SIGKILL"):
        recorder.until_seen(lambda how=how: record_all(how), ["WorkOfMain"], how)
    # The handler has interrupted an allocator, most likely. If it holds what the export needs, there is no profile, but an end.
    equal(recorder.record(recorder.program, "exit_in_handler").returncode, 11, "_exit in a handler")
    equal(os.listdir(recorder.environment["TMPDIR"]), [], "temporary directories")


def surroundings(recorder):
    """The program sees what it would see, but for our variables and the handler of the profiler's signal."""
    bare = recorder.bare(recorder.program, "surroundings").stdout.decode().splitlines()
    recorded = recorder.record(recorder.program, "surroundings").stdout.decode().splitlines()
    ours = [line for line in recorded if line.startswith("LD_PRELOAD=") or line.startswith("STROBE_RECORD")]
    check(len(ours) >= 2, "our variables: %r" % ours)
    left = [line for line in recorded if line not in ours]
    changed = [(a, b) for a, b in zip(bare, left) if a != b]
    equal(len(left), len(bare), "lines")
    equal(changed, [("signal 23: default, blocked 0", "signal 23: handled, blocked 0")], "what the program sees")

    recorder.environment.update({"STROBE_KEEP_LAST_S": "30", "STROBE_KEEP_DUMP_SIGNAL": "10", "STROBE_KEEP_SLOW_SPANS": "1"})
    recorded = recorder.record(recorder.program, "surroundings")
    check("signal 10: default, blocked 0" in recorded.stdout.decode().splitlines(), "the dump signal is the program's")
    equal(recorded.stderr.decode().count("STROBE_KEEP_LAST_S: not for a recording"), 1, "windows are not for a recording")
    for name in ("LAST_S", "DUMP_SIGNAL", "SLOW_SPANS"):
        del recorder.environment["STROBE_KEEP_" + name]

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
        total, _ = recorder.top()
        check(total >= BUSY_S, "%s: %.3f s, it has worked for %.3f s" % (number.name, total, BUSY_S))


def threads(recorder):
    """Every thread is in the profile, with its CPU time, however it was started and however it ended."""
    names = {"WorkOfPthread", "WorkOfC11", "WorkOfCpp", "WorkOfDetached", "WorkOfCancelled", "WorkOfExiting"}

    def record():
        bare = recorder.bare(recorder.program, "threads")
        recorded = recorder.record(recorder.program, "threads", arguments=["-F", "1000"])
        equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "threads")
        total, functions = recorder.top()
        recorder.check_total(total, len(names) * BUSY_S, "six threads")
        check(not any("RunRegistered" in function for function in functions), "no frame of ours: %r" % functions)
        times, samples = recorder.times()
        check(0 < times <= samples, "the times of samples are kept: %d of %d" % (times, samples))
        check(any(line.startswith("named-thread") for line in recorder.threads()), "the name that a thread gives itself")
        # Of the threads: their CPU time, and in which of the functions they were.
        profile = pprof_file.read(os.path.join(recorder.directory, "out.pb.gz"))
        cpu_ns, functions_of = {}, {}
        for locations, values, labels in profile.rows:
            thread = labels["thread_id"]
            cpu_ns[thread] = cpu_ns.get(thread, 0) + values[profile.types.index("cpu")]
            functions_of.setdefault(thread, set()).update(names & {location.function[0] for location in locations})
        check(all(len(found) <= 1 for found in functions_of.values()), "a function is a thread's own: %r" % functions_of)
        busy = [thread for thread in cpu_ns if cpu_ns[thread] >= 1e9 * BUSY_S]
        check(len(busy) >= len(names), "CPU time of each thread: %r" % cpu_ns)
        return functions

    recorder.until_seen(record, names, "a sample of each thread")


def signal_masks(recorder):
    """Threads that block all signals have their stacks, and the program sees its masks and gets its signals as without the recording."""
    names = ["WorkOfInheriting", "WorkOfBlocking", "WorkOfAttributes", "WorkOfChild"]
    masked_program = os.path.join(os.path.dirname(recorder.program), "masked_program")
    for how in ([], ["--worker"], ["--alloc"]):

        def record():
            bare = recorder.bare(masked_program, "threads")
            recorded = recorder.record(masked_program, "threads", arguments=["-F", "1000", *how])
            equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "masks %s" % how)
            equal(recorded.stderr, b"strobe: out.pb.gz\n", "nothing is said of blocked signals")
            total, functions = recorder.top(*(["--type", "cpu"] if how == ["--alloc"] else []))
            recorder.check_total(total, len(names) * BUSY_S, "four threads %s" % how)
            return functions

        recorder.until_seen(record, names, "a sample of each thread %s" % how)
    for mode in ("wait", "info", "file"):
        for how in ([], ["--worker"]):
            bare = recorder.bare(masked_program, mode)
            recorded = recorder.record(masked_program, mode, arguments=["-F", "1000", *how])
            equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "signals by %s %s" % (mode, how))
            equal(bare.stdout, b"others: 0, left: -1\n", "signals by %s, not recorded" % mode)


def waits_and_throws(recorder):
    """--locks, --exceptions and both with --alloc: the sums are those by the program's own clock, and the program notices nothing."""
    waiting_program = os.path.join(os.path.dirname(recorder.program), "waiting_program")
    for how in (["--locks"], ["--locks", "--exceptions", "--alloc"]):
        for mode, column in (("locks", "delay"), ("conditions", "condition_delay")):
            recorded = recorder.record(waiting_program, mode, arguments=how)
            equal((recorded.returncode, recorded.stderr), (0, b"strobe: out.pb.gz\n"), "%s %s" % (mode, how))
            _, functions = recorder.top("--type", column)
            for line in recorded.stdout.decode().splitlines():
                name, waited_s = line.split()[0], float(line.split()[1])
                # One sample for each millisecond, in the mean.
                chance.within(functions.get(name, 0) * 1e3, chance.poisson_bounds(waited_s * 1e3), "samples of %s %s" % (name, how))
    for how in (["--locks"], ["--exceptions"], ["--alloc", "--locks"]):
        for mode in ("results", "throw"):
            bare = recorder.bare(waiting_program, mode)
            recorded = recorder.record(waiting_program, mode, arguments=how)
            equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "%s %s" % (mode, how))
            if mode == "throw" and how != ["--locks"]:
                text = recorder.bare(recorder.strobe, "top", "-n", "0", "--json", "--type", "exceptions", "out.pb.gz").stdout
                table = json.loads(text)
                functions = {row["function"]: row["total"] for row in table["functions"]}
                # The first stacks are copied: those for which there is no room are [lost].
                equal(table["sum"], 300, "what was thrown %s" % how)
                equal(functions["ThrowRange"] + functions["ThrowNumber"] + functions.get("[lost]", 0), 300, "where it was thrown %s" % how)
    refused = recorder.record(waiting_program, "throw", arguments=["--locks", "--worker"])
    equal((refused.returncode, refused.stderr), (2, b"strobe: record: --locks and --exceptions are seen in the program: not with --worker\n"), "with a worker")


def constructors(recorder):
    """What a shared library's constructor does is in the profile, though it runs before main."""
    recorder.environment["RECORDED_SLOW_LIBRARY"] = "1"
    for how in ([], ["--worker"]):

        def record():
            recorded = recorder.record(recorder.program, "library", arguments=how)
            equal((recorded.returncode, recorded.stdout), (0, b""), "a library that begins slowly")
            total, functions = recorder.top()
            recorder.check_total(total, LIBRARY_S, "in a constructor %s" % how)
            return functions

        recorder.until_seen(record, ["WorkOfConstructor"], "a sample of the constructor %s" % how)


def usage(recorder):
    """The sum is what the threads say, but for starting and ending; the system says no less of the process."""
    recorded = recorder.record(recorder.program, "usage")
    recorder.check_total(recorder.top()[0], float(recorded.stdout), "by the threads' clocks")


def record_forks(recorder, *arguments):
    """The functions of a profile of three processes; none if the first child had ended before it had a session: it has one after a moment."""
    bare = recorder.bare(recorder.program, "forks")
    recorded = recorder.record(recorder.program, "forks", arguments=arguments)
    equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), "forks")
    processes = re.search(rb"of ([23]) processes", recorded.stderr)
    check(processes is not None, recorded.stderr.decode())
    total, functions = recorder.top()
    recorder.check_total(total, 2 * BUSY_S, "a process, and a child that execs")
    return functions if processes and processes[1] == b"3" else {}


def children(recorder):
    """Forked children and those that exec are followed; a vfork's child does no harm."""
    recorder.until_seen(lambda: record_forks(recorder), ["WorkOfChild", "EndBy", "RunForks"], "a sample of each process")

    def files_of_each():
        directory = os.path.join(tempfile.mkdtemp(dir=recorder.directory), "each/")
        equal(recorder.bare(recorder.strobe, "record", "--no-top", "-o", directory, recorder.program, "forks").returncode, 0, "a directory")
        return len(os.listdir(directory))

    work_until(lambda files: files == 3, files_of_each, "one file a process")


def executions(recorder):
    """What a process has used before it executes another program is in the profile, and so is the other one, whatever its environment."""
    program = str(pathlib.Path(recorder.program).with_name("executing_program"))

    def record(how, arguments):
        bare = recorder.bare(program, how)
        recorded = recorder.record(program, how, arguments=arguments)
        equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), how)
        total, functions = recorder.top()
        # A worker takes a last look at a process some time before that executes another program.
        recorder.check_total(total, BUSY_S if arguments else 2 * BUSY_S, "%s %r" % (how, arguments))
        return functions

    for how in ("execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "posix_spawn", "posix_spawnp", "vfork", "none"):
        recorder.until_seen(lambda how=how: record(how, ()), ["WorkBefore", "WorkAfter"], how)
    recorder.until_seen(lambda: record("execve", ["--worker"]), ["WorkAfter"], "a worker")


def unseen_children(recorder):
    """Of a program that the library is not in, the recording says how much it has used."""
    command = "LD_PRELOAD= %s usage; exit 3" % recorder.program
    recorded = recorder.record("sh", "-c", command)
    worked_s = float(recorded.stdout)
    said = re.search(rb"strobe: ([0-9.]+) s of ([0-9.]+) s CPU time are not in the profile, for example", recorded.stderr)
    check(said is not None, "what is said: %r" % recorded.stderr)
    # The command says it, in place of each process.
    check(b"machine: architecture=" in recorder.bare(recorder.strobe, "info", "out.pb.gz").stdout, "what machine it was")
    if said:
        check(worked_s <= float(said[1]) <= float(said[2]) <= recorder.used_s, "%r of %.3f s" % (said[0], worked_s))
    info = recorder.bare(recorder.strobe, "info", "out.pb.gz").stdout
    check(b"are not in the profile" in info, "the profile's comments: %r" % info)
    equal(recorded.returncode, 3, "status")


def left_processes(recorder):
    """A recording lasts as long as what the program has started, unless the user wants less."""
    leaves = "(setsid sh -c '%s' >/dev/null 2>&1 &); exit 4"
    for how in ([], ["--worker"]):
        recorded = recorder.record("sh", "-c", leaves % ("exec %s usage >worked" % recorder.program), arguments=how)
        equal(recorded.returncode, 4, "status of the program, and not of what it has left")
        worked = pathlib.Path(recorder.directory, "worked").read_text()
        recorder.check_total(recorder.top()[0], float(worked), "what the program has left behind %s" % how)
    # The process that is left ends when the pipe is opened for writing.
    pipe = os.path.join(recorder.directory, "pipe")
    os.mkfifo(pipe)
    waits = leaves % (": <%s" % pipe)
    equal(recorder.record("sh", "-c", waits, arguments=["--until-parent"]).returncode, 4, "with --until-parent")
    open(pipe, "w").close()
    process = subprocess.Popen([recorder.strobe, "record", "--no-top", "-o", "out.pb.gz", "sh", "-c", waits], stderr=subprocess.PIPE,
                               cwd=recorder.directory, env=recorder.environment)
    line = process.stderr.readline()
    check(b"goes on with what it has started: sh (" in line, "what is said: %r" % line)
    process.send_signal(signal.SIGINT)
    equal(process.wait(TIMEOUT_S), 4, "a recording that Ctrl-C ends")
    # What goes on has left a profile of its own if it has had one exported.
    said = process.stderr.read()
    check(said in (b"strobe: out.pb.gz\n", b"strobe: out.pb.gz, of 2 processes\n"), "the profile: %r" % said)
    process.stderr.close()
    open(pipe, "w").close()


def durations(recorder):
    """A recording of a given time ends, and leaves its profile, while the program goes on as if nothing had been."""
    profile = pathlib.Path(recorder.directory, "out.pb.gz")
    for how in ([], ["--worker"]):
        profile.unlink(missing_ok=True)
        begin = time.monotonic()
        process = subprocess.Popen([recorder.strobe, "record", "--no-top", "--duration", "0.5", "-o", "out.pb.gz", *how, recorder.program, "forever"],
                                   start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=recorder.directory,
                                   env=recorder.environment)
        equal(process.stderr.readline(), b"strobe: out.pb.gz\n", "what is said of the profile %s" % how)
        lasted_s = time.monotonic() - begin
        equal(process.poll(), None, "the program goes on %s" % how)
        recorded = profile.read_bytes()
        total, _ = recorder.top()
        check(0 < total <= lasted_s, "%.3f s of a program of one thread, in %.3f s %s" % (total, lasted_s, how))
        os.killpg(process.pid, signal.SIGTERM)
        equal(process.wait(TIMEOUT_S), -signal.SIGTERM, "the program's end %s" % how)
        equal(profile.read_bytes(), recorded, "the profile at the end %s" % how)
        process.stdout.close()
        process.stderr.close()


def periods(recorder):
    """A program that goes on has a profile for each period. They add up to what it has worked, whether a server takes them or not."""
    def worked(how, *arguments, every="1"):
        recorded = recorder.record(recorder.program, "busy", "2.5", arguments=["--every", every, *how, *arguments])
        equal(recorded.returncode, 0, "the program %s: %r" % (how, recorded.stderr))
        return recorded

    def files_of(how, pattern):
        folder = pathlib.Path(tempfile.mkdtemp(dir=recorder.directory))
        recorded = worked(how, "-o", "%s/%s" % (folder, pattern))
        files = [path for path in folder.rglob("*") if path.is_file()]
        total = sum(recorder.top(file=str(file))[0] for file in files)
        recorder.check_total(total, float(recorded.stdout), "%d periods %s" % (len(files), how))
        return len(files)

    for how, pattern in (([], "each/"), (["--worker"], "each/"), ([], "%n-%t.pb.gz")):
        # On a busy machine, all that the program has exported may come in the last period.
        work_until(lambda count: failures or count > 1, lambda how=how, pattern=pattern: files_of(how, pattern), "a profile before the end")
    # A server that takes no profile is not waited for: what it does not take is in files.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        recorder.environment.update(STROBE_HTTP_ATTEMPTS="1", STROBE_HTTP_TIMEOUT_S="1")
        folder = pathlib.Path(tempfile.mkdtemp(dir=recorder.directory))
        recorded = worked([], "-o", str(folder) + "/", "--http", "http://127.0.0.1:%d/" % silent.getsockname()[1])
        total = sum(recorder.top(file=str(file))[0] for file in folder.iterdir())
        recorder.check_total(total, float(recorded.stdout), "periods that no server takes")
    refused = recorder.bare(recorder.strobe, "record", "--every", "5", "-o", "one.pb.gz", "true")
    check(refused.returncode == 2 and b"again and again" in refused.stderr, "one file for all periods: %r" % refused.stderr)


def killed_command(recorder):
    """The profiles of a command that is killed are left, and the next recording says where."""
    process = subprocess.Popen([recorder.strobe, "record", "-o", "out.pb.gz", recorder.program, "ask"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, cwd=recorder.directory, env=recorder.environment)
    equal(process.stdout.readline(), b"ready\n", "the program's first line")
    process.kill()
    process.wait(TIMEOUT_S)
    process.stdin.close()  # the program goes on
    worked = float(process.stdout.read())
    process.stdout.close()
    found = []

    def say_where():
        said = recorder.record("true").stderr.decode()
        return found.append(re.search(r"profiles are left: strobe merge (\S+)/\*.pb.gz -o FILE", said)) or found[-1]

    # The program's last export comes when it has closed its output, or before.
    work_until(lambda match: match is not None, say_where, "where the profiles are")
    folder = found[-1][1]
    wait_until(lambda: any(name.endswith(".pb.gz") for name in os.listdir(folder)), "a profile")
    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pb.gz")]
    equal(recorder.bare(recorder.strobe, "merge", *files, "-o", "left.pb.gz").returncode, 0, "strobe merge")
    total, _ = recorder.top(file="left.pb.gz")
    check(total >= worked, "%.3f s in what is left, it has worked for %.3f s" % (total, worked))
    shutil.rmtree(os.path.dirname(folder))


def other_root(recorder):
    """A program that gives up its rights, or changes its root, is recorded like any other."""
    if os.geteuid() != 0:
        print("only root can give up rights")
        sys.exit(SKIPPED)
    os.mkdir(os.path.join(recorder.directory, "jail"), 0o755)
    for how in ([], ["--worker"]):
        for change in ("setuid", "chroot"):
            def record(how=how, change=change):
                recorded = recorder.record(recorder.program, change, "jail", arguments=how)
                equal(recorded.returncode, 0, "%s %s: %r" % (change, how, recorded.stderr))
                total, functions = recorder.top()
                recorder.check_total(total, BUSY_S, "after %s %s" % (change, how))
                return functions

            recorder.until_seen(record, ["WorkOfMain"], "a sample after %s %s" % (change, how))
    equal(os.listdir(os.path.join(recorder.directory, "jail")), [], "what is in the other root")


def refusals(recorder):
    """What cannot be run or profiled is said in a sentence, with the status of a shell."""
    def say(*command, status, sentence, arguments=()):
        recorded = recorder.record(*command, arguments=arguments)
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
    # Perf events record it, unless something is asked for that only a preloaded library does.
    for arguments in (["--in-process"], ["--worker"], ["--alloc"], ["--wall", "10"]):
        say(path, status=126, sentence="statically linked, so nothing can be preloaded; strobe record --perf", arguments=arguments)
    say(write("script_of_it", b"#! %s -x\n" % path.encode()), status=126, sentence="statically linked", arguments=["--in-process"])
    check(b"statically linked, so nothing can be preloaded: perf events record it\n" in recorder.record(path).stderr, "a program for perf events")
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
    # Where the profile goes is looked at before the program runs.
    nowhere = recorder.bare(recorder.strobe, "record", "-o", "no/such.pb.gz", "touch", "ran")
    equal((nowhere.returncode, nowhere.stderr), (1, b"strobe: cannot write no/such.pb.gz: No such file or directory\n"), "no directory")
    check(not os.path.exists(os.path.join(recorder.directory, "ran")), "the program has not run")
    check(b"standard output is the program's" in recorder.bare(recorder.strobe, "record", "-o", "-", "true").stderr, "standard output as the file")
    # Switched off, the program runs as if it were not recorded.
    for variable in ("STROBE_ENABLED", "DD_PROFILING_ENABLED"):
        for how in ([], ["--worker"], ["--perf"]):
            off = subprocess.run([recorder.strobe, "record", *how, "-o", "off.pb.gz", "sh", "-c", "echo ran; exit 3"], capture_output=True,
                                 env={**recorder.environment, variable: "0"}, cwd=recorder.directory, timeout=TIMEOUT_S)
            equal((off.returncode, off.stdout, off.stderr), (3, b"ran\n", b"strobe: %s=0: nothing is recorded\n" % variable.encode()), "switched off")
    check(not os.path.exists(os.path.join(recorder.directory, "off.pb.gz")), "no profile")
    # Scripts run, with and without a first line.
    equal(recorder.record(write("script", b"#!/bin/sh\nexit 5\n")).returncode, 5, "a script")
    equal(recorder.record(write("plain", b"exit $1\n"), "6").returncode, 6, "a script without a first line")


def programs(recorder):
    """Real programs do what they do, and have their functions in the profile."""
    for command in (["bash", "-c", "for i in 1 2 3; do x=$(echo $i | tr 1 2); done; i=0; while ((i<200000)); do ((++i)); done; echo $x; exit 4"],
                    ["python3", "-c", "import threading as t\nr=[]\nf=lambda: r.append(sum(i*i for i in range(1500000)))\n"
                     "a=[t.Thread(target=f) for _ in 'abc']\n[x.start() for x in a]; [x.join() for x in a]; print(r)"],
                    ["sqlite3", ":memory:", "with recursive c(x) as (select 1 union all select x+1 from c where x<2000000) select sum(x) from c;"]):
        if shutil.which(command[0]) is None:
            continue

        def record(arguments, command=command):
            bare = recorder.bare(*command)
            recorded = recorder.record(*command, arguments=arguments)
            equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), " ".join(command[:1] + arguments))
            total, functions = recorder.top()
            recorder.check_total(total, 0, "the profile of " + command[0])
            is_sampled = total > 0 and any(not function.startswith("[") for function in functions)
            return bool(failures) or (is_sampled and ("--alloc" not in arguments or recorder.top("--type", "alloc_space")[0] > 0))

        for arguments in ([], ["--alloc"]):
            work_until(bool, lambda arguments=arguments: record(arguments), "a sample of " + " ".join(command[:1] + arguments))


def generated_code(recorder):
    """Code of just-in-time compilers has the names that they write for perf."""
    node = shutil.which("node")
    if node is None:
        print("there is no node here")
        sys.exit(SKIPPED)
    script = ("function hotInScript(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }"
              "let t = 0; for (let i = 0; i < 60; i++) t += hotInScript(1000000); console.log(t);")

    def record(option):
        process = recorder.record(node, option, "-e", script)
        equal(process.returncode, 0, "node")
        return recorder.top()[1]

    # A list in /tmp, and a jitdump file here.
    for option in ("--perf-basic-prof", "--perf-prof"):
        recorder.until_seen(lambda option=option: record(option), ["hotInScript"], "a sample of generated code with " + option)


def progress(recorder):
    """A terminal shows how long the recording is and how many samples it has; but not while the program has the terminal for itself."""
    def lines_of(seen):
        return [(int(seconds), int(samples)) for seconds, samples in re.findall(rb"recording: (\d+) s, (\d+) samples", seen)]

    # The program ends when enough has been seen.
    end = os.path.join(recorder.directory, "end")
    terminal = OnTerminal(recorder, "python3", "-c", "import os\nwhile not os.path.exists(%r): sum(range(999))" % end)
    for _ in range(1000):
        if len(lines_of(terminal.seen)) > 1 and lines_of(terminal.seen)[-1][0] >= 2 and lines_of(terminal.seen)[-1][1] > 10:
            break
        if not terminal.read():
            break
    pathlib.Path(end).touch()
    seen = terminal.finish()
    lines = lines_of(seen.encode())
    check(len(lines) > 1 and lines == sorted(lines) and lines[-1][0] >= 2, "lines of progress: %r" % seen)
    check(lines and lines[-1][1] > 10, "samples so far: %r" % lines)
    check(seen.rstrip().endswith("strobe: out.pb.gz"), "the last line: %r" % seen[-100:])
    # Raw from the beginning: so no line comes before the program has taken it.
    seen = OnTerminal(recorder, "sh", "-c", "sleep 3", is_raw=True).finish()
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
    check(recorder.top(file="posted.pb.gz")[0] >= 2 * BUSY_S, "what was posted")
    equal(list(pathlib.Path(recorder.directory).glob("recorded_program*")), [], "no file where a server has it")
    record("--datadog", "--http", url + "/takes", "-o", "out.pb.gz", DD_TRACE_AGENT_URL=url + "/takes/agent", DD_SERVICE="shop")
    equal([path for path, _ in posted], ["/takes", "/takes/agent/profiling/v1/input"], "two servers, as their options are declared")
    check(b"service:shop" in posted[1][1], "what Datadog's agent gets: %r" % posted[1][1][:300])
    check(recorder.top()[0] >= 2 * BUSY_S, "and a file")
    refused = record("--http", url + "/refuses")
    equal(refused.returncode, 0, "the program's status where a server refuses")
    check(b"strobe: post: http" in refused.stderr and len(list(pathlib.Path(recorder.directory).glob("recorded_program*.pb.gz"))) == 1,
          "a file where a server does not take it: %r" % refused.stderr)
    server.shutdown()


def worker(recorder):
    """With a worker the program has one thread, and its profile is whole even if kill -9 ends it."""
    def record(how):
        pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
        bare = recorder.bare(recorder.program, "end", how)
        recorded = recorder.record(recorder.program, "end", how, arguments=["--worker"])
        equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), how)
        check(b"out.pb.gz" in recorded.stderr, "%s: %r" % (how, recorded.stderr))
        total, functions = recorder.top()
        times, samples = recorder.times()
        check(times > 0 or samples == 0, "with a worker, the times of samples are kept: %d of %d" % (times, samples))
        # What a program has used since the worker's last look at its clocks is not known, unless it has ended its session.
        recorder.check_total(total, BUSY_S if how == "return" else 0, how)
        return functions

    for how in ("return", "_exit", "SIGKILL"):
        recorder.until_seen(lambda how=how: record(how), ["WorkOfMain"], how)
    threads = recorder.record("grep", "Threads", "/proc/self/status", arguments=["--worker"])
    equal(threads.stdout.split(), [b"Threads:", b"1"], "the threads of the program")
    recorder.until_seen(lambda: record_forks(recorder, "--worker"), ["RunForks"], "a profile of three processes")
    equal(os.listdir(recorder.environment["TMPDIR"]), [], "temporary directories")


def replaced(recorder):
    """A program that is replaced while it runs, as by an upgrade, has its names, in its own process and with a worker."""
    copy = os.path.join(recorder.directory, "replaced")

    def runs(process):
        try:
            return os.readlink("/proc/%s/exe" % process) == copy
        except OSError:  # it has ended, or may not be observed
            return False

    def replace():
        wait_until(lambda: any(name.isdigit() and runs(name) for name in os.listdir("/proc")), "the program's begin")
        os.unlink(copy)
        shutil.copy("/bin/true", copy)

    def record(arguments):
        shutil.copy(recorder.program, copy)
        replacer = threading.Thread(target=replace)
        replacer.start()
        recorder.record(copy, "end", "return", arguments=arguments)
        replacer.join()
        return recorder.top()[1]

    for arguments in ([], ["--worker"]):
        recorder.until_seen(lambda arguments=arguments: record(arguments), ["WorkOfMain", "main"], "with %r" % arguments)


def loader(recorder):
    """A program that the loader is asked to run has its names."""
    paths = [path for path in ("/lib64/ld-linux-x86-64.so.2",) if os.path.exists(path)]
    for path in paths:
        for arguments in ([], ["--worker"]):
            recorder.until_seen(lambda arguments=arguments: recorder.record(path, recorder.program, "end", "return", arguments=arguments) and recorder.top()[1],
                                ["WorkOfMain", "main"], "by the loader, with %r" % arguments)


def few_files(recorder):
    """A program that may open few files keeps them, and has a profile; so has its worker, which has the same limit."""
    def limit(files):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    for files in (10, 12, 16, 30, 60):
        bare = recorder.bare(recorder.program, "end", "return", preexec_fn=limit(files))
        for arguments in ([], ["--worker"], ["--wall", "10"], ["--worker", "--wall", "10"]):
            what = "%d files, record %s" % (files, " ".join(arguments))
            pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
            recorded = recorder.record(recorder.program, "end", "return", arguments=arguments, preexec_fn=limit(files))
            equal((recorded.returncode, recorded.stdout, recorded.stderr), (bare.returncode, bare.stdout, b"strobe: out.pb.gz\n"), what)
            recorder.check_total(recorder.top("--type", "cpu")[0], BUSY_S, what)


def worker_allocations(recorder):
    """With a worker, the profile has the allocations and the live heap, also of a program that kill -9 ends."""
    # Blocks of 512 KiB, one sample for 512 KiB in the mean. The numbers are random, from a seed of the clock.
    block_bytes = 512 << 10
    p = -math.expm1(-1)
    other_bytes = 32 << 20  # far more than what the program allocates besides
    # Blocks are made faster than they are drained on a busy machine: what overfills the ring would have no stack.
    recorder.environment["STROBE_RING_BYTES"] = str(1 << 20)

    def check_blocks(what, total, blocks):
        low, high = chance.binomial_bounds(blocks, p)
        of_a_sample = block_bytes / p
        chance.within(1e9 * total / of_a_sample, (low, high + other_bytes / of_a_sample), what)

    def record(how, arguments):
        what = " ".join(arguments + [how])
        pathlib.Path(recorder.directory, "out.pb.gz").unlink(missing_ok=True)
        bare = recorder.bare(recorder.program, "allocations", how)
        recorded = recorder.record(recorder.program, "allocations", how, arguments=arguments)
        equal((recorded.returncode, recorded.stdout), (bare.returncode, bare.stdout), what)
        allocated, allocators = recorder.top("--type", "alloc_space")
        live, keepers = recorder.top("--type", "inuse_space")
        check_blocks(what + ": blocks allocated", allocated, 1000)
        check_blocks(what + ": blocks live", live, 200)
        check(keepers.get("MakeGarbage", 0) == 0, "%s: live by function: %r" % (what, keepers))
        recorder.check_total(recorder.top("--type", "cpu")[0], 2 * BUSY_S if how == "return" or "--worker" not in arguments else 0, what)
        # Until the unwind tables are there, a block's stack is not known.
        return {name + " " + kind: totals.get(name, 0) for kind, totals in (("live", keepers), ("allocated", allocators))
                for name in ("KeepBlocks", "MakeGarbage")}

    for arguments in (["--alloc"], ["--alloc", "--worker"]):
        for how in ("return",) + (("_exit", "SIGKILL") if "--worker" in arguments else ()):
            recorder.until_seen(lambda how=how, arguments=arguments: record(how, arguments),
                                ["KeepBlocks live", "KeepBlocks allocated", "MakeGarbage allocated"], how)
    recorder.until_seen(lambda: record_forks(recorder, "--worker", "--alloc"), ["RunForks"], "a profile of three processes")


def own_profiler(recorder):
    """A program with a profiler of its own keeps it, and has a profile of each."""
    for arguments in ([], ["--worker"]):
        own = os.path.join(recorder.directory, "own" + "".join(arguments))
        recorder.environment.update({"STROBE_OUTPUT_DIRECTORY": own, "STROBE_FREQ": "1000"})
        recorded = recorder.record(recorder.strobe_program, arguments=arguments)
        equal(recorded.returncode, 0, "the program")
        equal(recorded.stderr.decode().splitlines(), ["strobe: STROBE_FREQ is not an option; did you mean STROBE_CPU_FREQUENCY_HZ?",
                                                      "strobe: out.pb.gz"], "each line is printed once")
        threads = recorder.threads()
        check(threads and not any(line.startswith("strobe-") for line in threads), "threads of its own profiler: %s" % threads)
        files = os.listdir(own)
        equal(len(files), 1, "its own profiles")
        own_total = recorder.top(file=os.path.join(own, files[0]))[0]
        # The program registers its threads after ours, and ends these registrations before.
        check(own_total > 0, "the program's own profile is empty")
        recorder.check_total(recorder.top()[0], own_total, "beside the program's own profile")


def main():
    part, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        globals()[part](Recorder(directory, *map(os.path.abspath, paths)))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
