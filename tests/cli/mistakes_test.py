#!/usr/bin/env python3
"""Makes the mistakes of people who use the command strobe for the first time, and reads the sentence that says what to do.

  mistakes_test.py WRITE_SAMPLES VERSION STROBE...

STROBE is the command, after what runs it where the system does not.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, equal, failures  # noqa: E402

TIMEOUT_S = 60


class Strobe:
    def __init__(self, command, directory):
        self.command, self.directory = command, directory

    def run(self, *arguments, **options):
        return subprocess.run([*self.command, *arguments], stderr=subprocess.PIPE, cwd=self.directory, timeout=TIMEOUT_S, **options)

    def refusal(self, *arguments, status):
        """The one line that says why."""
        result = self.run(*arguments, stdout=subprocess.PIPE)
        equal((result.returncode, result.stdout), (status, b""), "status of strobe " + " ".join(arguments))
        lines = result.stderr.decode().splitlines()
        equal(len(lines), 1, "lines of error: %r" % lines)
        return lines[0]


def words(strobe, version):
    equal(strobe.run("--version", stdout=subprocess.PIPE).stdout.decode().strip(), "strobe " + version, "the version")
    equal(strobe.refusal("tpo", status=2), "strobe: tpo is no command; did you mean strobe top?", "a misspelled command")
    equal(strobe.refusal("xyzzy", status=2), "strobe: xyzzy is no command; strobe --help lists them", "a word of nothing")
    equal(strobe.refusal("detailed.pb.gz", status=2), "strobe: detailed.pb.gz is no command; did you mean strobe top detailed.pb.gz?", "a profile")
    (strobe.directory / "script").write_text("#!/bin/sh\n")
    equal(strobe.refusal("script_", status=2), "strobe: script_ is no command; did you mean strobe script?", "a misspelled command beside a file")
    os.mkdir(strobe.directory / "folder")
    (strobe.directory / "folder" / "run").write_text("#!/bin/sh\n")
    equal(strobe.refusal("folder/run", status=2), "strobe: folder/run is no command; did you mean strobe record folder/run?", "a program")
    (strobe.directory / "run").write_text("#!/bin/sh\n")
    equal(strobe.refusal("run", status=2), "strobe: run is no command; did you mean strobe record ./run?", "a program here")


def lines(strobe):
    """Of a program without -g there are no lines, and strobe symbolize finds none."""
    (strobe.directory / "no_lines.folded").write_text("main;Work 7\n")
    text = strobe.run("list", "Work", "no_lines.folded", stdout=subprocess.PIPE).stdout.decode()
    check("build with -g" in text, "what list says of a function without lines: " + text)


def terminals(strobe):
    """Bytes are not written to a terminal, of whatever kind."""
    if os.name != "posix":
        return
    import pty
    for arguments in (["convert", "-o", "-", "detailed.pb.gz"], ["merge", "detailed.pb.gz"], ["convert", "--format", "firefox", "detailed.pb.gz"]):
        controller, terminal = pty.openpty()  # a terminal without a width
        result = strobe.run(*arguments, stdout=terminal)
        equal(result.returncode, 1, "status of " + " ".join(arguments))
        equal(result.stderr.decode().splitlines(), ["strobe: this is no text for a terminal: name a file by -o FILE, or send it through a pipe"], "what is said")
        os.set_blocking(controller, False)
        os.close(terminal)
        try:
            check(os.read(controller, 100) == b"", "nothing is written to the terminal")
        except OSError:  # nothing is there, and the other end is closed
            pass
        os.close(controller)
    piped = strobe.run("convert", "-o", "-", "detailed.pb.gz", stdout=subprocess.PIPE)
    equal((piped.returncode, piped.stdout[:2]), (0, b"\x1f\x8b"), "a pipe takes bytes")
    check(not (strobe.directory / "-").exists(), "no file of that name")


def main():
    write_samples, version, *command = sys.argv[1:]
    command[-1] = os.path.abspath(command[-1])  # it runs in a directory of its own
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        subprocess.run([*command[:-1], write_samples, str(directory)], check=True, timeout=TIMEOUT_S)
        strobe = Strobe(command, directory)
        words(strobe, version)
        lines(strobe)
        terminals(strobe)
    print("%d failures" % len(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
