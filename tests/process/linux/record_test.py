#!/usr/bin/env python3
"""Records programs by `strobe record`, live, and compares the profiles with what the programs say of themselves.

  record_test.py STROBE PROGRAM

Amounts lie between two readings of clocks and counters: those that a program takes of itself, and those that the system has of the whole.
What need not be sampled, such as a deep stack, is recorded again until it has been seen.

Skips, with the reason, where perf events are refused; parts that need root are skipped by name.
"""
import ctypes
import errno
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
from call_filter import forbid  # noqa: E402
from checks import check, failures  # noqa: E402
from live_recordings import column, cpu_s_of, name_of, Recorder, rows_with, switches_of, TIMEOUT_S, Used  # noqa: E402
from until_seen import wait_until, work_until  # noqa: E402

SKIPPED = 77
NOBODY = 65534

# Starts a thread and a child when it is told to; says which child.
LATE = """
import os, sys, threading, time
def burn(seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds: sum(range(200))
def late():
    open("/proc/self/task/%d/comm" % threading.get_native_id(), "w").write("late")
    burn(0.4)
print("ready", flush=True)
sys.stdin.readline()
thread = threading.Thread(target=late)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    burn(0.3)
    os._exit(0)
os.waitpid(child, 0)
print(child, flush=True)
"""


