#!/usr/bin/env python3
"""Records what is no single command by `strobe record`: the whole machine, control groups, threads; and what it says of each process.

  record_machine_test.py STROBE PROGRAM

CPU time of a clock of the whole machine is a number of samples, so it may differ from the truth by SIGMAS standard deviations; that of a thread
or of a control group is counted. Skips, with the reason, where perf events are refused; parts that need root are skipped by name.
"""
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / folder))
from checks import check, failures  # noqa: E402
from live_recordings import column, name_of, Recorder, rows_with, TIMEOUT_S, Used  # noqa: E402
from until_seen import work_until  # noqa: E402

SKIPPED = 77
NOBODY = 65534  # the id of a user and of a group without rights
# Arguments of Popen and run: who the process is.
AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
HZ = 997
SIGMAS = 7
CONTAINER = "0123456789abcdef" * 4

# Has two threads, of which it says the first; each works when a line has come, and the first says how long it has run then, in ns.
THREADS = """
import sys, threading, time
ready, go = threading.Barrier(3), threading.Event()
def burn():
    ready.wait()
    go.wait()
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 300_000_000: sum(range(200))
    used.append(time.thread_time_ns())
used = []
threads = [threading.Thread(target=burn) for _ in range(2)]
for thread in threads: thread.start()
ready.wait()
print(threads[0].native_id, flush=True)
sys.stdin.readline()
go.set()
for thread in threads: thread.join()
print(max(used), flush=True)
sys.stdin.readline()
"""


# Works until the profiles of two periods are there; says how long it has run, in s.
PERIODS = """
import os, time
while len(os.listdir("periods")) < 2: sum(range(200_000))
print(time.process_time())
"""


def skip(what, why):
    print("skipped: %s (%s)" % (what, why))


def link(test, name):
    """The test's program under another name."""
    path = test.directory / name
    if not path.is_symlink():
        path.symlink_to(test.program)
    return path


def rows_of(profile, **labels):
    return [row for row in profile.rows if all(row[2].get(key) == value for key, value in labels.items())]


def rows_called(profile, name):
    """A process that has ended before its arguments were read has the 15 letters that the kernel keeps."""
    return [row for row in profile.rows if row[2].get("process_name") in (name, name[:15])]


def check_sampled(profile, truth_s, slack_s, what, rows):
    """As many samples as the program's CPU time has periods."""
    cpu_s = column(profile, "cpu", rows) / 1e9
    off_s = SIGMAS * math.sqrt(truth_s / HZ) + slack_s
    print("%s: %.3f s of CPU time, in truth %.3f s, at most %.3f s off" % (what, cpu_s, truth_s, off_s))
    check(abs(cpu_s - truth_s) <= off_s, "%s: %.3f s of CPU time, not %.3f s" % (what, cpu_s, truth_s))


def record_machine(test):
    """-a: what runs already, and what the command starts, by the names that users have given them; the idle task is none of them."""
    used = Used()
    earlier = subprocess.Popen([link(test, "a-program-that-runs-already"), "1000000"])
    script = "exec '%s' 1000 cpu" % link(test, "a-program-that-starts-later")
    begin_s = time.monotonic()
    output, errors = test.record("-a", "-F", HZ, "-o", "machine.pb.gz", "--", "sh", "-c", script)
    wall_s = time.monotonic() - begin_s
    earlier.kill()
    _, _, usage = os.wait4(earlier.pid, 0)
    earlier.returncode = 0
    used.end()
    profile = test.profile("machine.pb.gz")
    check(profile.types == ["samples", "cpu"], "value types: %r" % profile.types)
    lost_s = column(profile, "cpu", rows_with(profile, "[lost]")) / 1e9
    later = rows_called(profile, "a-program-that-starts-later")
    check_sampled(profile, int(output) / 1e9, used.slack_s + lost_s, "a program that starts later", later)
    running = rows_of(profile, process_id=earlier.pid)
    check({row[2].get("process_name") for row in running} == {"a-program-that-runs-already"}, "its name")
    # It has run before the recording, too.
    cpu_s = column(profile, "cpu", running) / 1e9
    check(0 < cpu_s <= usage.ru_utime + usage.ru_stime + SIGMAS * math.sqrt(wall_s / HZ) + used.slack_s, "a program that runs already: %.3f s" % cpu_s)
    named = [row for row in profile.rows if name_of(row[0][0]) != "[lost]"]
    nameless = [row[2] for row in named if not row[2].get("process_name") or "process_id" not in row[2]]
    check(not nameless, "each row says its process: %r" % nameless[:3])
    check(not any(row[2].get("process_name", "").startswith("swapper") for row in named), "the idle task")
    check(not rows_with(profile, "[residual]"), "what is counted of the idle task")
    check(column(profile, "cpu") / 1e9 <= wall_s * os.cpu_count(), "more than the machine has")
    check(any("Spin" in name_of(location) for row in running for location in row[0]), "functions of what runs already")


