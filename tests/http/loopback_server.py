#!/usr/bin/env python3
"""A server that behaves as no real one should, on the loopback interface.

  loopback_server.py COMMAND...   runs COMMAND with the server's addresses in its environment, and exits with its status

The first part of a request's path says what the server does; see BEHAVIOURS. STROBE_TEST_SERVER has
its URL, STROBE_TEST_SERVER_TLS, _OTHER, _UNKNOWN and _EXPIRED those with certificates of the kinds in
certificates/, STROBE_TEST_SERVER_SOCKET the path of its unix socket.
"""
import collections
import http.client
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

CERTIFICATES = pathlib.Path(__file__).resolve().parent / "certificates"
MAX_SECONDS = 100  # of any one connection
counts = collections.Counter()  # of whole requests, by path


class Request:
    def __init__(self, connection, slowly=False):
        """Reads the head, and the body that Content-Length announces; `slowly` in small pieces."""
        self.head = b""
        while b"\r\n\r\n" not in self.head:
            more = connection.recv(65536)
            if not more:
                raise ConnectionError("the client has closed the connection")
            self.head += more
        self.head, _, self.body = self.head.partition(b"\r\n\r\n")
        lines = self.head.decode("latin-1").split("\r\n")
        self.target = lines[0].split(" ")[1]
        self.path = self.target.split("?")[0]
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.connection = connection
        if self.path.startswith("/early"):
            return
        length = int(self.headers.get("content-length", 0))
        while len(self.body) < length:
            more = connection.recv(4096 if slowly else 1 << 20)
            if not more:
                raise ConnectionError("the body is cut")
            self.body += more
            if slowly:
                time.sleep(0.002)

    def send(self, data):
        self.connection.sendall(data)

    def answer(self, status, body=b"", *headers):
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '-')}", "Content-Type: application/json",
                 f"Content-Length: {len(body)}", *headers]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def echo(request):
    """Tells what arrived."""
    body = f"{request.target}\n{len(request.body)}\n".encode() + request.head + b"\n" + request.body
    request.answer(200, body[:60000])


def hang(request):
    """Counts the request, and answers nothing."""
    counts["/count" + request.path] += 1
    time.sleep(MAX_SECONDS)


def trickle(request):
    request.send(b"HTTP/1.1 200 OK\r\n")
    for _ in range(MAX_SECONDS * 10):
        time.sleep(0.1)
        request.send(b"X: y\r\n")


def reset(request):
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_closed(request):
    """Ends its own direction without an answer, and goes on reading."""
    request.connection.shutdown(socket.SHUT_WR)
    while request.connection.recv(65536):
        pass


def endless(request):
    request.send(b"HTTP/1.1 200 OK\r\n\r\n")
    end = time.monotonic() + MAX_SECONDS
    while time.monotonic() < end:
        request.send(b"x" * 65536)


def long_winded(request, begin, line, end):
    """Sends `line` again and again, more often than a client should take it, and then an end."""
    request.send(begin)
    for _ in range(32 << 4):
        request.send(line * ((1 << 16) // len(line)))
    request.send(end)


def trailers(request):
    long_winded(request, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n", b"\r\n")


def interim_answers(request):
    long_winded(request, b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def status(request):
    """/status/503/7: that status, with Retry-After if it is there."""
    parts = request.path.split("/")
    request.answer(int(parts[2]), b"the reason", *([f"Retry-After: {parts[3]}"] if len(parts) > 3 else []))


def continued(request):
    request.send(b"HTTP/1.1 100 Continue\r\nRetry-After: 99\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
    request.answer(200, b"at last")


def redirect(request):
    request.answer(307, b"", f"Location: /count{request.path}")


def count(request):
    """Answers how many requests have arrived there."""
    counts[request.path] += 1
    request.answer(200, str(counts[request.path]).encode())


def counted(request):
    request.answer(200, str(counts[request.path.replace("/counted", "/count", 1)]).encode())


BEHAVIOURS = {
    "echo": echo, "hang": hang, "trickle": trickle, "reset": reset, "half_closed": half_closed, "endless": endless, "status": status,
    "trailers": trailers, "interim_answers": interim_answers, "continued": continued, "redirect": redirect, "count": count, "counted": counted, "slow_read": echo,
    "garbage": lambda request: request.send(b"\x00\xff not HTTP\r\n" * 100),
    "empty": lambda request: None,
    "half_head": lambda request: request.send(b"HTTP/1.1 200 OK\r\nContent-"),
    "half_body": lambda request: request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
    "long_head": lambda request: request.send(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 400000 + b"\r\n\r\n"),
    "wrong_length": lambda request: request.send(b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\nbody"),
    "early_413": lambda request: request.answer(413, b"too large", "Connection: close"),
    "wrong_status": lambda request: request.send(b"HTTP/1.1 two hundred\r\n\r\n"),
}


def serve_connection(connection):
    connection.settimeout(MAX_SECONDS)
    try:
        # What the path is, is known only once it has been read.
        peeked = b"" if isinstance(connection, ssl.SSLSocket) else connection.recv(64, socket.MSG_PEEK)
        request = Request(connection, slowly=b"/slow_read" in peeked)
        BEHAVIOURS.get(request.path.split("/")[1], lambda request: request.answer(404, b"no such behaviour"))(request)
    except (OSError, ValueError, IndexError):
        pass
    finally:
        connection.close()


def serve(listener, context=None):
    while True:
        connection, _ = listener.accept()

        def run(connection=connection):
            if context is not None:
                try:
                    connection.settimeout(MAX_SECONDS)
                    connection = context.wrap_socket(connection, server_side=True)
                except OSError:
                    connection.close()
                    return
            serve_connection(connection)

        threading.Thread(target=run, daemon=True).start()


def listen(certificate=None):
    """Starts a server, and returns its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / f"{certificate}.pem")
    threading.Thread(target=serve, args=(listener, context), daemon=True).start()
    return f"{'https' if context else 'http'}://127.0.0.1:{listener.getsockname()[1]}"


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = str(pathlib.Path(directory, "socket"))
        unix_listener = socket.socket(socket.AF_UNIX)
        unix_listener.bind(path)
        unix_listener.listen()
        threading.Thread(target=serve, args=(unix_listener,), daemon=True).start()
        environment = os.environ | {"STROBE_TEST_SERVER": listen(), "STROBE_TEST_SERVER_SOCKET": path,
                                    "STROBE_TEST_CA": str(CERTIFICATES / "ca.pem")}
        for name, certificate in {"TLS": "localhost", "OTHER": "other", "UNKNOWN": "unknown", "EXPIRED": "expired"}.items():
            environment[f"STROBE_TEST_SERVER_{name}"] = listen(certificate)
        return subprocess.run(sys.argv[1:], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
