"""Recordings by `strobe record` of running programs, and what the system says of these. record_test.py sets the path of its imports."""
import os
import pathlib
import pty
import resource
import subprocess
import threading

from checks import check
import pprof_file

TIMEOUT_S = 100


class Used:
    """What children that have ended have used since this began, by the system."""

    def __init__(self):
        self.begin = self.now()

    @staticmethod
    def now():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The time that the machine's host has taken from its CPUs: events of a CPU's clock count it, clocks of processes do not.
        with open("/proc/stat") as file:
            stolen_s = int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
        return usage.ru_utime + usage.ru_stime, usage.ru_minflt + usage.ru_majflt, usage.ru_nvcsw + usage.ru_nivcsw, stolen_s

    def end(self):
        self.cpu_s, self.faults, switches, stolen_s = (after - before for after, before in zip(self.now(), self.begin))
        # An event's clock stands still a little before or after that of its thread does, at each switch. Stolen time is known to 10 ms.
        self.slack_s = stolen_s + 0.0001 * switches + 0.02
        return self

    def check_cpu(self, profile, least_s, what, rows=None):
        """The rows have at least the CPU time that a program has used by its own clock, and at most what there was."""
        cpu_s = column(profile, "cpu", rows) / 1e9
        print("%s: %.3f s of CPU time, in truth %.3f to %.3f s, slack %.3f s" % (what, cpu_s, least_s, self.cpu_s, self.slack_s))
        check(least_s - self.slack_s <= cpu_s <= self.cpu_s + self.slack_s, "%s: %.3f s of CPU time" % (what, cpu_s))


class Recorder:
    """`strobe record`, in a directory."""

    def __init__(self, strobe, program, directory):
        self.strobe, self.program, self.directory = os.path.abspath(strobe), os.path.abspath(program), directory

    def record(self, *arguments, status=0, **options):
        """What `strobe record` prints: (standard output, standard error). It ends with that status; None allows any."""
        result = subprocess.run([self.strobe, "record", *map(str, arguments)], cwd=self.directory, capture_output=True,
                                timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, **options)
        errors = result.stderr.decode(errors="replace")
        check(status is None or result.returncode == status, "record %s: status %d: %s" % (" ".join(map(str, arguments)), result.returncode, errors[:400]))
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
        # A terminal that nobody reads fills.
        threading.Thread(target=self.drain, args=(terminal,), daemon=True).start()
        return process

    @staticmethod
    def drain(terminal):
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:
            pass
        os.close(terminal)


def name_of(location):
    return location.function[0]


def column(profile, name, rows=None):
    index = profile.types.index(name)
    return sum(values[index] for _, values, _ in (profile.rows if rows is None else rows))


def rows_with(profile, *words):
    """Those with one of the words in a function's name."""
    return [row for row in profile.rows if any(word in name_of(location) for location in row[0] for word in words)]


def switches_of(process):
    """How often it has waited, and lost its CPU."""
    lines = pathlib.Path("/proc/%d/status" % process.pid).read_text().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith(("voluntary", "nonvoluntary"))]


def cpu_s_of(process):
    """What it has run, by the scheduler."""
    return int(pathlib.Path("/proc/%d/schedstat" % process.pid).read_text().split()[0]) / 1e9
