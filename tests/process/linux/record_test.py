#!/usr/bin/env python3
"""Records programs by `strobe record`, live, and compares the profiles with what the programs say of themselves.

  record_test.py STROBE PROGRAM

Skips, with the reason, where perf events are refused; parts that need root are skipped by name.
"""
import ctypes
import errno
import os
import pathlib
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "readers"))
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402

SKIPPED = 77
TIMEOUT_S = 100
NOBODY = 65534

# Starts a thread and a child when it is told to, and says what CPU time they took.
LATE = """
import os, resource, sys, threading, time
def burn(seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds: sum(range(200))
def late():
    open("/proc/self/task/%d/comm" % threading.get_native_id(), "w").write("late")
    burn(0.4)
print("ready", flush=True)
sys.stdin.readline()
begin = time.process_time()
thread = threading.Thread(target=late)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    burn(0.3)
    os._exit(0)
usage = os.wait4(child, 0)[2]
print(child, usage.ru_utime + usage.ru_stime, time.process_time() - begin, flush=True)
"""


# Runs a loop that it has generated, and lists it as JIT compilers do.
GENERATED = """
import ctypes, mmap, os, time
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b9 00 00 01 00 ff c9 75 fc c3"))  # mov ecx, 65536; dec ecx; jnz; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
path = "/tmp/perf-%d.map" % os.getpid()
open(path, "w").write("%x 10 generated loop\\n" % address)
loop = ctypes.CFUNCTYPE(None)(address)
while time.process_time() < 0.4: loop()
os.unlink(path)
"""


def skip(what, why):
    print("skipped: %s (%s)" % (what, why))


def name_of(location):
    return location.function[0]


class Test:
    def __init__(self, strobe, program, directory):
        self.strobe, self.program, self.directory = os.path.abspath(strobe), os.path.abspath(program), directory

    def record(self, *arguments, status=0, **options):
        """What `strobe record` prints: (standard output, standard error)."""
        result = subprocess.run([self.strobe, "record", *map(str, arguments)], cwd=self.directory, capture_output=True,
                                timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, **options)
        errors = result.stderr.decode(errors="replace")
        check(result.returncode == status, "record %s: status %d: %s" % (" ".join(map(str, arguments)), result.returncode, errors[:400]))
        return result.stdout.decode(errors="replace"), errors

    def profile(self, name):
        return pprof_file.read(self.directory / name)

    def watch(self, *arguments):
        """Starts `strobe record` on a terminal of its own, and waits until its progress line says that it records."""
        terminal, other = pty.openpty()
        process = subprocess.Popen([self.strobe, "record", *map(str, arguments)], cwd=self.directory, stderr=other, stdin=subprocess.DEVNULL)
        os.close(other)
        seen = b""
        while b"recording" not in seen:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            seen += more
        check(b"recording" in seen, "a progress line on a terminal: %r" % seen)
        return process, terminal


def column(profile, name, rows=None):
    index = profile.types.index(name)
    return sum(values[index] for _, values, _ in (profile.rows if rows is None else rows))


def close(measured_s, truth_s, share, slack_s, what):
    print("%s: %.3f s, truth %.3f s" % (what, measured_s, truth_s))
    check(abs(measured_s - truth_s) <= truth_s * share + slack_s, "%s: %.3f s, truth %.3f s" % (what, measured_s, truth_s))