def record_machine_waits(test):
    """-a: where threads wait. The idle task never does."""
    begin_s = time.monotonic()
    test.record("-a", "-e", "off-cpu,context-switches", "-o", "waits.pb.gz", "--", "sleep", 0.3)
    lived_s = time.monotonic() - begin_s
    profile = test.profile("waits.pb.gz")
    asleep = [row for row in rows_with(profile, "sleep") if row[2].get("process_name") == "sleep"]
    lost_s = lived_s if rows_with(profile, "[lost]") else 0
    for process in {row[2]["process_id"] for row in asleep}:
        off_s = column(profile, "off_cpu", rows_of(profile, process_id=process)) / 1e9
        check(off_s <= lived_s, "process %d was off its CPU for %.3f s of %.3f s" % (process, off_s, lived_s))
    off_s = column(profile, "off_cpu", asleep) / 1e9
    print("asleep: %.3f s" % off_s)
    check(off_s >= 0.3 - 0.01 - lost_s, "asleep: %.3f s" % off_s)
    ids = {row[2].get("process_id") for row in profile.rows if row[2].get("process_name") != "[outside]"}
    check(0 not in ids, "the idle task")


def end_machine(test):
    """-a ends with its command, whose status it has, by a signal, or after a time."""
    test.record("-a", "-o", "end.folded", "--", "sh", "-c", "exit 7", status=7)
    test.record("-a", "--duration", 0.2, "-o", "duration.pb.gz")
    for number in (signal.SIGINT, signal.SIGTERM):
        recorder = test.watch("-a", "-o", "signal-%d.pb.gz" % number)
        recorder.send_signal(number)
        check(recorder.wait(timeout=TIMEOUT_S) == 0, "a signal ends a recording")
        check(test.profile("signal-%d.pb.gz" % number).types == ["samples", "cpu"], "the profile")


def record_threads(test):
    """--tid: one thread, and not the other, until it ends."""
    used = Used()
    target = subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    thread = int(target.stdout.readline())
    recorder = test.watch("--tid", thread, "-F", HZ, "-o", "thread.pb.gz")
    target.stdin.write(b"\n")
    target.stdin.flush()
    most_s = int(target.stdout.readline()) / 1e9
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "the recording ends with its thread")
    check(target.poll() is None, "the process goes on")
    target.communicate(b"\n", timeout=TIMEOUT_S)
    used.end()
    profile = test.profile("thread.pb.gz")
    check({row[2].get("thread_id") for row in profile.rows} <= {thread, str(thread), None}, "other threads")
    cpu_s = column(profile, "cpu") / 1e9
    print("a thread: %.3f s of CPU time, in truth 0.300 to %.3f s" % (cpu_s, most_s))
    check(0.3 - used.slack_s <= cpu_s <= most_s + used.slack_s, "a thread: %.3f s of CPU time" % cpu_s)
    check("there is no thread" in test.record("--tid", 2**22 + 1, status=1)[1], "a thread that is not there")


