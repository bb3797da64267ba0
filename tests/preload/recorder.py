"""What the tests of `strobe record` share: recordings, and what their profiles say. record_test.py sets the path of its imports."""
import json
import os
import pty
import resource
import subprocess
import tty

from checks import check, equal, failures
from until_seen import work_until

TIMEOUT_S = 100


def cpu_time_of_children():
    """Of those that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Recorder:
    def __init__(self, directory, strobe, program, strobe_program=None):
        self.strobe, self.program, self.strobe_program, self.directory = strobe, program, strobe_program, directory
        # Samples within no budget, so that a loaded machine has as many.
        self.environment = {**os.environ, "STROBE_MAX_OVERHEAD": "1", "UNUSUAL": "a b=c\td", "TMPDIR": directory + "/temporary"}
        os.mkdir(self.environment["TMPDIR"])

    def bare(self, *command, **options):
        return subprocess.run(command, capture_output=True, env=self.environment, cwd=self.directory, timeout=TIMEOUT_S, **options)

    def record(self, *command, arguments=(), **options):
        used_before_s = cpu_time_of_children()
        output = () if "-o" in arguments else ("-o", "out.pb.gz")
        recorded = self.bare(self.strobe, "record", "--no-top", *output, *arguments, "--", *command, **options)
        self.used_s = cpu_time_of_children() - used_before_s + 1e-5  # the system says it in microseconds
        return recorded

    def top(self, *arguments, file="out.pb.gz"):
        """The sum, and the totals of functions, of a profile in seconds."""
        text = self.bare(self.strobe, "top", "-n", "0", "--json", *arguments, file).stdout
        table = json.loads(text)
        return table["sum"] / 1e9, {row["function"]: row["total"] / 1e9 for row in table["functions"]}

    def times(self, file="out.pb.gz"):
        """How many samples of a profile have their times, and how many it has."""
        info = json.loads(self.bare(self.strobe, "info", "--json", file).stdout)
        return info["moments"], sum(kind["sum"] for kind in info["types"] if kind["type"] == "samples")

    def check_total(self, total_s, least_s, what):
        """The CPU time of the profile of the last recording."""
        check(least_s <= total_s <= self.used_s, "%s: %.4f s, it has worked for %.4f s and used %.4f s" % (what, total_s, least_s, self.used_s))

    def until_seen(self, record, functions, what):
        """Calls record(), which returns the functions of a profile, until each of `functions` was part of the name of one."""
        unseen = set(functions)

        def is_seen(found):
            unseen.difference_update([name for name in unseen if any(name in function and total > 0 for function, total in found.items())])
            return bool(failures) or not unseen

        work_until(is_seen, record, what)

    def threads(self):
        """What `strobe info` says of threads: a name (and the rest of its line) of each. Modules are no part of it: a sample at
        any address adds one."""
        lines = self.bare(self.strobe, "info", "out.pb.gz").stdout.decode().splitlines()
        return [line.removeprefix("thread").strip() for line in lines if line.startswith("thread ")]


class OnTerminal:
    """A recording on a terminal of its own, of which `seen` is what it shows."""

    def __init__(self, recorder, *command, is_raw=False):
        self.controller, terminal = pty.openpty()
        if is_raw:
            tty.setraw(terminal)
        environment = {**recorder.environment, "STROBE_EXPORT_PERIOD_S": "1"}
        self.process = subprocess.Popen([recorder.strobe, "record", "--no-top", "-o", "out.pb.gz", *command],
                                        stdin=terminal, stdout=terminal, stderr=terminal, cwd=recorder.directory, env=environment)
        os.close(terminal)
        self.seen = b""

    def read(self):
        """Waits for more; False once the terminal's other end is closed."""
        try:
            more = os.read(self.controller, 4096)
        except OSError:
            more = b""
        self.seen += more
        return bool(more)

    def finish(self):
        while self.read():
            pass
        os.close(self.controller)
        equal(self.process.wait(TIMEOUT_S), 0, "the recording")
        return self.seen.decode()
