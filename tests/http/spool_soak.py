#!/usr/bin/env python3
"""Kills senders at random instants while their server fails at random, and checks that nothing is lost, damaged or sent twice.

  spool_soak.py SEND [--senders N] [--kills N] [--seconds N] [--seed N]

SEND is the program spool_send. Each sender is killed (kill -9) and started again until there were N kills and N seconds have
passed. Then the server is well, and more runs of each sender send what waits. What a killed process was writing may be lost, and what
it was sending may arrive twice: at most one profile a kill. Prints the counts; exit status 1 if one is too high.
"""
import argparse
import collections
import http.server
import os
import random
import re
import socketserver
import subprocess
import sys
import tempfile
import threading
import time


MAX_LAST_RUNS = 100


class State:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.moods = collections.defaultdict(lambda: "ok")  # by sender
        self.is_well = False
        self.arrived = collections.Counter()  # (sender, number) that were answered by 200, or may have been
        self.damaged = 0

    def mood(self, sender):
        with self.lock:
            if self.is_well:
                return "ok"
            if self.random.random() < 0.1:
                self.moods[sender] = self.random.choice(["ok", "ok", "ok", "503", "429", "reset", "hang", "cut"])
            return self.moods[sender]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        state = self.server.state
        try:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        except (OSError, ValueError):
            return
        match = re.fullmatch(r"(\S+) (\d+) (x*) (\d+)", body)
        if len(body) < int(self.headers["Content-Length"]):
            return  # the sender was killed
        if not match or match[2] != match[4] or len(match[3]) != int(match[2]) * 7919 % 20000:
            state.damaged += 1
            return self.reply(400)
        mood = state.mood(match[1])
        if mood == "reset":
            self.close_connection = True
            return
        if mood == "hang":
            time.sleep(1.2)
            return
        if mood in ("503", "429"):
            return self.reply(int(mood))
        with state.lock:
            state.arrived[match[1], int(match[2])] += 1
        if mood == "cut":
            # It has taken the profile, but the sender will not know: the one duplicate that cannot be avoided.
            with state.lock:
                state.arrived[match[1], int(match[2])] -= 1
            return
        self.reply(200)

    def reply(self, status):
        try:
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()
        except OSError:
            pass

    def log_message(self, *arguments):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class Sender:
    """One program's history over all its processes."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment
        self.next = 0
        self.promised = set()  # their export has returned
        self.open = set()      # begun when the process was killed
        self.errors = 0

    def run(self, count, kill_after):
        process = subprocess.Popen([self.command, self.name, str(self.next), str(count)], env=self.environment, stdout=subprocess.PIPE,
                                   text=True)
        timer = threading.Timer(kill_after, process.kill) if kill_after is not None else None
        if timer:
            timer.start()
        begun = None
        for line in process.stdout:
            word, _, number = line.strip().partition(" ")
            if not line.endswith("\n"):
                break
            if word == "begin":
                begun = int(number)
                self.next = begun + 1
            elif word in ("end", "error"):
                self.errors += word == "error"
                self.promised.add(begun)
                begun = None
        process.wait()
        if timer:
            timer.cancel()
        if begun is not None:
            self.open.add(begun)
        return process.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("send")
    for name, default in (("senders", 2), ("kills", 20), ("seconds", 0), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    state = State(options.seed)
    server = Server(("127.0.0.1", 0), Handler)
    server.state = state
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"STROBE_POST_URL": f"http://127.0.0.1:{server.server_address[1]}/in",
                                    "STROBE_SPOOL_DIRECTORY": directory, "STROBE_HTTP_ATTEMPTS": "1"}
        senders = [Sender(f"sender{i}", options.send, environment) for i in range(options.senders)]
        kills = [0]
        end = time.monotonic() + options.seconds

        def live(sender):
            while True:
                with state.lock:
                    if kills[0] >= options.kills and time.monotonic() >= end:
                        return
                    kills[0] += 1
                    delay = state.random.uniform(0.02, 0.5)
                sender.run(1_000_000, delay)

        threads = [threading.Thread(target=live, args=(sender,)) for sender in senders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        state.is_well = True
        # Each run sends what it can in the time of its exports.
        for _ in range(MAX_LAST_RUNS):
            left = [name for _, _, names in os.walk(directory) for name in names]
            if not left:
                break
            for sender in senders:
                if sender.run(5, None) != 0:
                    print("FAIL the last run of a sender")
                    sys.exit(1)
        left = [name for _, _, names in os.walk(directory) for name in names]
    lost = sum(state.arrived[sender.name, number] == 0 for sender in senders for number in sender.promised)
    lost_open = sum(state.arrived[sender.name, number] == 0 for sender in senders for number in sender.open)
    twice = sum(max(count - 1, 0) for count in state.arrived.values())
    sent = sum(1 for count in state.arrived.values() if count)
    errors = sum(sender.errors for sender in senders)
    print(f"{kills[0]} kills, {sent} profiles arrived, {state.damaged} damaged, {twice} twice, {lost} lost, {lost_open} lost while "
          f"being written, {errors} exports failed, {len(left)} files left")
    is_well = (state.damaged == 0 and lost == 0 and errors == 0 and not left and twice <= kills[0] and lost_open <= kills[0]
               and sent > kills[0])
    print("PASS" if is_well else "FAIL")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
