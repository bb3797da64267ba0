#!/usr/bin/python3
"""The first process of a kernel that tests/kernels.sh boots: makes a setting, runs tests in it, and turns the machine off.

The kernel's command line says which:

  strobe.tests=PATTERN,...   the tests, by name, in this order
  strobe.setting=NAME,...    the settings: see SETTINGS
  strobe.emulated=1          the CPU is emulated, so clocks are slow
  strobe.seconds=N           no test begins later

A line a test goes to the console: `PASS NAME: N s`, `SKIP NAME: why`, or `FAIL NAME: why`, before which stand the test's last lines. The
line `DONE` is the last: without it, the kernel has not come to the end.
"""
import ctypes
import fcntl
import fnmatch
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = "/strobe"
SKIPPED = 77
USER = 1000
MAX_TEST_SECONDS = 60
SHOWN_LINES = 24
FAILURE_LINES = 8
MEMORY_MAX = 768 << 20
CPU_MAX = "50000 100000"  # half of a CPU
POWER_OFF = 0x4321FEDC
MS_RDONLY, MS_REMOUNT, MNT_DETACH = 1, 32, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags=0, options=""):
    if LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {kind} at {target}: {os.strerror(ctypes.get_errno())}")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def prepare():
    """What every system has when its first service starts."""
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")):
        if not os.path.ismount(target):
            mount(kind, target, kind)
    for target, kind, options in (("/dev/pts", "devpts", "ptmxmode=0666"), ("/dev/shm", "tmpfs", "mode=1777"),
                                  ("/tmp", "tmpfs", "mode=1777"), ("/run", "tmpfs", "mode=755"),
                                  ("/sys/fs/cgroup", "cgroup2", "")):
        os.makedirs(target, exist_ok=True)
        mount(kind, target, kind, 0, options)
    with socket.socket() as loopback:
        up = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(loopback, 0x8914, up)  # SIOCSIFFLAGS
    os.environ.update({"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TERM": "dumb"})


# Each setting is made in the process that runs the tests, before it gives up its rights.


def hide_other_processes():
    mount("proc", "/proc", "proc", MS_REMOUNT, "hidepid=2")


def take_proc_away():
    if LIBC.umount2(b"/proc", MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), "umount /proc")


def limit_group():
    group = "/sys/fs/cgroup/tests"
    os.mkdir(group)
    write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory")
    write(group + "/cpu.max", CPU_MAX)
    write(group + "/memory.max", str(MEMORY_MAX))
    write(group + "/cgroup.procs", str(os.getpid()))


def write_nothing_to_root():
    mount("", "/", "ext4", MS_REMOUNT | MS_RDONLY)


# What Docker's profile refuses a process without capabilities, and what a profiler may ask for, by the system calls' numbers on
# x86-64 and on aarch64. clone3 is absent, as it is for Docker; all else is refused.
REFUSED = {"perf_event_open": (298, 241), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117),
           "bpf": (321, 280), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "userfaultfd": (323, 282),
           "kcmp": (312, 272), "open_by_handle_at": (304, 265), "pidfd_getfd": (438, 438)}
ABSENT = {"clone3": (435, 435)}


def filter_calls():
    column = 1 if os.uname().machine == "aarch64" else 0
    errors = [(numbers[column], 1) for numbers in REFUSED.values()] + [(numbers[column], 38) for numbers in ABSENT.values()]
    program = [(0x20, 0, 0, 0)]  # the call's number
    for number, error in errors:
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error)]  # equal: SECCOMP_RET_ERRNO
    program.append((0x06, 0, 0, 0x7FFF0000))  # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    if LIBC.prctl(22, 2, head, 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "seccomp")


def give_up_rights():
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)


def set_paranoid(level):
    def set_it():
        write("/proc/sys/kernel/perf_event_paranoid", str(level))
    return set_it


# In the order in which they are made.
SETTINGS = {
    **{f"paranoid={level}": set_paranoid(level) for level in range(-1, 5)},
    "cgroup": limit_group,
    "read_only": write_nothing_to_root,
    "hidepid": hide_other_processes,
    "no_proc": take_proc_away,
    "seccomp": filter_calls,
    "user": give_up_rights,
}


