#!/usr/bin/env python3
"""Watches a program by `strobe top`, live: on a terminal, of which the frames are read, and through a pipe.

  live_test.py STROBE PROGRAM

What a sample may miss is waited for, frame by frame. Skips, with the reason, where perf events are refused; the whole machine is skipped by
name where it is.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / folder))
from checks import check, equal, failures  # noqa: E402
from until_seen import wait_until  # noqa: E402

SKIPPED = 77
TIMEOUT_S = 100
ROWS, COLUMNS = 20, 70
HEAD_LINES = 3
MAIN_SCREEN = b"\x1b[?1049l"
END_OF_FRAME = b"\x1b[J"
# How many frames may come until one has what is waited for: each is a second, or the answer to a key.
MOST_FRAMES = 60


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def text_of(output):
    """Without what colours it and clears lines."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode())


class OnTerminal:
    """`strobe top` on a terminal that is its session's own, so that keys can be signals."""

    def __init__(self, strobe, *arguments):
        self.controller, self.terminal = pty.openpty()
        resize(self.terminal, ROWS, COLUMNS)
        self.before = termios.tcgetattr(self.terminal)
        self.process = subprocess.Popen([strobe, "top", *map(str, arguments)], stdin=self.terminal, stdout=self.terminal,
                                        stderr=self.terminal, env={**os.environ, "TERM": "xterm"}, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.unread = b""

    def press(self, keys):
        os.write(self.controller, keys.encode())

    def frame(self):
        """The lines of the next whole frame."""
        while END_OF_FRAME not in self.unread:
            self.unread += os.read(self.controller, 4096)
        frame, self.unread = self.unread.split(END_OF_FRAME, 1)
        return text_of(frame.split(b"\x1b[H")[-1]).replace("\r", "").split("\n")

    def until(self, seen, what):
        """The first frame that is as said."""
        for _ in range(MOST_FRAMES):
            frame = self.frame()
            if seen(frame):
                return frame
        raise SystemExit("not seen in %d frames: %s; the last is %r" % (MOST_FRAMES, what, frame))

    def rest(self, status):
        """What it has shown since the last frame when it has ended; the terminal is as it was."""
        equal(self.process.wait(TIMEOUT_S), status, "the status")
        equal(termios.tcgetattr(self.terminal), self.before, "the terminal's settings")
        os.close(self.terminal)
        while True:
            try:
                more = os.read(self.controller, 4096)
            except OSError:  # it is read to its end
                break
            self.unread += more
        os.close(self.controller)
        return self.unread

    def finish(self):
        """What stands on the ordinary screen when it has ended."""
        rest = self.rest(0)
        check(MAIN_SCREEN in rest, "the ordinary screen is back: %r" % rest[-200:])
        return text_of(rest.split(MAIN_SCREEN)[-1])


def function_of(line):
    return line.split()[-1]


def has_first(function):
    return lambda frame: len(frame) > HEAD_LINES and function_of(frame[HEAD_LINES]) == function


def has_choice(text):
    return lambda frame: text in frame[1]


def used_s(process):
    """CPU time of a process that runs."""
    fields = pathlib.Path("/proc/%d/stat" % process.pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_table(strobe, busy):
    """The known function is on top; keys choose what is shown; q ends it and leaves the last table."""
    view = OnTerminal(strobe, "-p", busy.pid)
    frame = view.until(has_first("Burn"), "what works most")
    check(re.match(r"live_program %d  0:\d\d:\d\d  \d+ samples  CPU [\d.]+ %%" % busy.pid, frame[0]), "the head: %r" % frame[0])
    self_percent, total_percent = map(float, frame[HEAD_LINES].split()[:2])
    check(0 < self_percent <= total_percent <= 100, "its shares: %r" % frame[HEAD_LINES])
    view.press("s")
    view.until(lambda frame: has_choice("by total")(frame) and len(frame) > HEAD_LINES and function_of(frame[HEAD_LINES]) != "Burn",
               "its callers, by the total")
    view.press("s")
    view.until(has_choice("by self"), "the order by self again")
    view.press("t")
    view.until(lambda frame: has_choice("since the begin")(frame) and any(line.endswith("  Simmer") for line in frame[HEAD_LINES:]),
               "what works less, since the begin")
    view.press("/Sim+er\r")
    frame = view.until(has_choice("/Sim+er/"), "the filter")
    equal([function_of(line) for line in frame[HEAD_LINES:]], ["Simmer"], "what the filter leaves")
    view.press("\x1b")
    view.until(lambda frame: not has_choice("/Sim+er/")(frame) and has_first("Burn")(frame), "all again")
    view.press("h")
    view.until(lambda frame: any("Ctrl-C" in line for line in frame), "the keys")
    view.press("h")
    view.until(has_first("Burn"), "the table again")
    view.press("q")
    last = view.finish().splitlines()
    check(last[0].startswith("live_program") and any(line.endswith("  Burn") for line in last), "the last table stays: %r" % last)


def check_pause(strobe, busy):
    """A pause shows what was there when it began, however it is sorted."""
    view = OnTerminal(strobe, "-p", busy.pid)
    view.until(has_first("Burn"), "a table")
    view.press("p")
    paused = view.until(has_choice("paused"), "the pause")
    until_s = used_s(busy) + 1.5
    wait_until(lambda: used_s(busy) >= until_s, "the program works on")
    view.press("s")
    frame = view.until(has_choice("by total"), "the order in a pause")
    equal(frame[0], paused[0], "the head in a pause")
    # Another order puts other rows on the screen, where not all have room.
    now, before = ({line.split(None, 2)[2]: line for line in lines[HEAD_LINES:] if len(line.split(None, 2)) == 3} for lines in (frame, paused))
    shared = now.keys() & before.keys()
    check("Burn" in shared, "the busy function in a pause: %r" % sorted(shared))
    equal([now[name] for name in sorted(shared)], [before[name] for name in sorted(shared)], "the rows in a pause")
    view.press("s ")
    view.until(lambda frame: not has_choice("paused")(frame) and frame[0] != paused[0], "it goes on")
    view.press("q")
    view.finish()


def check_sizes(strobe, busy):
    """A frame fits the terminal, also when that changes."""
    view = OnTerminal(strobe, "-p", busy.pid)
    view.until(has_first("Burn"), "a table")
    resize(view.terminal, 5, 24)
    frame = view.until(lambda frame: frame[0].endswith("\u2026"), "a narrow frame")
    check(len(frame) <= 5 and all(len(line) <= 24 for line in frame), "a small frame: %r" % frame)
    view.press("q")
    view.finish()


def check_ends(strobe, program, busy):
    """However it ends, the terminal is as it was, and the status is 0."""
    for end in ("\x03", signal.SIGTERM, signal.SIGHUP):
        view = OnTerminal(strobe, "-p", busy.pid)
        view.until(has_first("Burn"), "a table")
        if isinstance(end, str):
            view.press(end)
        else:
            view.process.send_signal(end)
        check("Burn" in view.finish(), "the last table after %r" % end)
    short = subprocess.Popen([program])
    view = OnTerminal(strobe, "-p", short.pid)
    view.until(has_first("Burn"), "a table")
    short.kill()
    short.wait()
    check("strobe: process live_program %d has ended" % short.pid in view.finish(), "the end of the process")


def check_stop(strobe, busy):
    """Ctrl-Z gives the terminal back until it goes on."""
    view = OnTerminal(strobe, "-p", busy.pid)
    view.until(has_first("Burn"), "a table")
    raw = termios.tcgetattr(view.terminal)
    view.press("\x1a")
    _, status = os.waitpid(view.process.pid, os.WUNTRACED)
    check(os.WIFSTOPPED(status), "it stops")
    equal(termios.tcgetattr(view.terminal), view.before, "the terminal's settings while it is stopped")
    view.process.send_signal(signal.SIGCONT)
    view.until(lambda frame: termios.tcgetattr(view.terminal) == raw and has_first("Burn")(frame), "it goes on")
    view.press("q")
    view.finish()


def run(strobe, *arguments, status=0):
    """Its output through a pipe, and what it says."""
    result = subprocess.run([strobe, "top", *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
    equal(result.returncode, status, "top %s: %r" % (" ".join(map(str, arguments)), result.stderr))
    return result.stdout.decode(), result.stderr.decode()


def check_pipe(strobe, busy):
    """Through a pipe there is a table, or a line of JSON, for each period; together they have all samples."""
    output, _ = run(strobe, "-p", busy.pid, "--every", 0.25, "--duration", 1.5, "-n", 2)
    check("\x1b" not in output, "no escape sequences")
    tables = output.strip().split("\n\n")
    check(len(tables) > 1 and all(table.startswith("live_program") and len(table.splitlines()) <= 4 for table in tables),
          "a table a period: %r" % output)
    check("  Burn\n" in output + "\n", "the function: %r" % output)
    output, _ = run(strobe, "-p", busy.pid, "--every", 0.25, "--duration", 1.5, "-n", 0, "--json")
    periods = [json.loads(line) for line in output.splitlines()]
    check(len(periods) > 1 and all(period["period_s"] > 0 for period in periods), "a line a period: %d" % len(periods))
    for period in periods:
        equal(period["whole"], sum(row["self"] for row in period["functions"]), "the sum of a period")
    check(any(period["functions"] and period["functions"][0]["function"] == "Burn" for period in periods), "the function, as JSON")
    elapsed = [period["seconds"] for period in periods]
    check(elapsed == sorted(set(elapsed)), "the time since the begin: %r" % elapsed)


def check_machine(strobe, busy):
    """-a names the process of each row."""
    first = subprocess.run([strobe, "top", "-a", "--duration", "0.1"], capture_output=True)
    if b"refused" in first.stderr:
        print("skipped: the whole machine (%s)" % first.stderr.decode(errors="replace").strip())
        return
    view = OnTerminal(strobe, "-a")
    view.until(lambda frame: "process" in frame[2] and any(line.split()[-2:] == ["live_program", "Burn"] for line in frame[HEAD_LINES:]),
               "the function with its process")
    view.press("q")
    view.finish()


def check_refusals(strobe, busy):
    """Errors are those of `strobe record`, and come before the terminal is taken."""
    said = run(strobe, "-p", 0x3FFFFFFF, status=1)[1]
    equal(said, subprocess.run([strobe, "record", "-p", str(0x3FFFFFFF)], capture_output=True).stderr.decode(), "no such process")
    for arguments, part in ((("--focus", "("), b"regular expression"), (("--type", "wall"), b"has no type wall")):
        shown = OnTerminal(strobe, "-p", busy.pid, *arguments).rest(1)
        check(part in shown and b"\x1b" not in shown, "top %r: %r" % (arguments, shown))
    for arguments, part in (((), "expected profiles, processes by -p"), (("-a", "x.pb"), "leave out one of them"),
                            (("-p", busy.pid, "-a"), "name one of them"), (("-a", "--from", 1), "--from is of profiles"),
                            (("--every", 1, "x.pb"), "--every is of what runs"), (("-a", "--no-children"), "see -p")):
        check(part in run(strobe, *arguments, status=2)[1], "top %r" % (arguments,))


def main():
    strobe, program = map(os.path.abspath, sys.argv[1:3])
    busy = subprocess.Popen([program])
    try:
        first = subprocess.run([strobe, "top", "-p", str(busy.pid), "--duration", "0.1"], capture_output=True)
        if b"refused" in first.stderr or b"only" in first.stderr:
            print("skipped: " + first.stderr.decode(errors="replace").strip())
            return SKIPPED
        for part in (check_table, check_pause, check_sizes, check_stop, check_pipe, check_machine, check_refusals):
            part(strobe, busy)
        check_ends(strobe, program, busy)
    finally:
        busy.kill()
        busy.wait()
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
