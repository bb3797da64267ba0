"""What a worker may meet in place of a program: packets that are no hello, peers that say nothing, and those of another user."""
import collections
import ctypes
import os
import pathlib
import re
import socket
import struct
import time

HEAD = struct.Struct("<8sIIIIQ")
MAGIC = b"STROBWKR"
HANDSHAKE = pathlib.Path(__file__).parents[2] / "include/strobe/worker/shared/handshake.h"
VERSION = int(re.search(r"kVersion = (\d+);", HANDSHAKE.read_text())[1])
HELLO, WELCOME, FLUSH, OFFER = 1, 2, 3, 16
DEADLINE_EXCEEDED = 4  # as in absl::StatusCode
OTHER_USER_ID = 65534  # by custom an account without rights
TIMEOUT_S = 100
HELLO_TIMEOUT_S = 10  # as kHelloTimeoutNs


def head(version=VERSION, kind=HELLO, text=b"", magic=MAGIC, length=None):
    return HEAD.pack(magic, version, kind, 0, len(text) if length is None else length, 0) + text


def packets():
    """By name: a packet that no program sends, and the reason for which a listener counts it."""
    return {"another version": (head(version=99), "other version"), "another magic": (head(magic=b"GARBLED!"), "other version"),
            "another kind": (head(kind=FLUSH), "malformed"), "a short head": (head()[:10], "malformed"),
            "a wrong length": (head(text=b"abc", length=7), "malformed"), "a long text": (head(text=b"x" * 65536), "wrong memory"),
            "a longer text": (head(text=b"x" * 65537), "malformed"), "no memory": (head(), "wrong memory")}


def receive(peer):
    """A packet; b"" at the end."""
    try:
        return peer.recv(70000)
    except ConnectionResetError:  # the worker has left something unread; the system says so before it gives what was sent
        return peer.recv(70000)


def refusal_of(peer):
    """The code and the text of the worker's answer; None if there is none. The peer then is at its end."""
    answer = None
    try:
        while packet := receive(peer):
            kind, code = HEAD.unpack_from(packet)[2:4]
            answer = (code, packet[HEAD.size:]) if kind == WELCOME else answer
    except ConnectionError:
        pass
    return answer


def connect(path):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect(path)  # waits where the backlog is full
    peer.settimeout(TIMEOUT_S)
    return peer


def connect_many(path, count, at_a_time, chance, steps):
    """`count` peers, some at a time, each of which is refused or leaves: how often each reason was to be counted, and of how many peers that may
    have been too slow instead, because this machine was.

    Before peer N, calls steps[N], if there is one.
    """
    reasons, opened, late = collections.Counter(), collections.deque(), 0
    wrong = list(packets().values()) + [(None, "left without hello")]

    def finish(peer, is_silent, begin_s):
        nonlocal late
        refusal = None if is_silent else refusal_of(peer)
        peer.close()
        late += time.monotonic() - begin_s >= HELLO_TIMEOUT_S
        return is_silent or refusal is None or refusal[0] != 0

    refused = 0
    for number in range(count):
        steps.get(number, lambda: None)()
        if len(opened) == at_a_time:
            refused += finish(*opened.popleft())
        packet, reason = chance.choice(wrong)
        begin_s = time.monotonic()
        peer = connect(path)
        if packet is not None:
            peer.send(packet)
        reasons[reason] += 1
        opened.append((peer, packet is None, begin_s))
    refused += sum(finish(*peer) for peer in opened)
    assert refused == count, "%d of %d peers refused" % (refused, count)
    return reasons, late


def are_as_expected(reasons, expected, late):
    """Whether the reasons are those expected, but for as many peers that were too slow."""
    slow = reasons.get("too slow", 0) - expected["too slow"]
    others = {*reasons, *expected} - {"too slow"}
    return 0 <= slow <= late and sum(reasons.values()) == sum(expected.values()) and all(
        0 <= expected[name] - reasons.get(name, 0) <= slow for name in others)


def connect_slow(path, count):
    return [connect(path) for _ in range(count)]


def await_refusals(peers):
    """How many of the silent peers are told that they were too slow, and the seconds until the last one was."""
    begin_s = time.monotonic()
    refused = 0
    for peer in peers:
        refusal = refusal_of(peer)
        refused += refusal is not None and refusal[0] == DEADLINE_EXCEEDED
        peer.close()
    return refused, time.monotonic() - begin_s


def other_user_is_refused(path):
    """Of a process of another user that reaches the socket: only root can be one, by a file system's user of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.seteuid(OTHER_USER_ID)
            ctypes.CDLL(None).setfsuid(0)
            refusal = refusal_of(connect(path))
            status = 0 if refusal is not None and b"belongs to the user %d" % OTHER_USER_ID in refusal[1] else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0