# Has a child and a grandchild, which work when it is told to; says which.
FAMILY = """
import os, sys, time
told, tell = os.pipe()
known, know = os.pipe()
def work():
    os.write(know, b"%d\\n" % os.getpid())
    os.read(told, 1)
    begin = time.thread_time()
    while time.thread_time() - begin < 0.3: sum(range(200))
child = os.fork()
if child == 0:
    grandchild = os.fork()
    work()
    if grandchild != 0: os.waitpid(grandchild, 0)
    os._exit(0)
lines = open(known)
print(int(lines.readline()), int(lines.readline()), flush=True)
sys.stdin.readline()
os.write(tell, b"go")
os.waitpid(child, 0)
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


DUMPED = pathlib.Path(__file__).parent / "dumped.py"


def skip(what, why):
    print("skipped: %s (%s)" % (what, why))


def record_a_command(test):
    """All CPU time of a shell and a program with two threads. True once whole stacks, cut ones, and both threads have been seen."""
    used = Used()
    output, errors = test.record("--perf", "-F", 499, "-o", "command.pb.gz", "--", "sh", "-c", "'%s' 1500 cpu; true" % test.program)
    used.end()
    profile = test.profile("command.pb.gz")
    check(profile.types == ["samples", "cpu"], "value types: %r" % profile.types)
    used.check_cpu(profile, int(output) / 1e9, "a command")
    check("strobe: command.pb.gz" in errors and "\r" not in errors, "the summary: " + errors)
    named = [row for row in profile.rows if "Spin" in name_of(row[0][0])]
    threads = {labels.get("thread_id") for _, _, labels in named}
    check(len(threads) <= 2, "the threads of the program: %r" % threads)
    is_whole = any(sum("Descend" in name_of(location) for location in row[0]) > 9 and "main" in map(name_of, row[0]) for row in named)
    is_cut = any(name_of(row[0][-1]) == "[truncated]" for row in profile.rows)  # deeper than its copy
    return (is_whole and is_cut and len(threads) == 2 and "Spin" in errors)


def record_late_threads(test):
    """-p: a thread and a child that start after the recording has begun; it ends with the process."""
    used = Used()
    target = subprocess.Popen([sys.executable, "-c", LATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(target.stdout.readline() == b"ready\n", "the target starts")
    recorder = test.watch("-p", target.pid, "-F", 499, "-o", "late.pb.gz")
    output, _ = target.communicate(b"\n", timeout=TIMEOUT_S)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "the recording ends with its process")
    used.end()
    profile = test.profile("late.pb.gz")
    # Of one thread on each CPU, up to a period of 2 ms is in [residual].
    residual_s = 0.002 * os.cpu_count()
    late = [row for row in profile.rows if row[2].get("thread_name") == "late"]
    used.check_cpu(profile, 0.4 - residual_s, "a thread that starts later", late)
    child = [row for row in profile.rows if row[2].get("process_id") == int(output)]
    used.check_cpu(profile, 0.3 - residual_s, "a child that starts later", child)
    used.check_cpu(profile, 0.4 + 0.3, "both processes")


def record_family(test):
    """-p: the children that a process has by then, and theirs, unless they are not wanted."""
    for options in ([], ["--no-children"]):
        used = Used()
        target = subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        family = [int(word) for word in target.stdout.readline().split()]
        recorder = test.watch("-p", target.pid, *options, "-F", 499, "-o", "family.pb.gz")
        target.communicate(b"\n", timeout=TIMEOUT_S)
        check(recorder.wait(timeout=TIMEOUT_S) == 0, "the recording ends with its process")
        used.end()
        profile = test.profile("family.pb.gz")
        rows = [row for row in profile.rows if row[2].get("process_id") in family]
        if options:
            check(not rows, "children that are not wanted: %r" % rows[:2])
        else:
            used.check_cpu(profile, 2 * (0.3 - 0.002 * os.cpu_count()), "a child and a grandchild", rows)


def record_switches(test):
    """Where threads wait: context switches with their stacks. And Ctrl-C leaves the process alone."""
    code = "import time; print('ready', flush=True)\nwhile True: time.sleep(0.002)"
    target = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    target.stdout.readline()
    before = switches_of(target)
    recorder = test.watch("-p", target.pid, "-e", "task-clock,context-switches,page-faults", "-o", "switches.pb.gz")
    begin = switches_of(target)
    wait_until(lambda: switches_of(target)[0] - begin[0] > 100, "a hundred sleeps")
    end = switches_of(target)
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "Ctrl-C ends a recording")
    after = switches_of(target)
    check(target.poll() is None, "the process goes on")
    target.kill()
    target.communicate()
    profile = test.profile("switches.pb.gz")
    check(profile.types == ["samples", "cpu", "context-switches", "page-faults"], "value types: %r" % profile.types)
    switches = column(profile, "context-switches")
    check(sum(end) - sum(begin) <= switches <= sum(after) - sum(before), "%d switches, from %r, %r to %r, %r" % (switches, before, begin, end, after))
    # It waits for nothing but the end of a sleep; it loses its CPU anywhere.
    asleep = column(profile, "context-switches", rows_with(profile, "nanosleep"))
    lost = column(profile, "context-switches", rows_with(profile, "[lost]"))
    check(end[0] - begin[0] - lost <= asleep <= switches, "%d switches in a sleep and %d lost, from %r to %r" % (asleep, lost, begin, end))


# Writes so many bytes by so many calls; says its process id.
WRITER = """
import os
file = os.open("/dev/null", os.O_WRONLY)
def write_most():
    for _ in range(300): os.write(file, b"x" * 5000)
def write_little():
    for _ in range(50): os.write(file, b"x" * 7)
write_most()
write_little()
"""


def record_fields(test):
    """The bytes that a program writes, by a field of a tracepoint: each call has a sample, and its bytes are the amount."""
    output, errors = test.record("-e", "syscalls:sys_enter_write/count/,task-clock", "--stack-bytes", 1024, "-o", "field.pb.gz", "--", sys.executable, "-c", WRITER, status=None)
    if "tracepoint" in errors and ("no tracepoint" in errors or "root" in errors):
        return skip("fields of tracepoints", errors.strip())
    check("field.pb.gz" in errors, "a field of a tracepoint: " + errors)
    profile = test.profile("field.pb.gz")
    check(profile.types == ["samples", "syscalls:sys_enter_write/count", "cpu_samples", "cpu"], "value types: %r" % profile.types)
    lost = column(profile, "samples", rows_with(profile, "[lost]"))
    # The interpreter itself writes nothing else.
    count, written = column(profile, "samples"), column(profile, "syscalls:sys_enter_write/count")
    print("%d calls, %d bytes, %d lost" % (count, written, lost))
    check(lost > 0 or (count, written) == (350, 300 * 5000 + 50 * 7), "%d calls, %d bytes" % (count, written))
    for wrong in "syscalls:sys_enter_write/counts/", "syscalls:sys_enter_write/count":
        _, errors = test.record("-e", wrong, "true", status=1)
        check("count" in errors and errors.count("\n") == 1, "a wrong field: " + errors)


# Sleeps, and waits for a thread that is busy; says how long it was off its CPU, in all, asleep and waiting, and how long it ran.
OFF_CPU = """
import threading, time
def doze():
    for _ in range(20): time.sleep(0.02)
