#!/usr/bin/env python3
"""A pull server beside clients of twelve kinds that mean it no good.

  hostile_clients.py PROGRAM [--connections N] [--seconds S] [--most-stop-ms MS]

PROGRAM is tests/http/pull_program. Meanwhile who has the token is answered, the program's memory grows by less than the clients send, and the
server ends beside them. By hand, for the figures of a release: --connections 10000 --seconds 30 --most-stop-ms 1500.
"""
import argparse
import os
import pathlib
import resource
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, equal, failures  # noqa: E402

TOKEN = "s3cret"
PATIENCE_S = 120
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
MINE = GET + b"Authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
FILL = 1 << 16


def forever(begin, then):
    yield begin
    while True:
        yield then


def once(*parts):
    yield from parts
    while True:
        yield b""


def slow_byte():
    while True:
        yield b"G"
        for _ in range(20):
            yield b""


# What each sends, piece by piece; None is a half-close, False a reset.
KINDS = {
    "a byte now and then": slow_byte,
    "a line without end": lambda: forever(b"GET / HTTP/1.1\r\nX: ", b"a" * FILL),
    "headers without end": lambda: forever(b"GET / HTTP/1.1\r\n", b"X: y\r\n" * (FILL // 6)),
    "a chunked body without end": lambda: forever(GET + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"z" * FILL + b"\r\n"),
    "another method": lambda: forever(b"POST / HTTP/1.1\r\n\r\n", b"z" * FILL),
    "nothing": lambda: once(b""),
    "half a connection": lambda: once(GET + b"\r\n", None),
    "many requests at once": lambda: forever(b"", (GET + b"\r\n") * 100),
    "a long body without the token": lambda: forever(GET + b"Content-Length: 1000000000\r\n\r\n", b"z" * FILL),
    "a reset in the middle": lambda: once(GET, False),
    "no HTTP": lambda: once(b"GET http://evil.example/ HTTP/9.9\r\n\r\n\x16\x03\x01\x00"),
    "an answer that nobody takes": lambda: once(MINE),
}


class Client:
    def __init__(self, port, kind):
        self.port, self.kind, self.sent = port, kind, 0
        self.begin()

    def begin(self):
        self.pieces, self.rest = KINDS[self.kind](), b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.connect_ex(("127.0.0.1", self.port))

    def end(self):
        self.socket.close()

    def step(self):
        """Sends a piece, or begins anew where the server has had enough."""
        try:
            if not self.rest:
                piece = next(self.pieces)
                if piece is None:
                    self.socket.shutdown(socket.SHUT_WR)
                elif piece is False:
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    raise ConnectionResetError
                self.rest = piece or b""
            if self.rest:
                count = self.socket.send(self.rest)
                self.rest = self.rest[count:]
                self.sent += count
            elif self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0:
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self.end()
            self.begin()


class Crowd(threading.Thread):
    """All hostile clients."""

    def __init__(self, port, count):
        super().__init__()
        kinds = list(KINDS)
        self.clients = [Client(port, kinds[i % len(kinds)]) for i in range(count)]
        self.is_ending, self.rounds = False, 0

    def run(self):
        while not self.is_ending:
            for client in self.clients:
                client.step()
            self.rounds += 1
            time.sleep(0.01)
        for client in self.clients:
            client.end()

    def sent(self):
        return sum(client.sent for client in self.clients)

    def await_rounds(self, count):
        wanted, end = self.rounds + count, time.monotonic() + PATIENCE_S
        while self.rounds < wanted and time.monotonic() < end:
            time.sleep(0.01)
        check(self.rounds >= wanted, "the clients get on")


class Server:
    def __init__(self, program):
        environment = dict(os.environ, STROBE_PULL_PORT="0", STROBE_PULL_TOKEN=TOKEN)
        self.process = subprocess.Popen([program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def memory_kib(self):
        """The most so far."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])

    def ask(self):
        """The answer to who has the token."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(MINE)
            answer = b""
            while more := connection.recv(1 << 16):
                answer += more
            return answer

    def stop_ms(self):
        return int(self.process.communicate(timeout=PATIENCE_S)[0])


def beside_all(program, options):
    server = Server(program)
    for _ in range(4):
        server.ask()
    before = server.memory_kib()
    crowd = Crowd(server.port, options.connections)
    crowd.start()
    answered, end = 0, time.monotonic() + options.seconds
    try:
        crowd.await_rounds(20)
        while True:
            try:
                answered += server.ask().startswith(b"HTTP/1.1 200 ")
            except OSError:  # one of more than there is room for
                pass
            if time.monotonic() >= end:
                break
            crowd.await_rounds(1)
        growth = server.memory_kib() - before
        stop_ms = server.stop_ms()
    finally:
        crowd.is_ending = True
        crowd.join()
    print(f"{len(crowd.clients)} clients sent {crowd.sent() >> 20} MiB: {answered} answers, + {growth} KiB of memory, stopped in {stop_ms} ms")
    check(answered > 0, "who has the token is answered")
    check(growth <= options.most_growth_kib, f"memory grew by {growth} KiB")
    equal(server.process.returncode, 0, "the program's status")
    if options.most_stop_ms:
        check(stop_ms <= options.most_stop_ms, f"stopped in {stop_ms} ms")


def beside_idle(program):
    """More connections than there is room for, that send nothing more: the oldest make room."""
    server = Server(program)
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    for connection in idle:
        connection.sendall(b"G")
    check(server.ask().startswith(b"HTTP/1.1 200 "), "an answer behind 200 idle connections")
    print(f"stopped in {server.stop_ms()} ms beside them")
    for connection in idle:
        connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--connections", type=int, default=4 * len(KINDS))  # all fit
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--most-stop-ms", type=int, default=0)
    # A sanitizer keeps books of all memory.
    parser.add_argument("--most-growth-kib", type=int, default=4 << 10)
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    beside_all(options.program, options)
    beside_idle(options.program)
    print("%d failures" % len(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