def control_group():
    """A group that this test may fill; None if there is none."""
    if os.geteuid() != 0:
        return None
    for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        group = pathlib.Path(root) / CONTAINER
        if (pathlib.Path(root) / "cgroup.procs").exists():
            try:
                group.mkdir(exist_ok=True)
                return group
            except OSError:
                pass
    return None


def fill(group):
    (group / "cgroup.procs").write_text("0")


def record_control_group(test):
    """--cgroup: what runs in it, as the kernel counts it; a group that is called as a container is gives its rows the container's id."""
    group = control_group()
    if group is None:
        return skip("control groups", "none can be made here")
    outside = subprocess.Popen([link(test, "outside"), "1000000"])
    try:
        used = Used()
        script = "echo $$ > '%s' && exec '%s' 500 cpu" % (group / "cgroup.procs", link(test, "inside"))
        output, _ = test.record("--cgroup", CONTAINER, "-F", HZ, "-o", "group.pb.gz", "--", "sh", "-c", script)
        used.end()
        inside = subprocess.Popen([link(test, "inside"), "1000000"], preexec_fn=lambda: fill(group))
        work_until(lambda rows: rows, lambda: record_container(test), "samples of a container")
        inside.kill()
        inside.wait()
    finally:
        outside.kill()
        outside.wait()
        group.rmdir()
    profile = test.profile("group.pb.gz")
    check({row[2].get("process_name") for row in profile.rows} <= {"inside", "sh", None}, "only what is in the group")
    used.check_cpu(profile, int(output) / 1e9, "a control group")


def record_container(test):
    """The rows of what runs in it meanwhile."""
    test.record("--cgroup", CONTAINER, "-F", HZ, "--duration", 0.3, "-o", "container.pb.gz")
    rows = rows_of(test.profile("container.pb.gz"), process_name="inside")
    check(all(row[2].get("container_id") == CONTAINER for row in rows), "the container")
    return rows


def record_periods(test):
    """--every: a profile for each period, while the command runs. Their sum is its CPU time: nothing is in two of them, or in none."""
    (test.directory / "periods").mkdir()
    used = Used()
    output, errors = test.record("--perf", "--every", 1, "-F", HZ, "-o", "periods/", "--", sys.executable, "-c", PERIODS)
    used.end()
    names = sorted(path.name for path in (test.directory / "periods").iterdir())
    check(len(names) >= 2 and errors.count("strobe: periods/") == len(names), "a line for each of %r: %s" % (names, errors))
    profiles = [test.profile(pathlib.Path("periods") / name) for name in names]
    cpu_s = sum(column(profile, "cpu") for profile in profiles) / 1e9
    print("%d periods: %.3f s of CPU time, in truth %s to %.3f s" % (len(names), cpu_s, output.strip(), used.cpu_s))
    # When a period ends, a sample of each CPU may have begun in it.
    slack_s = used.slack_s + os.cpu_count() / HZ
    check(float(output) - slack_s <= cpu_s <= used.cpu_s + slack_s, "%d periods: %.3f s of CPU time" % (len(names), cpu_s))
    check(all(any("Py" in name_of(location) for row in profile.rows for location in row[0]) for profile in profiles[:2]), "functions in each period")
    _, errors = test.record("--perf", "-e", "off-cpu", "--every", 1, "true", status=2)
    check("--every is not of off-cpu" in errors, "periods of absences: " + errors)
    check("name a directory" in test.record("-a", "--every", 1, "-o", "x.pb.gz", status=2)[1], "one file for all periods")


def count_events(test):
    """-c: a sample for so many events, and no event is lost."""
    each = 50
    used = Used()
    code = "import resource\ndef faults(): return resource.getrusage(0).ru_minflt\nbegin = faults()\nbytearray(60 << 20)\nprint(faults() - begin)"
    output, _ = test.record("--perf", "-e", "page-faults", "-c", each, "-o", "each.pb.gz", "--", sys.executable, "-c", code)
    used.end()
    profile = test.profile("each.pb.gz")
    faults = column(profile, "page-faults")
    rest = column(profile, "page-faults", rows_with(profile, "[residual]"))
    samples = sum(values[0] for _, values, _ in profile.rows)
    print("%d samples of %d faults, %d at most; %d in no sample" % (samples, faults, used.faults, rest))
    check(int(output) <= faults <= used.faults, "%d faults" % faults)
    check(samples * each == faults - rest and rest < each * os.cpu_count(), "%d samples, and %d faults in none" % (samples, rest))


