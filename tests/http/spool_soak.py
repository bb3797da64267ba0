#!/usr/bin/env python3
"""Senders through a spool, whose servers fail at random, against a model of what must be delivered.

  spool_soak.py SEND [--senders N] [--kills N] [--seconds N] [--seed N]

SEND is the program spool_send. Each sender has a simulated server of its own, and is started again and again until there were N kills
(kill -9, at random instants) and N seconds have passed. Then the servers are well, and more runs of each sender send what waits.

The model is what the servers have answered: each profile must be taken once, or refused once and counted so by its sender. Without
kills that is exact: the sums of the senders' accounts equal the servers' answers, and what never arrived is what the first sender alone,
whose spool is small, has counted as dropped. A kill may lose the profile that was being written, and send the one in flight twice. So does a
machine that stands still until a sender's deadline: each such export is counted.
Prints the counts; exit status 1 if one is wrong.
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

MAX_RUNS = 10000
MAX_LAST_RUNS = 100
SEND_SECONDS = 2
SMALL_SPOOL_BYTES = 65536  # the least
KILLED_PAUSE_MS = 2  # between two profiles: so that kills meet much that is being written and sent
PAUSE_MS = 50        # so that servers that fail at times can take all


class State:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.moods = collections.defaultdict(lambda: "take")  # by sender
        self.is_well = False
        self.taken = collections.Counter()  # (sender, number), by answers of 200
        self.refused = collections.Counter()
        self.moods_met = collections.Counter()
        self.damaged = 0
        self.followed = 0  # requests to where a redirect has pointed

    def mood(self, sender):
        with self.lock:
            if not self.is_well and self.random.random() < (0.5 if self.moods[sender] in PAUSING else 0.1):
                self.moods[sender] = self.random.choice(["take"] * 6 + list(FAILURES))
            mood = "take" if self.is_well else self.moods[sender]
            self.moods_met[mood] += 1
            return mood

    def count(self, counter, key):
        with self.lock:
            counter[key] += 1


# ---- what a server does with a request

def answer(handler, status, *headers):
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def hang(handler):
    time.sleep(SEND_SECONDS + 0.5)


def trickle(handler):
    end = time.monotonic() + SEND_SECONDS + 0.5
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while time.monotonic() < end:
        time.sleep(0.1)
        handler.wfile.write(b"X: y\r\n")


def break_off(text):
    return lambda handler: handler.wfile.write(text)


FAILURES = {
    "refuse": lambda handler: answer(handler, 413),
    "busy": lambda handler: answer(handler, 429, ("Retry-After", "1")),
    "unwell": lambda handler: answer(handler, 503),
    "broken": lambda handler: answer(handler, 500),
    "forbid": lambda handler: answer(handler, 403),
    "redirect": lambda handler: answer(handler, 307, ("Location", "/elsewhere")),
    "silence": break_off(b""),
    "garbage": break_off(b"\x00\xff not HTTP\r\n" * 100),
    "half a head": break_off(b"HTTP/1.1 200 OK\r\nContent-"),
    "half a body": break_off(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
    "hang": hang,
    "trickle": trickle,
}
PAUSING = {"forbid", "redirect", "hang", "trickle"}  # the sender pauses long


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        state = self.server.state
        try:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
        except (OSError, ValueError):
            return
        if len(body) < length:
            return  # the sender was killed
        state.followed += self.path != "/in"
        match = re.fullmatch(r"(\S+) (\d+) (x*) (\d+)", body.decode("latin-1"))
        if not match or match[2] != match[4] or len(match[3]) != int(match[2]) * 7919 % 20000:
            state.damaged += 1
            return
        key = match[1], int(match[2])
        mood = state.mood(key[0])
        try:
            if mood == "take":
                state.count(state.taken, key)
                answer(self, 200)
            else:
                if mood == "refuse":
                    state.count(state.refused, key)
                FAILURES[mood](self)
        except OSError:
            pass  # the sender has left

    def log_message(self, *arguments):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class Sender:
    """One program's history over all its processes."""

    def __init__(self, name, command, pause_ms, environment):
        self.name, self.command, self.pause_ms, self.environment = name, command, pause_ms, environment
        self.next = 0
        self.promised = set()  # their export has returned
        self.open = set()      # begun when the process was killed
        self.errors = 0
        self.late = 0          # exports that took until their deadline
        self.account = collections.Counter()  # of the processes that have ended by themselves
        self.unbalanced = 0

    def run(self, count, kill_after):
        process = subprocess.Popen([self.command, self.name, str(self.next), str(count), str(self.pause_ms)], env=self.environment,
                                   stdout=subprocess.PIPE, text=True)
        timer = threading.Timer(kill_after, process.kill) if kill_after is not None else None
        if timer:
            timer.start()
        begun, made, refused = None, 0, 0
        for line in process.stdout:
            word, _, rest = line.strip().partition(" ")
            if not line.endswith("\n"):
                break
            if word == "begin":
                begun = int(rest)
                made += 1
                self.next = begun + 1
            elif word in ("end", "refused", "error"):
                self.errors += word == "error"
                refused += word == "refused"
                self.late += int(rest.split()[1]) >= 1000 * SEND_SECONDS
                self.promised.add(begun)
                begun = None
            elif word == "account":
                self.settle(made, refused, collections.Counter({name: int(value) for name, value in zip(*[iter(rest.split())] * 2)}))
        process.wait()
        if timer:
            timer.cancel()
        if begun is not None:
            self.open.add(begun)
        return process.returncode

    def settle(self, made, refused, account):
        """What the exporter refuses to keep itself, the profiler counts."""
        account["refused"] += refused
        ends = sum(account[name] for name in ("delivered", "refused", "dropped", "waiting"))
        self.unbalanced += made + account["found"] != ends
        self.account.update(account)


