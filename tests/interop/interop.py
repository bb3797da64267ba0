#!/usr/bin/env python3
"""Sends profiles to real servers and asks each what arrived: interop.py SEND [--ddapm COMMAND] [--collector BINARY] [--parca BINARY]
[--pyroscope BINARY] [--pull PROGRAM --pprof COMMAND...]

SEND is the program interop_send, PROGRAM interop_pull. For each server: its own program starts on the loopback interface, gets periods,
is killed and started again in the middle, twice, and must in the end have what the files have: the amounts by thread, function and label,
and not more. The profiles that it could not take meanwhile wait in a spool. Parca and Pyroscope are not in any package registry: give
the path of a binary; they are sent the requests in tests/http/fixtures, too. Prints one line a check; exit status 1 if one failed.
"""
import argparse
import base64
import calendar
import collections
import gzip
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import typing
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
import fixtures  # noqa: E402
import pprof_file  # noqa: E402

READY_SECONDS = 60
PERIODS = 9
PERIOD_S = 1.5
MAX_DRAIN_NS = 10**9  # a sample may be drained so long after it was taken, and so belong to the next period
failures = 0


def check(name, actual, expected):
    global failures
    if actual == expected:
        print(f"PASS {name}: {expected}", flush=True)
    else:
        failures += 1
        print(f"FAIL {name}: {actual}, expected {expected}", flush=True)


# ---- pprof

class Row(typing.NamedTuple):
    thread: str
    function: str  # of the leaf
    goods: str     # the label that the program has set


def read_pprof(data):
    """Rows, each with the sum of every value type, by name."""
    profile = pprof_file.Profile(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    rows = collections.defaultdict(collections.Counter)
    for locations, values, labels in profile.rows:
        row = Row(labels.get("thread name", labels.get("thread_name", "")), locations[0].function[0] if locations else "",
                  labels.get("goods", ""))
        for name, amount in zip(profile.types, values):
            rows[row][name] += amount
    return rows


def add(total, rows):
    for key, values in rows.items():
        for name, amount in values.items():
            total[key][name] += amount


def sums(rows, kind, key=None):
    """The totals of one value type, by a member of the rows."""
    result = collections.Counter()
    for row, values in rows.items():
        result[getattr(row, key) if key else "all"] += values[kind]
    return {name: amount for name, amount in sorted(result.items()) if amount}


def check_amounts(name, got, expected, kinds, keys=("thread", "function", "goods")):
    """`kinds` names the server's value types and ours."""
    for theirs, ours in kinds.items():
        for key in keys:
            check(f"{name}: {ours} by {key}", sums(got, theirs, key), sums(expected, ours, key))


def check_fixtures(server, port, names, ask):
    """Sends the kept requests of the application shop, of the label region, and compares what ask(kind, selector, begin_s, end_s) finds."""
    expected = collections.defaultdict(collections.Counter)
    for name in names:
        check(f"{server}: takes fixtures/{name}", fixtures.send(port, name), 200)
        for data in fixtures.profiles(name):
            add(expected, read_pprof(data))
    times = (fixtures.BEGIN_S - 60, fixtures.BEGIN_S + 60)
    for kind in ("cpu", "wall"):
        check(f"{server}: {kind} of the fixtures by function", ask(kind, "", *times), sums(expected, kind, "function"))
        threads = {thread: sum(ask(kind, f',thread_name="{thread}"', *times).values()) for thread in ("main", "worker")}
        check(f"{server}: {kind} of the fixtures by thread", threads, sums(expected, kind, "thread"))


# ---- servers

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """A process that can be killed and started again with the same data. It is ready when its URL gets an answer below 500."""

    all = []

    def __init__(self, name, command, ready_url, directory):
        self.name, self.command, self.ready_url, self.directory = name, command, ready_url, directory
        self.process = None
        Server.all.append(self)

    def start(self):
        log = open(self.directory / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(self.command, cwd=self.directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                get(self.ready_url)
                return
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"it does not start: {pathlib.Path(log.name).read_text(errors='replace')[-500:]}")

    def kill(self):
        self.end()

    def end(self):
        if self.process is not None:
            self.process.kill()
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
            raise RuntimeError(f"{command}: {result.returncode}\n{result.stdout}{result.stderr}")
        account = json.loads(result.stdout)
        print(f"     {self.server.name}: {account} {result.stderr.strip().splitlines()[0]}", flush=True)
        self.account.update(account)

    def run(self):
        """Leaves the server running, and returns what it must have."""
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


def unix_ns(text):
    """Of a time as 2026-11-25T19:33:21.480123456Z."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(text[20:29])


def run_datadog(options, directory):
    port = free_port()
    command = [*options.ddapm.split(), "--port", str(port), "--otlp-http-port", str(free_port()), "--otlp-grpc-port", str(free_port())]
    server = Server("datadog", command, f"http://127.0.0.1:{port}/info", directory)
    # It keeps requests in memory, so what it had is read before it is killed.
    got = collections.defaultdict(collections.Counter)
    seen = []
    spans = set()
    moments = collections.Counter()

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
            begin_ns, end_ns = unix_ns(event["start"]), unix_ns(event["end"])
            for _, _, labels in pprof_file.Profile(gzip.decompress(profile)).rows:
                spans.add((labels["thread name"], labels.get("goods"), labels.get("local root span id"), labels.get("span id")))
                if "end_timestamp_ns" in labels:
                    moments["inside" if begin_ns - MAX_DRAIN_NS <= labels["end_timestamp_ns"] <= end_ns else "outside"] += 1

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
    check("datadog: the span of samples with the label", {tuple(span) for _, goods, *span in spans if goods == "tea"}, {(70, 71)})
    check("datadog: the main thread has neither", {tuple(rest) for thread, *rest in spans if thread == "main"}, {(None, None, None)})
    check("datadog: samples have times of their period", (moments["inside"] > 0, moments["outside"]), (True, 0))
    check_amounts("datadog", got, expected, {"cpu-time": "cpu", "cpu-samples": "samples", "wall-time": "wall"})


class DebugOutput:
    """What the collector's debug exporter prints of profiles: of each sample its value and attributes, but not its stack."""

    def __init__(self, text, kinds):
        self.rows = collections.defaultdict(collections.Counter)  # the function is empty
        self.functions = set()
        self.services = set()
        section, column, names, strings, samples = "", 0, [], [], []
        for line in text.splitlines():
            if not line.startswith(" "):
                section = line.split("\t")[-1]
                if section == "Mapping #0":  # each request begins so
                    names, strings = [], []
                if section.startswith("Profile #"):
                    column = int(section[len("Profile #"):])
                if section == "ResourceProfiles #0":
                    self.functions.update(strings[name] for name in names if name)
                continue
            key, _, value = line.strip().removeprefix("-> ").partition(": ")
            if section == "String table:":
                strings.append(line[4:])
            elif section.startswith("Function #") and key == "Name":
                names.append(int(value))
            elif section == "Resource attributes:" and key == "service.name":
                self.services.add(value)
            elif section.startswith("Profile #") and key == "Values":
                samples.append((kinds[column], int(value.strip("[]")), {}))
            elif section.startswith("Profile #") and "-> " in line:
                samples[-1][2][key] = value.partition("(")[2][:-1]
        for kind, amount, attributes in samples:
            self.rows[Row(attributes.get("thread.name", ""), "", attributes.get("goods", ""))][kind] += amount


def run_collector(options, directory):
    port = free_port()
    (directory / "collector.yaml").write_text(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed, use_internal_logger: false}}}}
