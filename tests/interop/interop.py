#!/usr/bin/env python3
"""Sends profiles to real servers and asks each what arrived: interop.py SEND [--ddapm COMMAND] [--parca BINARY] [--pyroscope BINARY]
[--pull PROGRAM --pprof COMMAND...]

SEND is the program interop_send, PROGRAM interop_pull. For each server: its own program starts on the loopback interface, gets periods, is killed and
started again in the middle, twice, and must in the end have what the files have: samples, by function and thread, in total and not
more. The profiles that it could not take meanwhile wait in a spool. Parca and Pyroscope are not in any package registry: give the
path of a binary. Prints one line a check; exit status 1 if one failed.
"""
import argparse
import base64
import collections
import gzip
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
import pprof_file  # noqa: E402

READY_SECONDS = 60
PERIODS = 9
PERIOD_S = 1.5
failures = 0


def check(name, actual, expected):
    global failures
    if actual == expected:
        print(f"PASS {name}: {expected}", flush=True)
    else:
        failures += 1
        print(f"FAIL {name}: {actual}, expected {expected}", flush=True)


# ---- pprof

def read_pprof(data):
    """Rows of (thread, leaf function), each with the sum of every value type, by name."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    table = collections.defaultdict(list)
    for number, value in pprof_file.fields(data):
        table[number].append(value)
    strings = [text.decode() for text in table[6]]
    types = [strings[dict(pprof_file.fields(value)).get(1, 0)] for value in table[1]]
    functions = {entry.get(1, 0): strings[entry.get(2, 0)] for entry in (dict(pprof_file.fields(value)) for value in table[5])}
    locations = {}
    for value in table[4]:
        identity, lines = 0, []
        for number, field in pprof_file.fields(value):
            if number == 1:
                identity = field
            if number == 4:
                lines.append(functions.get(dict(pprof_file.fields(field)).get(1, 0), ""))
        locations[identity] = lines[0] if lines else ""
    rows = collections.defaultdict(collections.Counter)
    for value in table[2]:
        stack, values, thread = [], [], ""
        for number, field in pprof_file.fields(value):
            if number == 1:
                stack += pprof_file.numbers([field])
            elif number == 2:
                values += pprof_file.numbers([field])
            elif number == 3:
                label = dict(pprof_file.fields(field))
                if strings[label.get(1, 0)] in ("thread name", "thread_name"):
                    thread = strings[label.get(2, 0)]
        leaf = locations.get(stack[0], "") if stack else ""
        for name, amount in zip(types, values):
            rows[(thread, leaf)][name] += amount
    return rows


def add(total, rows):
    for key, values in rows.items():
        for name, amount in values.items():
            total[key][name] += amount


def sums(rows, kind, key=None):
    """The totals of one value type, by thread (0) or function (1)."""
    result = collections.Counter()
    for row, values in rows.items():
        result[row[key] if key is not None else "all"] += values[kind]
    return {name: amount for name, amount in sorted(result.items()) if amount}


# ---- servers

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """A process that can be killed and started again with the same data."""

    def __init__(self, name, command, ready_url, directory):
        self.name, self.command, self.ready_url, self.directory = name, command, ready_url, directory
        self.process = None

    def start(self):
        log = open(self.directory / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(self.command, cwd=self.directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(self.ready_url, timeout=2) as response:
                    if response.status == 200:
                        return
            except OSError:
                time.sleep(0.2)
        raise SystemExit(f"{self.name} does not start; see {self.directory / (self.name + '.log')}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as response:
        return response.read()


def post_json(url, body):
    """Asks again while a part of a server that has just started does not answer."""
    end = time.monotonic() + READY_SECONDS
    while True:
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            if error.code < 500 or time.monotonic() > end:
                raise
            time.sleep(1)


# ---- one backend

class Run:
    """Profiles that one backend is sent, while its server dies twice."""

    def __init__(self, send, backend, server, environment, directory):
        self.directory = directory / backend
        self.command = [send, backend, self.directory / "files"]
        self.environment = os.environ | environment | {
            "STROBE_SPOOL_DIRECTORY": str(self.directory / "spool"), "STROBE_HTTP_TIMEOUT_S": "5"}
        self.server = server
        self.account = collections.Counter()

    def send(self, periods):
        command = [str(part) for part in [*self.command, periods, PERIOD_S]]
        result = subprocess.run(command, env=self.environment, text=True, capture_output=True)
        if result.returncode != 0:
            raise SystemExit(f"{command}: {result.returncode}\n{result.stdout}{result.stderr}")
        account = json.loads(result.stdout)
        print(f"     {self.server.name}: {account} {result.stderr.strip().splitlines()[0]}", flush=True)
        self.account.update(account)

    def run(self):
        self.server.start()
        self.send(2)
        self.server.kill()
        self.send(2)  # into the spool
        self.server.start()
        self.send(2)
        self.server.kill()
        self.send(2)
        self.server.start()
        self.send(1)
        # Profiles that wait are sent when the exporter's pause is over: the next process has none.
        waiting = list((self.directory / "spool").rglob("*.spooled"))
        check(f"{self.server.name}: profiles left on disk", len(waiting), 0)
        account = self.account
        check(f"{self.server.name}: the account adds up", account["delivered"] + account["dropped"] + account["left"],
              account["periods"] + account["found"])
        check(f"{self.server.name}: delivered", account["delivered"], PERIODS)
        expected = collections.defaultdict(collections.Counter)
        for path in sorted((self.directory / "files").glob("*.pb.gz")):
            add(expected, read_pprof(path.read_bytes()))
        return expected


def run_datadog(options, directory):
    port = free_port()
    command = [*options.ddapm.split(), "--port", str(port), "--otlp-http-port", str(free_port()), "--otlp-grpc-port", str(free_port())]
    server = Server("datadog", command, f"http://127.0.0.1:{port}/info", directory)
    # It keeps requests in memory, so what it had is read before it is killed.
    got = collections.defaultdict(collections.Counter)
    seen = []

    def read():
        for request in json.loads(get(f"http://127.0.0.1:{port}/test/session/requests")):
            if not request["url"].endswith("/profiling/v1/input"):
                continue
            body = base64.b64decode(request["body"])
            boundary = re.search("boundary=(.*)", request["headers"]["Content-Type"])[1].encode()
            event, profile = (part.partition(b"\r\n\r\n")[2][:-2] for part in body.split(b"--" + boundary)[1:3])
            event = json.loads(event)
            seen.append(event)
            add(got, read_pprof(profile))

    kill = server.kill

    def read_and_kill():
        read()
        kill()

    server.kill = read_and_kill
    expected = Run(options.send, "datadog", server,
                   {"DD_TRACE_AGENT_URL": f"http://127.0.0.1:{port}", "DD_SERVICE": "interop", "DD_ENV": "test"}, directory).run()
    server.kill()
    check("datadog: events are native, version 4", {(event["family"], event["version"]) for event in seen}, {("native", "4")})
    check("datadog: the service's tag", all("service:interop" in event["tags_profiler"].split(",") for event in seen), True)
    for kind, ours in (("cpu-time", "cpu"), ("cpu-samples", "samples"), ("wall-time", "wall")):
        check(f"datadog: {ours} by thread", sums(got, kind, 0), sums(expected, ours, 0))
        check(f"datadog: {ours} by function", sums(got, kind, 1), sums(expected, ours, 1))


def run_parca(options, directory):
    port = free_port()
    store = directory / "parca-store"
    store.mkdir()
    (directory / "parca.yaml").write_text(f"object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: {store}\n")
    command = [options.parca, "--config-path", "parca.yaml", "--http-address", f"127.0.0.1:{port}",
               "--debuginfod-upstream-servers=http://127.0.0.1:9"]
    server = Server("parca", command, f"http://127.0.0.1:{port}/", directory)
    # It keeps profiles in memory, so what it had is read before it is killed.
    functions = {kind: collections.Counter() for kind in ("cpu", "wall")}
    threads = {kind: collections.Counter() for kind in ("cpu", "wall")}

    def ask(kind, selector):
        now = time.time()
        parameters = urllib.parse.urlencode({
            "mode": "MODE_MERGE", "reportType": "REPORT_TYPE_PPROF",
            "merge.query": f'process_cpu:{kind}:nanoseconds:cpu:nanoseconds:delta{{job="interop"{selector}}}',
            "merge.start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 3600)),
            "merge.end": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 60))})
        answer = json.loads(get(f"http://127.0.0.1:{port}/api/profiles/query?{parameters}"))
        return read_pprof(base64.b64decode(answer["pprof"]))

    kill = server.kill

    def read_and_kill():
        for kind in ("cpu", "wall"):
            functions[kind].update(sums(ask(kind, ""), kind, 1))
            for thread in ("main", "worker"):
                threads[kind].update({thread: sum(sums(ask(kind, f',thread_name="{thread}"'), kind).values())})
        kill()

    server.kill = read_and_kill
    expected = Run(options.send, "parca", server, {"STROBE_PARCA_URL": f"http://127.0.0.1:{port}", "STROBE_PARCA_JOB": "interop"},
                   directory).run()
    server.kill()
    for kind in ("cpu", "wall"):
        check(f"parca: {kind} by function", dict(sorted(functions[kind].items())), sums(expected, kind, 1))
        check(f"parca: {kind} by thread", dict(sorted(threads[kind].items())), sums(expected, kind, 0))


def run_pyroscope(options, directory):
    port, grpc_port, raft_port, gossip_port = (free_port() for _ in range(4))
    address = f"127.0.0.1:{raft_port}"
    command = [options.pyroscope, "-architecture.storage=v2", "-storage.backend=filesystem", "-usage-stats.enabled=false",
               "-self-profiling.disable-push=true", "-segment-writer.min-ready-duration=0s", "-metastore.min-ready-duration=0s",
               "-validation.reject-older-than=0", "-server.http-listen-address=127.0.0.1", "-server.grpc-listen-address=127.0.0.1",
               f"-server.http-listen-port={port}", f"-server.grpc-listen-port={grpc_port}", "-memberlist.bind-addr=127.0.0.1",
               f"-memberlist.bind-port={gossip_port}", "-memberlist.advertise-addr=127.0.0.1", f"-metastore.raft.bind-address={address}",
               f"-metastore.raft.advertise-address={address}", f"-metastore.raft.server-id={address}",
               f"-metastore.address=127.0.0.1:{grpc_port}", "-segment-writer.lifecycler.addr=127.0.0.1", "-distributor.ring.instance-addr=127.0.0.1",
               "-query-frontend.instance-addr=127.0.0.1", f"-query-backend.address=127.0.0.1:{grpc_port}"]
    server = Server("pyroscope", command, f"http://127.0.0.1:{port}/ready", directory)
    expected = Run(options.send, "pyroscope", server,
                   {"PYROSCOPE_SERVER_ADDRESS": f"http://127.0.0.1:{port}", "PYROSCOPE_APPLICATION_NAME": "interop"}, directory).run()
    now_ms = int(time.time() * 1000)
    for kind, name in (("cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"), ("wall", "wall:wall:nanoseconds:cpu:nanoseconds")):
        answer = post_json(f"http://127.0.0.1:{port}/querier.v1.QuerierService/SelectMergeStacktraces", {
            "profile_typeID": name, "label_selector": '{service_name="interop"}', "start": str(now_ms - 3600_000),
            "end": str(now_ms + 60_000)})
        graph = answer.get("flamegraph", {})
        got = collections.Counter()
        for level in graph.get("levels", []):
            values = [int(value) for value in level["values"]]
            for _, _, own, function in zip(*[iter(values)] * 4):
                got[graph["names"][function]] += own
        check(f"pyroscope: {kind} by function", {name: amount for name, amount in sorted(got.items()) if amount},
              sums(expected, kind, 1))
    types = post_json(f"http://127.0.0.1:{port}/querier.v1.QuerierService/ProfileTypes",
                      {"start": str(now_ms - 3600_000), "end": str(now_ms + 60_000)})
    print(f"     pyroscope: types {sorted(entry['ID'] for entry in types.get('profileTypes', []))}")
    server.kill()


def run_pull(options, directory):
    """Each pprof fetches a profile by itself, and finds the function; its errors are the server's words."""
    environment = os.environ | {"STROBE_PULL_PORT": "0", "STROBE_PULL_TOKEN": "the-token", "PPROF_TMPDIR": str(directory)}
    program = subprocess.Popen([options.pull, str(directory / "pulled")], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    host = program.stdout.readline().strip().removeprefix("http://")
    for pprof in options.pprof or []:
        def fetch(path, credentials="any:the-token@"):
            result = subprocess.run([*pprof.split(), "-top", f"http://{credentials}{host}{path}"], env=environment, text=True,
                                    capture_output=True)
            return result.stdout + result.stderr

        check(f"pull: {pprof} shows the function", "WorkForPull" in fetch("/debug/pprof/profile?seconds=2"), True)
        check(f"pull: {pprof} by a label", "WorkForPull" in fetch("/debug/pprof/profile?seconds=1&label=thread%20name=worker"), True)
        check(f"pull: {pprof} says what is not measured", "wall" in fetch("/debug/pprof/wall?seconds=1"), True)
        check(f"pull: {pprof} needs the token", "a token is needed" in fetch("/debug/pprof/profile?seconds=1", ""), True)
    metrics = get(f"http://{host}/metrics", Authorization="Bearer the-token").decode()
    check("pull: metrics end as OpenMetrics", metrics.endswith("# EOF\n"), True)
    program.stdin.close()
    check("pull: the program ends", program.wait(timeout=60), 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("send")
    for name in ("ddapm", "parca", "pyroscope", "pull"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--pprof", action="append")
    options = parser.parse_args()
    options.send = os.path.abspath(options.send)
    with tempfile.TemporaryDirectory() as directory:
        for name, run in (("ddapm", run_datadog), ("parca", run_parca), ("pyroscope", run_pyroscope), ("pull", run_pull)):
            if getattr(options, name) is None:
                print(f"SKIP {name}: not given")
                continue
            run(options, pathlib.Path(directory))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