def stolen_s():
    """The time that the machine's host has taken from its CPUs: events of a CPU's clock count it, clocks of processes do not."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def record_a_command(test):
    """All CPU time of a shell and a program with two threads, by their own clocks: `times` prints them in hundredths."""
    script = "'%s' 1500; times" % test.program
    stolen_before_s = stolen_s()
    output, errors = test.record("--perf", "-F", 499, "-o", "command.pb.gz", "--", "sh", "-c", script)
    taken_s = stolen_s() - stolen_before_s
    words = output.split()
    check(len(words) == 4, "the command's own output: %r" % output)
    truth_s = sum(60 * float(word.split("m")[0]) + float(word.split("m")[1].rstrip("s")) for word in words)
    profile = test.profile("command.pb.gz")
    check(profile.types == ["samples", "cpu"], "value types: %r" % profile.types)
    # The kernel counts: only the clocks' ways of counting differ, and how far the shell was when it printed.
    close(column(profile, "cpu") / 1e9, truth_s, 0.03, 0.03 + taken_s, "CPU time of the command, with %.2f s stolen" % taken_s)
    named = [row for row in profile.rows if "Spin" in name_of(row[0][0])]
    deep = [row for row in named if sum("Descend" in name_of(location) for location in row[0]) > 9]
    check(len(deep) > 3 and any("main" in map(name_of, row[0]) for row in deep), "whole stacks with names")
    check(any(name_of(row[0][-1]) == "[truncated]" for row in profile.rows), "stacks deeper than their copy are marked")
    check(len({labels.get("thread_id") for _, _, labels in named}) == 2, "both threads of the program")
    check("strobe: command.pb.gz" in errors and "Spin" in errors and "\r" not in errors, "the summary: " + errors)
    return profile


def record_late_threads(test):
    """-p: a thread and a child that start after the recording has begun; it ends with the process."""
    target = subprocess.Popen([sys.executable, "-c", LATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(target.stdout.readline() == b"ready\n", "the target starts")
    recorder, terminal = test.watch("-p", target.pid, "-F", 499, "-o", "late.pb.gz")
    output, _ = target.communicate(b"\n", timeout=TIMEOUT_S)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "the recording ends with its process")
    os.close(terminal)
    child, child_s, own_s = int(output.split()[0]), float(output.split()[1]), float(output.split()[2])
    profile = test.profile("late.pb.gz")
    rows = {"late": [row for row in profile.rows if row[2].get("thread_name") == "late"],
            "child": [row for row in profile.rows if row[2].get("process_id") == child]}
    # Of one thread on each CPU, up to a period of 2 ms is in [residual].
    slack_s = 0.002 * os.cpu_count() + 0.01
    close(column(profile, "cpu", rows["late"]) / 1e9, 0.4, 0.06, slack_s, "a thread that starts later")
    close(column(profile, "cpu", rows["child"]) / 1e9, child_s, 0.06, slack_s, "a child that starts later")
    # The interpreter's end is in the profile, but not in its last words.
    close(column(profile, "cpu") / 1e9, own_s + child_s, 0.04, 0.06, "both processes")


def record_switches(test):
    """Where threads wait: context switches with their stacks. And Ctrl-C leaves the process alone."""
    code = "import time; print('ready', flush=True)\nwhile True: time.sleep(0.002)"
    target = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    target.stdout.readline()
    recorder, terminal = test.watch("-p", target.pid, "-e", "task-clock,context-switches,page-faults", "-o", "switches.pb.gz")
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "Ctrl-C ends a recording")
    os.close(terminal)
    check(target.poll() is None, "the process goes on")
    target.kill()
    target.communicate()
    profile = test.profile("switches.pb.gz")
    check(profile.types == ["samples", "cpu", "context-switches", "page-faults"], "value types: %r" % profile.types)
    switches = column(profile, "context-switches")
    asleep = [row for row in profile.rows if any("nanosleep" in name_of(location) for location in row[0])]
    check(switches > 100 and column(profile, "context-switches", asleep) > 0.9 * switches, "%d switches of a thread that sleeps" % switches)


# Sleeps, and waits for a thread that is busy; says how long it was neither.
OFF_CPU = """
import threading, time
def doze():
    for _ in range(20): time.sleep(0.02)
def wait():
    threading.Event().wait(0.4)
