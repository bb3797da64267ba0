#!/usr/bin/env python3
"""Records trees of processes of which some load no library, and compares the profile with what the processes say of themselves.

  outside_test.py PART STROBE DYNAMIC STATIC

PART names a function below; DYNAMIC and STATIC are outside_program.cc, linked in these ways. Skips, with the reason, where there is no STATIC
('-'), or where perf events are refused.

No time may be in the profile twice: that is checked of each recording. A machine that is busy may let a process wait too long for its events,
so that a part of its work is missing: such a tree is recorded again.
"""
import errno
import os
import pathlib
import re
import resource
import shutil
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
from call_filter import forbid  # noqa: E402
from checks import check, equal, failures  # noqa: E402
import pprof_file  # noqa: E402
from recorder import Recorder  # noqa: E402
from until_seen import work_until  # noqa: E402

WORK_S = 0.25  # outside_program.cc
PERIOD_S = 0.001
# The last part of a period, of each thread on each CPU, is in no sample; it is in [residual], if that is known.
SLACK_S = 2 * PERIOD_S * os.cpu_count()
# What processes use before and after the shell says what its children have used, and the last digits of that.
AROUND_S = 0.1
NOBODY = 65534
FEW_FILES = 96  # a static program takes one for each CPU
NO_CALL = 0xFFFF
SKIPPED = 77


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def stolen_s():
    """The time that the machine's host has taken from its CPUs: clocks of events count it, those of processes do not."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Tree:
    """A recording of a shell's script: what its processes have said, and what the profile has of each."""

    def __init__(self, recorder, script, *arguments, status=0, **options):
        stolen_before_s = stolen_s()
        self.recorded = recorder.record("sh", "-c", script + "; status=$?; times; exit $status", arguments=["-F", "1000", *arguments], **options)
        stolen = stolen_s() - stolen_before_s + 0.01
        equal(self.recorded.returncode, status, "status of %s: %r" % (script, self.recorded.stderr))
        *lines, own, children = self.recorded.stdout.decode().splitlines()
        self.said_s = {}
        for line in lines:
            _, process, seconds = line.split()
            self.said_s[process] = self.said_s.get(process, 0) + float(seconds)
        used_s = sum(60 * int(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", own + children))
        profile = pprof_file.read(os.path.join(recorder.directory, "out.pb.gz"))
        column = profile.types.index("cpu")
        self.cpu_s = {}
        for _, values, labels in profile.rows:
            process = str(labels.get("process_id", ""))
            self.cpu_s[process] = self.cpu_s.get(process, 0) + values[column] / 1e9
        total_s = sum(self.cpu_s.values())
        print("%s: %.3f s, said %.3f s, used %.3f s" % (arguments, total_s, sum(self.said_s.values()), used_s))
        check(total_s <= used_s + stolen + AROUND_S, "twice? %.3f s of %.3f s: %r of %r" % (total_s, used_s, self.cpu_s, self.said_s))

    def has_all(self):
        """True if each process has what it has said."""
        missing = {process: (said_s, self.cpu_s.get(process, 0)) for process, said_s in self.said_s.items()
                   if self.cpu_s.get(process, 0) < said_s - SLACK_S}
        if missing:
            print("missing, of processes: (said, recorded): %r" % missing)
        return bool(failures) or not missing

    def has_most(self):
        """The same, but for what is not known of a process."""
        return bool(failures) or all(self.cpu_s.get(process, 0) > 0.8 * said_s for process, said_s in self.said_s.items())

    def is_exact(self):
        """True if all processes together have all of it: that can be if no static program has started a dynamic one."""
        return bool(failures) or sum(self.cpu_s.values()) > sum(self.said_s.values()) - 0.001


def tree(recorder, dynamic, static):
    """Static and dynamic programs that execute each other, by fork and exec, in place, and with threads."""
    script = "; ".join(["{d} work", "{s} work", "{s} exec {d} work", "{d} exec {s} fork", "{s} threads",
                        "{s} exec {d} exec {s} work"]).format(d=dynamic, s=static)
    found = work_until(lambda found: found.has_all() and found, lambda: Tree(recorder, script, status=3), "each process with all of its time")
    equal(len(found.said_s), 7, "processes that have worked")
    check(b"not in the profile" not in found.recorded.stderr, "nothing is missing: %r" % found.recorded.stderr)
    _, functions = recorder.top()
    check(all(any(name in function for function in functions) for name in ("WorkOfStatic", "WorkOfDynamic")), "names: %r" % functions)
    each = os.path.join(tempfile.mkdtemp(dir=recorder.directory), "each/")
    equal(recorder.record(dynamic, "exec", static, arguments=["-o", each]).returncode, 3, "a directory")
    equal(len(os.listdir(each)), 2, "a file of the process, and one of what was recorded from outside: %r" % os.listdir(each))


def spawned(recorder, dynamic, static):
    """What posix_spawn starts is recorded from its first moments on."""
    script = "{d} spawn {s} fork; {d} spawn {s} spawn {d} work".format(d=dynamic, s=static)

    work_until(Tree.has_most, lambda: Tree(recorder, script, status=3), "most of what was spawned")


def command(recorder, dynamic, static):
    """A command that is static is recorded as its children are: totals are exact, and nothing says which process it is."""
    before_s = stolen_s()
    recorded = recorder.record(static, "work", arguments=["-F", "1000"])
    equal((recorded.returncode, recorded.stdout.split()[0]), (3, b"static"), "a static command")
    check(b"perf events record it\n" in recorded.stderr, "what is said: %r" % recorded.stderr)
    stolen = stolen_s() - before_s + 0.01
    total, functions = recorder.top()
    said_s = float(recorded.stdout.split()[2])
    check(said_s - 0.001 <= total <= recorder.used_s + stolen, "%.4f s, it has worked for %.4f s and used %.4f s" % (total, said_s, recorder.used_s))
    labels = [labels for _, _, labels in pprof_file.read(os.path.join(recorder.directory, "out.pb.gz")).rows]
    check(not any("process_id" in row for row in labels), "one process: %r" % labels[:2])
    work_until(lambda found: bool(failures) or any("WorkOfStatic" in name for name in found),
               lambda: recorder.record(static, "exec", dynamic, "work") and recorder.top()[1], "names of a static command")


def periods(recorder, dynamic, static):
    """Each period has what was recorded from outside in it, and they add up."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=recorder.directory))

    def record():
        shutil.rmtree(folder)
        stolen_before_s = stolen_s()
        script = "for i in 1 2 3 4 5; do %s fork; done" % static
        recorded = recorder.record("sh", "-c", script, arguments=["-F", "1000", "--every", "1", "-o", "%s/" % folder])
        equal(recorded.returncode, 4, "the script")
        files = sorted(folder.iterdir())
        total_s = sum(recorder.top(file=str(file))[0] for file in files)
        said_s = sum(float(line.split()[2]) for line in recorded.stdout.splitlines())
        print("%d files: %.3f s, said %.3f s" % (len(files), total_s, said_s))
        check(total_s <= recorder.used_s + stolen_s() - stolen_before_s + AROUND_S, "%.3f s of %.3f s" % (total_s, recorder.used_s))
        return len([file for file in files if file.name.startswith(pathlib.Path(static).name + ".")]) > 1 and total_s >= said_s - 10 * SLACK_S

    work_until(lambda is_whole: bool(failures) or is_whole, record, "several periods")


def rights(recorder, dynamic, static):
    """A program that runs as another user, by its file's bits, is recorded by root."""
    if os.geteuid() != 0:
        skip("only root can make such a program, and record it")
    os.chmod(recorder.directory, 0o755)
    program = os.path.join(recorder.directory, "setuid")
    shutil.copy(dynamic, program)
    os.chown(program, NOBODY, -1)
    os.chmod(program, 0o4755)

    work_until(Tree.has_most, lambda: Tree(recorder, "{p} work; {d} exec {p} fork; {d} spawn {p} work".format(p=program, d=dynamic), status=3),
               "most of what runs as another user")
    work_until(lambda total_s: bool(failures) or total_s > 0.8 * WORK_S, lambda: recorder.record(program, "work") and recorder.top()[0],
               "a command that runs as another user")


def user(recorder, dynamic, static):
    """A user without rights has all processes, too; the kernel's part is in [residual]. Setuid programs are missing, as a line says."""
    if os.geteuid() != 0:
        skip("only root can make a setuid program that is not the user's")
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid > 2:
        skip("kernel.perf_event_paranoid is %d" % paranoid)
    for folder in (recorder.directory, recorder.environment["TMPDIR"]):
        os.chmod(folder, 0o777)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    script = "{d} exec {s} work; {s} fork".format(d=dynamic, s=static)
    work_until(lambda found: found.has_most() and found.is_exact(), lambda: Tree(recorder, script, status=4, **as_nobody), "the time of all processes")
    program = os.path.join(recorder.directory, "setuid")
    shutil.copy(dynamic, program)
    os.chmod(program, 0o4755)
    for script in ("{p} work", "{d} spawn {p} work"):
        recorded = recorder.record("sh", "-c", script.format(p=program, d=dynamic) + "; exit 5", **as_nobody)
        equal(recorded.returncode, 5, "a user's setuid program")
        check(b"CPU time are not in the profile" in recorded.stderr and b"more rights" in recorded.stderr, "what is said: %r" % recorded.stderr)


def failing(recorder, dynamic, static):
    """A program that cannot be executed is as if it had not been asked for; what is executed then is recorded once."""
    broken = os.path.join(recorder.directory, "broken")
    pathlib.Path(broken).write_bytes(pathlib.Path(static).read_bytes()[:64])  # its segments are not there
    os.chmod(broken, 0o755)
    equal(recorder.bare(dynamic, "exec", broken).returncode, 3, "a program without segments cannot be executed")
    found = Tree(recorder, "{d} exec {b}; {d} spawn {b}; {s} work".format(d=dynamic, b=broken, s=static), status=3)
    equal(len(found.said_s), 3, "what goes on")
    script = "{d} again {b} {s} work; {d} again {b} {d} work; {s} work".format(d=dynamic, b=broken, s=static)
    found = work_until(lambda found: found.has_all() and found, lambda: Tree(recorder, script, status=3), "what is executed after that")
    equal(len(found.said_s), 3, "processes that execute two programs")


def threads(recorder, dynamic, static):
    """A thread that is not the first of its process executes: it gets the id of the process, and its events are those of the process."""
    script = "{d} other {s} work; {d} other {s} exec {d} exec {s} work; {s} other {s} other {d} work".format(d=dynamic, s=static)
    found = work_until(lambda found: found.has_all() and found, lambda: Tree(recorder, script, status=3), "all of the time")
    equal(len(found.said_s), 3, "processes")


def filters(recorder, dynamic, static):
    """A filter that ends a process at a call which only a question needs does not end a program. What the command's own filters allow is asked."""
    expected = recorder.bare(dynamic, "filter", static, "work").returncode
    equal(expected, 3, "the filter allows what the program does itself")
    for program in (static, dynamic):
        recorded = recorder.record(dynamic, "filter", program, "exec", static, "work")
        equal((recorded.returncode, len(recorded.stdout.splitlines())), (3, 3), "a program with a filter: %r" % recorded.stderr)
    script = "{d} exec {s} work".format(d=dynamic, s=static)
    work_until(lambda found: found.has_all() and found, lambda: Tree(recorder, script, status=3, preexec_fn=lambda: forbid(errno.EPERM, NO_CALL)),
               "what runs with the command's filter")


def namespaces(recorder, dynamic, static):
    """A process of another PID namespace calls itself, and its children, by other ids than the command."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        skip("only root can make such a namespace, by unshare(1)")
    script = "unshare -pf sh -c '{d} exec {s} work; {d} other {s} work; {d} spawn {s} work; exit 3'".format(d=dynamic, s=static)

    def whole():
        stolen_before_s = stolen_s()
        recorded = recorder.record("sh", "-c", script, arguments=["-F", "1000"])
        stolen = stolen_s() - stolen_before_s + 0.01
        equal(recorded.returncode, 3, "the script: %r" % recorded.stderr)
        said_s = [float(line.split()[2]) for line in recorded.stdout.decode().splitlines()]
        equal(len(said_s), 6, "programs that have worked")
        total_s, functions = recorder.top()
        work_s = sum(seconds for name, seconds in functions.items() if "WorkOfStatic" in name)
        print("%.3f s, of static programs %.3f s, said %.3f s" % (total_s, work_s, sum(said_s)))
        check(total_s <= recorder.used_s + stolen + AROUND_S, "twice? %.3f s of %.3f s" % (total_s, recorder.used_s))
        return bool(failures) or work_s > 0.8 * 3 * WORK_S

    work_until(bool, whole, "most of what static programs do")


def few_files(recorder, dynamic, static):
    """More processes than there are files for: the recording ends as ever, and says of how many processes it has nothing."""
    count = 60
    script = ("mkfifo f; exec 3<>f; for i in $(seq %d); do %s read <f 3>&- & done; %s work; exec 3>&-; wait; rm f; exit 5" % (count, static, dynamic))
    recorded = recorder.record("sh", "-c", script, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, FEW_FILES)))
    equal(recorded.returncode, 5, "the script: %r" % recorded.stderr)
    said = re.findall(rb"are not recorded: (\d+); [^\n]*(?:ulimit -n|asked at once)", recorded.stderr)
    equal(len(said), 1, "what is said: %r" % recorded.stderr)
    check(0 < int(said[0]) < count, "of %d processes: %r" % (count, said))
    total_s, functions = recorder.top()
    check(total_s >= 0.8 * WORK_S and any("WorkOfDynamic" in name for name in functions), "%.3f s: %r" % (total_s, functions))


def refused(recorder, dynamic, static):
    """Without perf events the program runs as ever, and one sentence says what is missing, and why."""
    script = "{d} work >&2; {s} work >&2; echo out; {s} exec /no/such/file >&2; exit 5".format(d=dynamic, s=static)
    for error, words in ((errno.EPERM, b"a seccomp filter forbids perf_event_open"), (errno.ENOSYS, b"this kernel has none")):
        recorded = recorder.record("sh", "-c", script, preexec_fn=lambda error=error: forbid(error))
        equal((recorded.returncode, recorded.stdout), (5, b"out\n"), "status and output")
        said = [line for line in recorded.stderr.splitlines() if line.startswith(b"strobe: ")]
        check(len(said) == 2 and b"CPU time are not in the profile" in said[0] and words in said[0], "what is said: %r" % said)
        total, functions = recorder.top()
        check(WORK_S <= total < 2 * WORK_S, "%.3f s, without the static programs: %r" % (total, functions))
        # A command of which nothing would be recorded is not run.
        recorded = recorder.record(static, "work", preexec_fn=lambda error=error: forbid(error))
        equal((recorded.returncode, recorded.stdout), (1, b""), "a static command")
        check(words in recorded.stderr, "what is said: %r" % recorded.stderr)


def asked(recorder, dynamic, static):
    """What perf events do not see is said, once."""
    for arguments in (["--alloc"], ["--wall", "10"], ["--worker"]):
        stolen_before_s = stolen_s()
        recorded = recorder.record("sh", "-c", "{d} work; {s} work; {s} work".format(d=dynamic, s=static), arguments=arguments)
        equal(recorded.returncode, 3, "status with %r" % arguments)
        sentence = b"of programs that load no library, the profile has the CPU time alone, and not what is asked for by %s\n"
        expected = [b"strobe: " + sentence % arguments[0].encode()] if arguments != ["--worker"] else []
        found = [line for line in recorded.stderr.splitlines(keepends=True) if b"alone" in line]
        equal(found, expected, "what is said of %r" % arguments)
        total, _ = recorder.top("--type", "cpu")
        check(total <= recorder.used_s + stolen_s() - stolen_before_s + AROUND_S, "%.3f s of %.3f s with %r" % (total, recorder.used_s, arguments))


def main():
    part, strobe, dynamic, static = sys.argv[1:]
    if static == "-":
        skip("no program can be linked statically here")
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(directory, os.path.abspath(strobe), os.path.abspath(dynamic))
        if part != "refused":
            probe = recorder.bare(recorder.strobe, "record", "--perf", "--no-top", "-o", "probe.pb.gz", "true")
            if probe.returncode != 0:
                skip(probe.stderr.decode().strip())
        globals()[part](recorder, os.path.abspath(dynamic), os.path.abspath(static))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
