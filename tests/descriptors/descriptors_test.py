#!/usr/bin/env python3
"""Programs whose numbers of files are their own: nothing of Strobe reads, writes or closes what they have.

  descriptors_test.py BARE LINKED LOWEST STROBE [--acts N]

BARE and LINKED are programs that close, replace and open files at random (programs_files.h); LOWEST relies on the lowest free number
(lowest_numbers.cc); STROBE is the command. With --acts 100000 by hand; the default is for the suite.
"""
import argparse
import http.server
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, failures  # noqa: E402

TIMEOUT_S = 1000

SHELL = """
for round in $(seq 10); do
  exec 3>>three 4>>four 5>>five 6>>six 7>>seven 8>>eight 9>>nine
  for number in 3 4 5 6 7 8 9; do eval "echo line $round >&$number"; done
  (echo child $round >&5; exec 6>&-; echo child $round >&7)
  exec 3>&- 5>&-
  ls / > /dev/null
done
wc -l three four five six seven eight nine
"""


class Posts(http.server.BaseHTTPRequestHandler):
    count = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Posts.count += 1
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Scraper(threading.Thread):
    """Asks a program's pull server again and again, as long as it is there or will be."""

    def __init__(self):
        super().__init__(daemon=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.is_ending, self.answers = threading.Event(), 0

    def run(self):
        while not self.is_ending.wait(0.001):
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S) as connection:
                    connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
                    self.answers += connection.recv(15).startswith(b"HTTP/1.1 200")
            except OSError:
                pass  # the program has closed one of them


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=4)
    parser.add_argument("--acts", type=int, default=4000)
    arguments = parser.parse_args()
    bare, linked, lowest, strobe = map(os.path.abspath, arguments.programs)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Posts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/in" % server.server_address[1]
    with tempfile.TemporaryDirectory() as directory:
        def run(name, *command, **variables):
            """The program's output, but for what Strobe says; checks that nothing of the program's was touched."""
            place = os.path.join(directory, name.replace(" ", "_").replace("/", "_"))
            os.mkdir(place)
            environment = {**os.environ, "STROBE_CPU_FREQUENCY_HZ": "1000", "STROBE_OUTPUT_DIRECTORY": place + "/profiles", **variables}
            done = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
            output = done.stdout.decode()
            check(done.returncode == 0, "%s: status %d: %s%s" % (name, done.returncode, output[-2000:], done.stderr.decode()[-2000:]))
            print("%s: %s" % (name, " ".join(output.split("\n")[-3:]).strip()))
            return output, place

        for seed, (name, variables) in enumerate({
                "library": {}, "library wall": {"STROBE_WALL_FREQUENCY_HZ": "100"}, "library perf": {"STROBE_TRIGGER": "perf"},
                "worker": {"STROBE_WORKER": "1"}}.items(), 1):
            scraper = Scraper()
            scraper.start()
            output, place = run(name, linked, str(arguments.acts), str(seed), STROBE_PULL_PORT=str(scraper.port), **variables)
            scraper.is_ending.set()
            scraper.join()
            print("%s: %d answers of its pull server" % (name, scraper.answers))
            check("harm: 0" in output, name + ": " + output)
            # What a session says of its end depends on what was closed: the worker may be gone. In process there is a profile.
            if name != "worker":
                check("stop: \n" in output and os.listdir(place + "/profiles"), "%s: a profile: %s" % (name, output))
        for seed, options in enumerate([[], ["--worker"], ["--wall", "10"], ["--alloc"], ["--http", url]], 11):
            name = "record " + " ".join(options[:1])
            output, place = run(name, strobe, "record", "--no-top", *options, "--", bare, str(arguments.acts), str(seed))
            check("harm: 0" in output, name + ": " + output)
            if "--http" in options:
                check(Posts.count >= 1, "a profile at the server")
            else:
                check("--worker" in options or any(".pb.gz" in file for file in os.listdir(place)), "%s: a profile" % name)
        whole, _ = run("shell", "sh", "-c", SHELL)
        for options in [], ["--worker"], ["--wall", "10"], ["--alloc"]:
            # Not by events of perf, and no child with a worker: their numbers are the program's (src/platform/linux/README.md).
            name = "lowest numbers under record " + " ".join(options)
            output, _ = run(name, strobe, "record", "--no-top", *options, "--", lowest, "0.3", STROBE_TRIGGER="random")
            check("others: 0\n" in output and ("of the child: 0\n" in output or "--worker" in options), name + ": " + output)
            name = "shell under record " + " ".join(options)
            check(run(name, strobe, "record", "--no-top", "-o", "out.pb.gz", *options, "--", "sh", "-c", SHELL)[0] == whole, name)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