service:
  pipelines: {{profiles: {{receivers: [otlp], exporters: [debug]}}}}
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
""")
    command = [options.collector, "--config", "file:collector.yaml", "--feature-gates=service.profilesSupport"]
    server = Server("collector", command, f"http://127.0.0.1:{port}/", directory)
    expected = Run(options.send, "otlp", server,
                   {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_SERVICE_NAME": "interop"}, directory).run()
    server.kill()
    # A profile for each value type, in the order of the file's.
    kinds = list(next(iter(expected.values())))
    got = DebugOutput((directory / "collector.log").read_text(), kinds)
    check("collector: the service", got.services, {"Str(interop)"})
    check_amounts("collector", got.rows, expected, {kind: kind for kind in kinds}, ("thread", "goods"))
    functions = set()
    for path in (directory / "otlp" / "files").glob("*.pb.gz"):
        functions |= {location.function[0] for locations, values, _ in pprof_file.read(path).rows if any(values) for location in locations}
    check("collector: functions", got.functions, functions)


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

    def ask(kind, selector, begin_s, end_s):
        parameters = urllib.parse.urlencode({
            "mode": "MODE_MERGE", "reportType": "REPORT_TYPE_PPROF",
            "merge.query": f"process_cpu:{kind}:nanoseconds:cpu:nanoseconds:delta{{{selector}}}",
            "merge.start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin_s)),
            "merge.end": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end_s))})
        answer = json.loads(get(f"http://127.0.0.1:{port}/api/profiles/query?{parameters}"))
        return sums(read_pprof(base64.b64decode(answer["pprof"])), kind, "function")

    def ask_now(kind, selector=""):
        return ask(kind, 'job="interop"' + selector, time.time() - 3600, time.time() + 60)

    kill = server.kill

    def read_and_kill():
        for kind in ("cpu", "wall"):
            functions[kind].update(ask_now(kind))
            for thread in ("main", "worker"):
                threads[kind].update({thread: sum(ask_now(kind, f',thread_name="{thread}"').values())})
        kill()

    server.kill = read_and_kill
    expected = Run(options.send, "parca", server, {"STROBE_PARCA_URL": f"http://127.0.0.1:{port}", "STROBE_PARCA_JOB": "interop"},
                   directory).run()
    check_fixtures("parca", port, ["parca.0"], lambda kind, selector, *times: ask(kind, 'job="shop",region="eu west"' + selector, *times))
    server.kill()
    for kind in ("cpu", "wall"):
        check(f"parca: {kind} by function", dict(sorted(functions[kind].items())), sums(expected, kind, "function"))
        check(f"parca: {kind} by thread", dict(sorted(threads[kind].items())), sums(expected, kind, "thread"))


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
    names = {"cpu": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "wall": "wall:wall:nanoseconds:cpu:nanoseconds"}

    def ask(kind, selector, begin_s, end_s):
        answer = post_json(f"http://127.0.0.1:{port}/querier.v1.QuerierService/SelectMergeStacktraces", {
            "profile_typeID": names[kind], "label_selector": f"{{{selector}}}", "start": str(int(begin_s * 1000)), "end": str(int(end_s * 1000))})
        graph = answer.get("flamegraph", {})
        got = collections.Counter()
        for level in graph.get("levels", []):
            values = [int(value) for value in level["values"]]
            for _, _, own, function in zip(*[iter(values)] * 4):
                got[graph["names"][function]] += own
        return {name: amount for name, amount in sorted(got.items()) if amount}

    times = (time.time() - 3600, time.time() + 60)
    for kind in names:
        check(f"pyroscope: {kind} by function", ask(kind, 'service_name="interop"', *times), sums(expected, kind, "function"))
        for key, label, values in (("thread", "thread_name", ("main", "worker")), ("goods", "goods", ("tea",))):
            got = {value: sum(ask(kind, f'service_name="interop",{label}="{value}"', *times).values()) for value in values}
            check(f"pyroscope: {kind} by {key}", got, {name: amount for name, amount in sums(expected, kind, key).items() if name})
    # It shows recent profiles only. When these were recent, it showed all that they have.
    for name in ("pyroscope.0", "pyroscope.1"):
        check(f"pyroscope: takes fixtures/{name}", fixtures.send(port, name), 200)
    types = post_json(f"http://127.0.0.1:{port}/querier.v1.QuerierService/ProfileTypes",
                      {"start": str(int(times[0] * 1000)), "end": str(int(times[1] * 1000))})
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
            result = subprocess.run([*pprof.split(), "-top", "-unit=ns", f"http://{credentials}{host}{path}"], env=environment,
                                    text=True, capture_output=True)
            return result.stdout + result.stderr

        for what, parameters in (("a profile", "?seconds=2"), ("a label", "?seconds=1&label=thread%20name=worker")):
            text = fetch("/debug/pprof/profile" + parameters)
            saved = re.search("Saved profile in (.*)", text)
            rows = read_pprof(pathlib.Path(saved[1]).read_bytes()) if saved else {}
            total = re.search(r"of (\d+)ns total", text)
            check(f"pull: {pprof}, {what}: total", total and int(total[1]), sums(rows, "cpu").get("all"))
            check(f"pull: {pprof}, {what}: threads", {row.thread for row in rows}, {"worker"})
            check(f"pull: {pprof}, {what}: function", "WorkForPull" in text, True)
        check(f"pull: {pprof} says what is not measured", "wall" in fetch("/debug/pprof/wall?seconds=1"), True)
        check(f"pull: {pprof} needs the token", "a token is needed" in fetch("/debug/pprof/profile?seconds=1", ""), True)
    metrics = get(f"http://{host}/metrics", Authorization="Bearer the-token").decode()
    check("pull: metrics end as OpenMetrics", metrics.endswith("# EOF\n"), True)
    program.stdin.close()
    check("pull: the program ends", program.wait(timeout=60), 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("send")
    for name in ("ddapm", "collector", "parca", "pyroscope", "pull"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--pprof", action="append")
    options = parser.parse_args()
    options.send = os.path.abspath(options.send)
    with tempfile.TemporaryDirectory() as directory:
        for name, run in (("ddapm", run_datadog), ("collector", run_collector), ("parca", run_parca), ("pyroscope", run_pyroscope),
                          ("pull", run_pull)):
            if getattr(options, name) is None:
                print(f"SKIP {name}: not given")
                continue
            try:
                run(options, pathlib.Path(directory))
            except Exception as error:  # the others are asked all the same
                check(f"{name} works", repr(error), "")
            finally:
                for server in Server.all:
                    server.end()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