def told(said):
    """The lines that tell of failures: those of GoogleTest's with what follows, else the last ones."""
    begins = [i for i, line in enumerate(said) if line.endswith(": Failure")]
    return [line for i in begins for line in said[i:i + FAILURE_LINES]][:SHOWN_LINES] or said[-SHOWN_LINES:]


class Tests:
    def __init__(self, arguments):
        self.settings = [name for name in arguments.get("setting", "").split(",") if name]
        self.patterns = arguments.get("tests", "*").split(",")
        self.end_s = time.monotonic() + float(arguments.get("seconds", 1e9))
        self.multiplier = 4 if "emulated" in arguments else 1
        with open(f"{HERE}/left_out.txt") as file:
            lines = [line.split(None, 2) for line in file if line.strip() and not line.startswith("#")]
        where = {"all", *self.settings, *(["emulated"] if "emulated" in arguments else [])}
        self.left_out = {name: why.strip() for place, name, why in lines if place in where}

    def chosen(self):
        with open(f"{HERE}/tests.json") as file:
            tests = json.load(file)
        found = {}
        for pattern in self.patterns:
            found.update((test["name"], test) for test in tests if test["name"] not in found and fnmatch.fnmatch(test["name"], pattern))
        return list(found.values())

    def run(self):
        for test in self.chosen():
            why = next((why for name, why in self.left_out.items() if fnmatch.fnmatch(test["name"], name)), None)
            if why is None and time.monotonic() > self.end_s:
                why = "its turn has not come within the boot's time"
            if why is not None:
                print(f"SKIP {test['name']}: {why}", flush=True)
                continue
            self.run_one(test)

    def run_one(self, test):
        name = test["name"]
        cases = {case: why for case, why in self.left_out.items() if case.startswith(name + ":")}
        for case, why in cases.items():
            print(f"SKIP {case}: {why}", flush=True)
        environment = {**os.environ, **test["env"], "GTEST_FILTER": "-" + ":".join(case.split(":", 1)[1] for case in cases)}
        limit_s = min(test["timeout"], MAX_TEST_SECONDS) * self.multiplier
        begin_s = time.monotonic()
        with open("/tmp/output", "w+b") as output:
            process = subprocess.Popen(test["cmd"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
                                       cwd=test["cwd"], start_new_session=True)
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = "hung"
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            said = output.read().decode(errors="replace").splitlines()
        seconds = time.monotonic() - begin_s
        if status == 0:
            print(f"PASS {name}: {seconds:.1f} s", flush=True)
        elif status == SKIPPED:
            print(f"SKIP {name}: {said[-1] if said else 'no reason'}", flush=True)
        else:
            for line in told(said):
                print("  | " + line)
            print(f"FAIL {name}: {f'no end after {limit_s} s' if status == 'hung' else f'exit status {status}'}, {seconds:.1f} s", flush=True)


def run_tests(arguments):
    tests = Tests(arguments)
    # A signal that PID 1 ignores, its children would ignore, too.
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    for name, make in SETTINGS.items():
        if name in tests.settings:
            try:
                make()
            except OSError as error:
                print(f"SKIP {name}: this kernel cannot make it ({error})", flush=True)
                return
    tests.run()


def main():
    prepare()
    with open("/proc/cmdline") as file:
        words = file.read().split()
    arguments = dict(word.removeprefix("strobe.").split("=", 1) for word in words if word.startswith("strobe."))
    print(f"KERNEL {os.uname().release} {os.uname().version} with {os.cpu_count()} CPUs", flush=True)
    runner = os.fork()
    if runner == 0:
        status = 1
        try:
            run_tests(arguments)
            status = 0
        except BaseException as error:  # the console is all that is left to say it to
            print(f"FAIL guest.py: {error!r}", flush=True)
        os._exit(status)
    while os.wait()[0] != runner:
        pass
    print("DONE", flush=True)
    os.sync()
    LIBC.reboot(POWER_OFF)


main()
