"""Makes small perf.data files, record by record.

  perf_data.whole()   every kind of record that strobe script knows, in the layout with sections
  perf_data.piped()   the same as perf writes it to a pipe
"""
import struct

IDENTIFIER, IP, TID, TIME, CALLCHAIN, ID, PERIOD, REGISTERS, STACK = 1 << 16, 1, 2, 4, 1 << 5, 1 << 6, 1 << 8, 1 << 12, 1 << 13
SAMPLE_TYPE = IDENTIFIER | IP | TID | TIME | CALLCHAIN | PERIOD | REGISTERS | STACK
REGISTERS_MASK = 0xFF0FFF
USER, KERNEL = 2, 1
USER_MARK, KERNEL_MARK = 2**64 - 512, 2**64 - 128
KERNEL_PROCESS = 0xFFFFFFFF
TASK_CLOCK, PAGE_FAULTS = (1, 1, 10), (1, 2, 11)  # type, config, id


def record(kind, body, misc=0):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def attributes(kind, config, sample_type=SAMPLE_TYPE):
    flags = 1 << 18  # ids in all records
    return struct.pack("<IIQQQQQIIQQQQIi", kind, 96, config, 1000, sample_type, 0, flags, 0, 0, 0, 0, 0, REGISTERS_MASK, 512, 0).ljust(96, b"\0")


def text(string):
    return string.encode().ljust(len(string) // 8 * 8 + 8, b"\0")


def trailer(process, thread, time, event=10):
    """What every record but a sample ends with."""
    return struct.pack("<IIQQ", process, thread, time, event)


def name(process, thread, string, time, is_exec=False):
    return record(3, struct.pack("<II", process, thread) + text(string) + trailer(process, thread, time), misc=1 << 13 if is_exec else 0)


def mapping(process, start, size, offset, path, time, build_id=b""):
    file = struct.pack("<BBH", len(build_id), 0, 0) + build_id.ljust(20, b"\0")
    body = struct.pack("<IIQQQ", process, process, start, size, offset) + file + struct.pack("<II", 5, 2) + text(path)
    return record(10, body + trailer(process, process, time), misc=1 << 14 if build_id else 0)


def fork(process, parent, thread, parent_thread, time, kind=7):
    return record(kind, struct.pack("<IIIIQ", process, parent, thread, parent_thread, time) + trailer(process, thread, time))


def sample(process, thread, time, ip, period=1000, event=10, chain=(), registers=None, stack=b"", mode=USER, kind=2):
    body = struct.pack("<QQIIQQ", event, ip, process, thread, time, period) + struct.pack("<Q%dQ" % len(chain), len(chain), *chain)
    body += struct.pack("<Q", 0) if registers is None else struct.pack("<Q%dQ" % len(registers), kind, *registers)
    body += struct.pack("<Q", len(stack)) + stack + (struct.pack("<Q", len(stack)) if stack else b"")
    return record(9, body, misc=mode)


def registers_at(ip, sp):
    return [0, 0, 0, 0, 0, 0, 0, sp, ip, 0, 0, 0] + [0] * 8


def records(kernel_text=0xFFFFFFFF12345000):
    """Of process 100 and its child 200, and of a kernel that is loaded where none is. In the order of the CPUs, not of the times."""
    code = 0x7F0000000000
    stack = struct.pack("<16Q", 7, code + 0x101, *[code + 0x201, 8] * 7)
    first = record(1, struct.pack("<IIQQQ", KERNEL_PROCESS, 0, 0, 0, kernel_text) + text("[kernel.kallsyms]_text") + trailer(0, 0, 0))
    first += name(100, 100, "parent", 1) + mapping(100, code, 0x2000, 0, "/opt/missing", 2) + name(100, 101, "helper", 3)
    first += sample(100, 100, 50, code + 0x10, chain=(USER_MARK, code + 0x10, code + 0x101, code + 0x201))
    first += sample(100, 101, 40, 0, chain=(KERNEL_MARK, kernel_text + 0x20, kernel_text + 0x120, USER_MARK, code + 0x301), mode=KERNEL)
    second = fork(200, 100, 200, 100, 10) + sample(200, 200, 20, code + 0x10, registers=registers_at(code + 0x10, 0x7FF000), stack=stack)
    second += name(200, 200, "child", 30, is_exec=True) + mapping(200, code, 0x1000, 0, "/opt/other", 31, bytes(range(20)))
    second += sample(200, 200, 35, code + 0x20, chain=(USER_MARK, code + 0x20)) + sample(200, 200, 36, code + 0x30, period=7, event=11, chain=(USER_MARK, code + 0x30))
    second += record(2, struct.pack("<QQ", 10, 3) + trailer(0, 0, 60)) + record(13, struct.pack("<Q", 2) + trailer(0, 0, 61))
    second += fork(200, 100, 200, 100, 70, kind=4)
    return first + second + record(68, b"") + record(15, b"\0" * 8 + trailer(0, 0, 80)) + record(74, b"\0" * 8)


def records_of_32_bit():
    """Two samples of a 32-bit process: its registers have other words than those of a 64-bit one."""
    stack = struct.pack("<8Q", *[0x0804840108048301] * 8)
    body = name(300, 300, "small", 1) + mapping(300, 0x8048000, 0x1000, 0, "/opt/small", 2)
    for time in (3, 4):
        body += sample(300, 300, time, 0x8048010, registers=registers_at(0x8048010, 0xFFD0), stack=stack, kind=1)
    return body


def event_names():
    def entry(kind, config, number, string):
        return attributes(kind, config) + struct.pack("<II", 1, len(text(string))) + text(string) + struct.pack("<Q", number)

    return struct.pack("<II", 2, 96) + entry(*TASK_CLOCK, "task-clock:u") + entry(*PAGE_FAULTS, "page-faults:u")


def build_ids():
    return struct.pack("<IHH", 0, 1 << 15, 8 + 28 + 16) + struct.pack("<I", 100) + b"\xAB" * 20 + struct.pack("<I", 20) + text("/opt/missing")


def machine_name(machine="x86_64"):
    return struct.pack("<I", len(text(machine))) + text(machine)


def whole(body=None, machine="x86_64"):
    body = records() if body is None else body
    ids = struct.pack("<QQ", 10, 11)
    events = b""
    for number, (kind, config, _) in enumerate((TASK_CLOCK, PAGE_FAULTS)):
        events += attributes(kind, config) + struct.pack("<QQ", 104 + 8 * number, 8)
    at = 104 + len(ids) + len(events)
    features = {2: build_ids(), 6: machine_name(machine), 12: event_names(), 29: struct.pack("<IIQQ", 1, 1, 10**18, 0)}
    header = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, 96 + 16, 104 + len(ids), len(events), at, len(body), 0, 0)
    header += struct.pack("<4Q", sum(1 << number for number in features), 0, 0, 0)
    table, content, place = b"", b"", at + len(body) + 16 * len(features)
    for number in sorted(features):
        table += struct.pack("<QQ", place + len(content), len(features[number]))
        content += features[number]
    return header + ids + events + body + table + content


def piped():
    out = struct.pack("<8sQ", b"PERFILE2", 16)
    for kind, config, number in (TASK_CLOCK, PAGE_FAULTS):
        out += record(64, attributes(kind, config) + struct.pack("<Q", number))
    out += record(80, struct.pack("<Q", 6) + machine_name()) + record(80, struct.pack("<Q", 12) + event_names())
    return out + record(66, struct.pack("<I", 5)) + b"trace\0\0\0" + records()