def wait():
    threading.Event().wait(0.4)
times = [(time.monotonic(), time.thread_time())]
for part in (doze, wait):
    part()
    times.append((time.monotonic(), time.thread_time()))
off = [(after[0] - before[0]) - (after[1] - before[1]) for before, after in zip(times, times[1:])]
print(sum(off), *off, times[-1][1], flush=True)
"""


def record_off_cpu(test):
    """The time that a thread is off its CPU, by where it left it: as much as its clocks say."""
    used, begin_s = Used(), time.monotonic()
    output, _ = test.record("--perf", "-e", "task-clock,off-cpu", "-F", 499, "-o", "off.pb.gz", "--", sys.executable, "-c", OFF_CPU)
    lived_s = time.monotonic() - begin_s
    used.end()
    off_s, dozed_s, waited_s, ran_s = map(float, output.split())
    profile = test.profile("off.pb.gz")
    check(profile.types == ["samples", "cpu", "off_cpu_samples", "off_cpu"], "value types: %r" % profile.types)

    total_s, lost_s, asleep_s, waiting_s = (column(profile, "off_cpu", rows_with(profile, *words)) / 1e9 for words in
                                            ([""], ["[lost]"], ["sleep"], ["PyThread_acquire_lock", "sem_"]))
    print("off a CPU: %.3f s of %.3f s, asleep %.3f s of %.3f s, waiting %.3f s of %.3f s" % (total_s, off_s, asleep_s, dozed_s, waiting_s, waited_s))
    check(off_s - used.slack_s <= total_s <= lived_s - ran_s + used.slack_s, "off a CPU: %.3f s, at least %.3f s" % (total_s, off_s))
    # It may have lost its CPU anywhere, for any time; but it sleeps and waits for as long as it wants, less what it ran meanwhile.
    for what, measured_s, wanted_s in (("asleep", asleep_s, 20 * 0.02), ("waiting", waiting_s, 0.4)):
        check(wanted_s - ran_s - lost_s - used.slack_s <= measured_s <= total_s, "%s: %.3f s" % (what, measured_s))


def record_absent(test):
    """A thread that is off its CPU when the recording ends has been so until then."""
    target = subprocess.Popen([sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target.stdin.write(b"ready\n")
    target.stdin.flush()
    target.stdout.readline()
    recorder = test.watch("-p", target.pid, "-e", "off-cpu", "-o", "absent.pb.gz")
    before_s, ran_s = time.monotonic(), -cpu_s_of(target)
    target.stdin.write(b"once\n")
    target.stdin.flush()
    target.stdout.readline()
    begin_s = time.monotonic()
    time.sleep(1)  # what it is off its CPU
    end_s = time.monotonic()
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "the end of a recording")
    after_s = time.monotonic()
    ran_s += cpu_s_of(target)
    target.kill()
    target.communicate()
    off_s = column(test.profile("absent.pb.gz"), "off_cpu") / 1e9
    # Since it has left its CPU, at the latest when it had printed the line. Two clocks of the kernel go apart by less than 0.1 %.
    check(0.999 * (end_s - begin_s - ran_s) <= off_s <= 1.001 * (after_s - before_s),
          "off a CPU for %.4f s, of %.4f to %.4f s" % (off_s, end_s - begin_s - ran_s, after_s - before_s))


def record_generated(test):
    """Generated code has the names of /tmp/perf-PID.map. True once it has been sampled."""
    test.record("--perf", "-F", 499, "-o", "generated.pb.gz", "--", sys.executable, "-c", GENERATED)
    return any(name_of(row[0][0]) == "generated loop" for row in test.profile("generated.pb.gz").rows)


def shows_dumped(test, name):
    """True once both loops of dumped.py have been sampled. Neither has ever the name of the other."""
    profile = test.profile(name)
    threads = {loop: {labels["thread_id"] for locations, _, labels in profile.rows if name_of(locations[0]) == loop}
               for loop in ("first loop", "second loop")}
    check(not threads["first loop"] & threads["second loop"], "code that was replaced: %r" % threads)
    return all(len(ids) == 1 for ids in threads.values())


def record_dumped(test):
    """Generated code has the names of a jitdump file, of the time of the sample. True once it has been sampled."""
    test.record("--perf", "-F", 499, "-o", "dumped.pb.gz", "--", sys.executable, DUMPED, test.directory)
    return shows_dumped(test, "dumped.pb.gz")


def record_dumped_in_container(test):
    """The same in a container, whose /tmp is gone when it has ended."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return skip("a jitdump file in a container", "unshare is refused")
    test.record("--perf", "-F", 499, "-o", "contained.pb.gz", "--", "unshare", "--mount", "--pid", "--fork", "sh", "-c",
                'mount -t tmpfs none /tmp && exec "$0" "$1" /tmp', sys.executable, DUMPED)
    return shows_dumped(test, "contained.pb.gz")