begin, used = time.monotonic(), time.thread_time()
doze()
wait()
print(time.monotonic() - begin - (time.thread_time() - used), flush=True)
"""


def record_off_cpu(test):
    """The time that a thread is off its CPU, by where it left it: as much as its clocks say."""
    output, _ = test.record("--perf", "-e", "task-clock,off-cpu", "-F", 499, "-o", "off.pb.gz", "--", sys.executable, "-c", OFF_CPU)
    truth_s = float(output)
    profile = test.profile("off.pb.gz")
    check(profile.types == ["samples", "cpu", "off_cpu"], "value types: %r" % profile.types)

    def off_s(*words):
        return column(profile, "off_cpu", [row for row in profile.rows if any(word in name_of(location) for location in row[0] for word in words)]) / 1e9

    asleep_s, waiting_s = off_s("sleep"), off_s("PyThread_acquire_lock", "sem_")
    close(asleep_s + waiting_s, truth_s, 0.02, 0.01, "off a CPU where it sleeps and waits")
    check(0.39 < asleep_s < truth_s - 0.39, "asleep: %.3f s of %.3f s" % (asleep_s, truth_s))


def record_absent(test):
    """A thread that is off its CPU when the recording ends has been so until then."""
    target = subprocess.Popen([sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target.stdin.write(b"ready\n")
    target.stdin.flush()
    target.stdout.readline()
    recorder, terminal = test.watch("-p", target.pid, "-e", "off-cpu", "-o", "absent.pb.gz")
    target.stdin.write(b"once\n")
    target.stdin.flush()
    target.stdout.readline()
    begin = time.monotonic()
    seen = b""
    while time.monotonic() - begin < 1:
        seen += os.read(terminal, 4096)
    since_s = time.monotonic() - begin
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "the end of a recording")
    until_s = time.monotonic() - begin
    os.close(terminal)
    target.kill()
    target.communicate()
    off_s = column(test.profile("absent.pb.gz"), "off_cpu") / 1e9
    check(since_s - 0.05 < off_s < until_s + 0.05, "off a CPU for %.3f s, of %.3f to %.3f s" % (off_s, since_s, until_s))


def record_generated(test):
    """Generated code has the names of /tmp/perf-PID.map."""
    test.record("--perf", "-F", 499, "-o", "generated.pb.gz", "--", sys.executable, "-c", GENERATED)
    profile = test.profile("generated.pb.gz")
    named = [row for row in profile.rows if name_of(row[0][0]) == "generated loop"]
    share = column(profile, "cpu", named) / column(profile, "cpu")
    check(share > 0.5, "generated code: %.2f of the time" % share)


def record_losses(test):
    """A ring of 64 KiB has room for seven samples: what does not fit is counted, and no amount is lost.

    The command stops its recorder meanwhile: else a fast one keeps up.
    """
    code = ("import os, resource, signal; os.kill(os.getppid(), signal.SIGSTOP); bytearray(60 << 20); "
            "os.kill(os.getppid(), signal.SIGCONT); print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)")
    output, _ = test.record("--perf", "-e", "page-faults", "--ring-kib", 64, "-o", "losses.pb.gz", "--", sys.executable, "-S", "-E", "-c", code)
    truth = int(output)
    profile = test.profile("losses.pb.gz")
    lost = [row for row in profile.rows if name_of(row[0][0]) == "[lost]"]
    faults, samples = column(profile, "page-faults"), column(profile, "samples")
    print("%d faults, %d of them lost; the program's count: %d" % (faults, column(profile, "page-faults", lost), truth))
    check(column(profile, "samples", lost) > 0.9 * truth, "samples are lost")
    check(abs(faults - truth) < 0.03 * truth + 200, "page faults: %d, truth %d" % (faults, truth))
    # Records of code and names are lost as well, and counted with the samples.
    check(abs(samples - faults) < 0.01 * faults + 50, "samples and losses: %d, faults: %d" % (samples, faults))


def pass_on(test):
    """Exit statuses, signals and descriptors are the command's."""
    test.record("--perf", "-o", "x.folded", "--", "sh", "-c", "exit 7", status=7)
    test.record("--perf", "-o", "x.folded", "sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
    check("No such file" in test.record("--perf", "/nowhere/command", status=127)[1], "a command that is not there")
    test.record("--perf", "/etc/passwd", status=126)
    check("is_there" in test.record("--perf", "-o", "x.folded", "--", "sh", "-c", "echo is_there >&2")[1], "the command's standard error")
    script = "trap 'echo got; exit 3' USR1; echo ready; while :; do :; done"
    process = subprocess.Popen([test.strobe, "record", "--perf", "-o", "x.folded", "--", "sh", "-c", script],
                               cwd=test.directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    check(process.stdout.readline() == b"ready\n", "the command's standard output")
    process.send_signal(signal.SIGUSR1)
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
        check((output, process.returncode) == (b"got\n", 3), "a signal is passed on: %r, status %d" % (output, process.returncode))
    except subprocess.TimeoutExpired:
        check(False, "a signal is passed on")
        os.killpg(process.pid, signal.SIGKILL)  # the command as well
    threads = subprocess.Popen([test.program, "1000000"])
    thread = None
    while thread is None and threads.poll() is None:
        thread = next((task for task in os.listdir("/proc/%d/task" % threads.pid) if task != str(threads.pid)), None)
    check("is a thread of process %d" % threads.pid in test.record("-p", thread, status=1)[1], "a thread's id")
    threads.kill()
    threads.wait()
    check("no process" in test.record("-p", 2**22 + 1, status=1)[1], "a process that is not there")


def forbid(error):
    """A filter, as those of containers: perf_event_open (298 on x86-64) fails."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(program)) != 0:
        os._exit(99)


def refuse(test):
    """Without the right to it: a sentence that names what forbids it."""
    for error, words in ((errno.EPERM, "seccomp"), (errno.ENOSYS, "this kernel has none")):
        _, errors = test.record("--perf", "true", status=1, preexec_fn=lambda error=error: forbid(error))
        check(words in errors and "Strobe in the program" in errors and errors.count("\n") == 1, "a filter: " + errors)
    check("there is no event" in test.record("--perf", "-e", "nothing", "true", status=1)[1], "an event that is none")
    if os.geteuid() != 0:
        return skip("another user's process", "needs root")
    os.chmod(test.directory, 0o777)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    check("another user" in test.record("-p", os.getpid(), status=1, **as_nobody)[1], "another user's process")
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid != 2:
        return skip("a user without the kernel's part", "kernel.perf_event_paranoid is %d" % paranoid)
    check("perf_event_paranoid is 2" in test.record("--perf", "-e", "context-switches", "true", status=1, **as_nobody)[1], "events of the kernel")
    _, errors = test.record("--perf", "-F", 499, "-o", "nobody.pb.gz", "--", test.program, 200, **as_nobody)
    check("kernel's part may not be seen" in errors, "a profile without the kernel: " + errors)
    profile = test.profile("nobody.pb.gz")
    check(any("Spin" in name_of(row[0][0]) for row in profile.rows), "a profile of an own program without rights")
    check(next(iter(profile.mappings.values()))[2] == test.program, "the program is the first module")


def record_in_container(test):
    """A program in namespaces of its own: its file is not there outside, and its ids are others."""
    script = "mount -t tmpfs none /mnt && cp '%s' /mnt/hidden && exec /mnt/hidden 1000000" % test.program
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return skip("namespaces", "unshare is refused")
    outer = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script])
    children = pathlib.Path("/proc/%d/task/%d/children" % (outer.pid, outer.pid))
    inner = None
    while outer.poll() is None and inner is None:
        for child in children.read_text().split():
            if os.path.realpath("/proc/%s/exe" % child) == "/mnt/hidden":
                inner = int(child)
    check(inner is not None, "a program in a container")
    if inner is not None:
        test.record("-p", inner, "-F", 299, "--duration", 0.5, "-o", "container.pb.gz")
        rows = test.profile("container.pb.gz").rows
        check(any("Spin" in name_of(row[0][0]) and "main" in map(name_of, row[0]) for row in rows), "whole stacks and names of a container")
    outer.kill()
    outer.wait()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        test = Test(sys.argv[1], sys.argv[2], pathlib.Path(scratch))
        first = subprocess.run([test.strobe, "record", "--perf", "-o", "x.folded", "true"], cwd=scratch, capture_output=True)
        if b"refused" in first.stderr:
            print("skipped: " + first.stderr.decode(errors="replace").strip())
            return SKIPPED
        for part in (record_a_command, record_late_threads, record_switches, record_off_cpu, record_absent, record_generated, record_losses, pass_on, refuse, record_in_container):
            part(test)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