def soak(options, state, senders, files_left):
    kills = 0
    end = time.monotonic() + options.seconds

    def live(sender):
        nonlocal kills
        for _ in range(MAX_RUNS):
            with state.lock:
                if kills >= options.kills and time.monotonic() >= end and state.taken.total() > options.kills:
                    return
                is_killed = kills < options.kills
                kills += is_killed
                delay = state.random.uniform(0.02, 0.5)
                count = state.random.randrange(1, 100)
            sender.run(1_000_000, delay) if is_killed else sender.run(count, None)

    def send_rest(sender):
        # Each run sends what it can in the time of its exports.
        for _ in range(MAX_LAST_RUNS):
            if files_left(sender):
                sender.errors += sender.run(5, None) != 0

    for phase in (live, send_rest):
        state.is_well = phase == send_rest
        threads = [threading.Thread(target=phase, args=(sender,)) for sender in senders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("send")
    for name, default in (("senders", 2), ("kills", 20), ("seconds", 0), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    state = State(options.seed)
    with tempfile.TemporaryDirectory() as directory:
        def files_left(sender):
            return sum(name != ".lock" for path, _, names in os.walk(directory) if f".{sender.name}." in path for name in names)

        senders = []
        for i in range(options.senders):
            server = Server(("127.0.0.1", 0), Handler)
            server.state = state
            threading.Thread(target=server.serve_forever, daemon=True).start()
            environment = os.environ | {"STROBE_POST_URL": f"http://127.0.0.1:{server.server_address[1]}/in",
                                        "STROBE_HTTP_TIMEOUT_S": str(SEND_SECONDS), "STROBE_HTTP_ATTEMPTS": "1",
                                        "STROBE_SPOOL_DIRECTORY": directory}
            if i == 0 and options.kills == 0:
                environment["STROBE_SPOOL_BYTES"] = str(SMALL_SPOOL_BYTES)
            senders.append(Sender(f"sender{i}", options.send, KILLED_PAUSE_MS if options.kills else PAUSE_MS, environment))
        soak(options, state, senders, files_left)
        left = sum(map(files_left, senders))
    account = sum((sender.account for sender in senders), collections.Counter())
    settled = state.taken + state.refused
    lost = sum(settled[sender.name, number] == 0 for sender in senders for number in sender.promised)
    lost_open = sum(settled[sender.name, number] == 0 for sender in senders for number in sender.open)
    taken, refused = state.taken.total(), state.refused.total()
    twice = settled.total() - len(settled)
    unbalanced = sum(sender.unbalanced for sender in senders)
    errors = sum(sender.errors for sender in senders)
    # Of those that no server has kept waiting, each may have two requests whose answers it did not see.
    unseen = 2 * max(0, sum(sender.late for sender in senders) - state.moods_met["hang"] - state.moods_met["trickle"])
    print("answers: " + ", ".join(f"{count} {mood}" for mood, count in sorted(state.moods_met.items())))
    print(f"{options.kills} kills, {sum(sender.next for sender in senders)} profiles, {taken} taken, {refused} refused, {lost} not sent, "
          f"{lost_open} lost while being written, {twice} twice, {state.damaged} damaged, {errors} exports failed, {left} files left, "
          f"{unseen} answers not seen at most")
    print(f"accounts: {account['delivered']} delivered, {account['refused']} refused, {account['dropped']} dropped, "
          f"{unbalanced} do not add up")
    is_well = not (state.damaged or state.followed or errors or left or unbalanced) and taken > options.kills
    if options.kills == 0:
        is_well &= all(sender.account["dropped"] == 0 for sender in senders[1:])
        is_well &= twice <= unseen and lost <= account["dropped"] <= lost + unseen
        # An answer that was not seen may be repeated, or be that of a profile that is dropped then.
        is_well &= 0 <= taken - account["delivered"] <= unseen and 0 <= refused - account["refused"] <= unseen
    else:
        is_well &= lost == 0 and twice <= options.kills + unseen and lost_open <= options.kills
    print("PASS" if is_well else "FAIL")
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