# Python lists its own functions.
PYTHON = """
import time
def hot_in_python(n):
    s = 0
    for i in range(n): s = (s * 31 + i) % 1000003
    return s
while time.process_time() < 0.4: hot_in_python(10000)
"""


def find_listing_python():
    """A Python that has -X perf."""
    for name in ("python3", "python3.14", "python3.13", "python3.12"):
        python = shutil.which(name)
        if python and subprocess.run([python, "-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())"],
                                     capture_output=True).returncode == 0:
            return python
    return None


def record_python(test):
    """Functions of Python have their names and files. True once one has been sampled."""
    python = find_listing_python()
    if python is None:
        return skip("functions of Python", "no Python since 3.12 that lists them")
    script = test.directory / "hot.py"
    script.write_text(PYTHON)
    test.record("--perf", "-F", 499, "-o", "python.pb.gz", "--", python, "-X", "perf", script)
    return any((name_of(location), location.file) == ("hot_in_python", str(script))
               for row in test.profile("python.pb.gz").rows for location in row[0])


# Touches 60 MiB while its recorder stands still; says how many page faults it had then, and in all.
FAULTS = """
import os, resource, signal
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def state(): return open("/proc/%d/stat" % recorder).read().rsplit(")", 1)[1].split()[0]
recorder, first = os.getppid(), faults()
os.kill(recorder, signal.SIGSTOP)
while state() != "T": pass
begin = faults()
bytearray(60 << 20)
end = faults()
os.kill(recorder, signal.SIGCONT)
print(end - begin, faults() - first)
"""


def record_losses(test):
    """A ring of 64 KiB has room for seven samples: what does not fit is counted, and no amount is lost."""
    used = Used()
    output, _ = test.record("--perf", "-e", "page-faults", "--ring-kib", 64, "-o", "losses.pb.gz", "--", sys.executable, "-S", "-E", "-c", FAULTS)
    used.end()
    unseen, least = map(int, output.split())
    profile = test.profile("losses.pb.gz")
    lost = column(profile, "samples", rows_with(profile, "[lost]"))
    faults, samples = column(profile, "page-faults"), column(profile, "samples")
    print("%d samples of %d faults, %d of them lost; the program's count: %d while the recorder stood still, %d to %d in all" %
          (samples, faults, lost, unseen, least, used.faults))
    # One ring for each CPU; and the system counts a few faults of its own for the process.
    check(lost >= unseen - 16 * os.cpu_count(), "%d samples are lost" % lost)
    check(least - 200 <= faults <= used.faults, "page faults: %d, in truth %d to %d" % (faults, least, used.faults))
    # Records of code and names are lost as well, and counted with the samples: some hundreds, of an interpreter that loads a few files.
    check(faults <= samples <= faults + 1000, "samples and losses: %d, faults: %d" % (samples, faults))


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