def name_processes(test):
    """Each process is called what its program was called, and the profile what the user has called the command."""
    script = "'%s' 100 & '%s' 100; wait" % (link(test, "first-of-two-programs"), link(test, "second"))
    _, errors = test.record("--perf", "-F", HZ, "-o", "names.pb.gz", "--", "sh", "-c", script)
    check(" of sh\n" in errors, "the command's name: " + errors)
    info = subprocess.run([test.strobe, "info", test.directory / "names.pb.gz"], capture_output=True, text=True)
    check(" of sh\n" in info.stdout, "the command's name in its file: " + info.stdout[:200])
    profile = test.profile("names.pb.gz")
    for name in ("first-of-two-programs", "second"):
        check(len({row[2].get("process_id") for row in rows_called(profile, name)}) == 1, "%s: one process" % name)
    target = subprocess.Popen([link(test, "a-program-of-which-there-are-threads"), "1000000"])
    _, errors = test.record("-p", target.pid, "--duration", 0.2, "-o", "%n.pb.gz")
    target.kill()
    target.wait()
    check(" of a-program-of-which-there-are-threads\n" in errors, "a process's name: " + errors)
    check((test.directory / "a-program-of-which-there-are-threads.pb.gz").exists(), "the name of a file")


def refuse(test):
    """What this user may not record: a sentence that says why, and what works."""
    for arguments, words in ((["-a", "-p", 1], "name one of them"), (["--tid", 1, "true"], "name one of them"), (["-a", "--worker"], "preloaded"),
                             (["-a", "--until-parent"], "of a command"), ([], "expected a command")):
        check(words in test.record(*arguments, status=2)[1], "%r" % arguments)
    check("no control group" in test.record("--cgroup", "no/such", status=1)[1], "a group that is not there")
    if os.geteuid() != 0:
        return skip("what another user may not", "needs root")
    os.chmod(test.directory, 0o777)
    # One whose program its user may execute, and not read, is not dumpable from its begin on.
    shutil.copy(test.program, test.directory / "unreadable")
    os.chmod(test.directory / "unreadable", 0o711)
    target = subprocess.Popen([test.directory / "unreadable", "1000000"], **AS_NOBODY)
    for option in ("-p", "--tid"):
        _, errors = test.record(option, target.pid, status=1, **AS_NOBODY)
        check("not dumpable" in errors and "run as root" in errors and errors.count("\n") == 1, "not dumpable: " + errors)
    target.kill()
    target.wait()
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid <= 0:
        return skip("a machine that may not be recorded", "kernel.perf_event_paranoid is %d" % paranoid)
    _, errors = test.record("-a", status=1, **AS_NOBODY)
    check("perf_event_paranoid is %d" % paranoid in errors and "strobe record -p PID" in errors and errors.count("\n") == 1, "the machine: " + errors)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        test = Recorder(sys.argv[1], sys.argv[2], pathlib.Path(scratch))
        first = subprocess.run([test.strobe, "record", "--perf", "-o", "x.folded", "true"], cwd=scratch, capture_output=True)
        if b"refused" in first.stderr:
            print("skipped: " + first.stderr.decode(errors="replace").strip())
            return SKIPPED
        machine = subprocess.run([test.strobe, "record", "-a", "-o", "x.folded", "true"], cwd=scratch, capture_output=True)
        if b"refused" in machine.stderr:
            skip("the whole machine", machine.stderr.decode(errors="replace").strip())
        else:
            for part in (record_machine, record_machine_waits, end_machine, record_control_group):
                part(test)
        for part in (record_threads, record_periods, count_events, name_processes, refuse):
            part(test)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