def refuse(test):
    """Without the right to it: a sentence that names what forbids it. False if an own program without rights was not sampled."""
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
    check(next(iter(profile.mappings.values()))[2] == test.program, "the program is the first module")
    return any("Spin" in name_of(row[0][0]) for row in profile.rows)


def record_in_container(test):
    """A program in namespaces of its own: its file is not there outside, and its ids are others. False until whole stacks and names are seen."""
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
    is_seen = True
    if inner is not None:
        test.record("-p", inner, "-F", 299, "--duration", 0.5, "-o", "container.pb.gz")
        rows = test.profile("container.pb.gz").rows
        is_seen = any("Spin" in name_of(row[0][0]) and "main" in map(name_of, row[0]) for row in rows)
    outer.kill()
    outer.wait()
    return is_seen


def record_generated_in_container(test):
    """A process in a container writes the list of its code by its own id to a /tmp of its own. True once the code has been sampled."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return skip("generated code in a container", "unshare is refused")
    code = "print('ready', flush=True)\ninput()\n" + GENERATED
    outer = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                              'mount -t tmpfs none /tmp && exec "$0" -c "$1"', sys.executable, code],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(outer.stdout.readline() == b"ready\n", "a program in a container")
    inner = pathlib.Path("/proc/%d/task/%d/children" % (outer.pid, outer.pid)).read_text().split()[0]
    recorder = test.watch("-p", inner, "-F", 499, "-o", "generated.pb.gz")
    outer.communicate(b"\n", timeout=TIMEOUT_S)
    check(recorder.wait(timeout=TIMEOUT_S) == 0, "the recording ends with its process")
    return any(name_of(row[0][0]) == "generated loop" for row in test.profile("generated.pb.gz").rows)


def record_replaced(test):
    """Programs whose file is replaced while they run, as by an upgrade. False until whole stacks and names are seen."""
    def is_whole(name):
        rows = test.profile(name).rows
        return any("Spin" in name_of(row[0][0]) and "main" in map(name_of, row[0]) for row in rows)

    copy = test.directory / "replaced"
    shutil.copy(test.program, copy)
    target = subprocess.Popen([copy, "1000000"])
    copy.unlink()
    shutil.copy("/bin/true", copy)
    test.record("-p", target.pid, "-F", 299, "--duration", 0.5, "-o", "replaced.pb.gz")
    target.kill()
    target.wait()
    copy.unlink()
    shutil.copy(test.program, copy)
    script = "'%s' 1500 & sleep 0.2; rm '%s'; cp /bin/true '%s'; wait" % (copy, copy, copy)
    test.record("--perf", "-F", 299, "-o", "upgraded.pb.gz", "--", "sh", "-c", script)
    copy.unlink()
    return is_whole("replaced.pb.gz") and is_whole("upgraded.pb.gz")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        test = Recorder(sys.argv[1], sys.argv[2], pathlib.Path(scratch))
        first = subprocess.run([test.strobe, "record", "--perf", "-o", "x.folded", "true"], cwd=scratch, capture_output=True)
        if b"refused" in first.stderr:
            print("skipped: " + first.stderr.decode(errors="replace").strip())
            return SKIPPED
        for part in (record_a_command, record_late_threads, record_family, record_switches, record_fields, record_off_cpu, record_absent, record_generated, record_dumped, record_dumped_in_container, record_python, record_losses, pass_on,
                     refuse, record_in_container, record_generated_in_container, record_replaced):
            # False: what need not be sampled was not.
            work_until(lambda seen: failures or seen is not False, lambda part=part: part(test), part.__name__)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
