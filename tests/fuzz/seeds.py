#!/usr/bin/env python3
"""Writes the seeds of the fuzzers: seeds.py DIRECTORY.

Makes DIRECTORY/TARGET/NAME for each seed and DIRECTORY/TARGET.list, which names them all for libFuzzer's -seed_inputs=@FILE. They are put
together here, byte by byte, so that they mean the same on every machine.
"""
import gzip
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
import perf_data  # noqa: E402

TEXT_START = 0x10000
EH_FRAME = 0x40000


def uleb(value):
    out = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def sleb(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if value == (-1 if byte & 0x40 else 0):
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)


def entry(body):
    """One entry of .eh_frame: its length, and the body padded with nops."""
    body += b"\0" * (-(len(body) + 4) % 8)
    return struct.pack("<I", len(body)) + body


def cie(augmentation=b"zR", data_alignment=-8, register=16, program=b"\x0c\x07\x08\x90\x01", version=1, data=b"\x1b"):
    body = struct.pack("<IB", 0, version) + augmentation + b"\0"
    body += b"\x08\0" if version == 4 else b""
    body += uleb(1) + sleb(data_alignment) + uleb(register)
    if augmentation.startswith(b"z"):
        body += uleb(len(data)) + data
    return entry(body + program)


def fde(at, cie_at, begin, length, program):
    """An FDE that will stand at `at` bytes of the section, with pc-relative 32-bit addresses."""
    return entry(struct.pack("<IiI", at + 4 - cie_at, begin - (EH_FRAME + at + 8), length) + b"\0" + program)


def section(cie_bytes, programs, terminated=True):
    out = cie_bytes
    for number, program in enumerate(programs):
        out += fde(len(out), 0, TEXT_START + 0x100 * number, 0xC0, program)
    return out + (b"\0\0\0\0" if terminated else b"")


PUSH_RBP = b"\x41\x0e\x10\x86\x02\x43\x0d\x06"                                  # push rbp; mov rbp, rsp
LEAVE = b"\x5a\x0c\x07\x08"                                                      # leave
PLT = b"\x46\x0e\x18\x4a\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"    # a linker's expression
REMEMBER = b"\x41\x0a\x0e\x20\x44\x0b\x41\x0e\x08"
UNDEFINED = b"\x07\x10"
ALLOCA = b"\x41\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00"                          # the CFA in memory, saved registers by expression
ADVANCES = b"\x02\x10\x0e\x20\x03\x20\x00\x0e\x28\x04\x10\x00\x00\x00\x0e\x30"
SIGNED = b"\x2d\x41\x0e\x20\x9d\x04\x9e\x03\x4a\xde\xdd\x0e\x00"                  # aarch64 with a signed return address
REGISTER = b"\x09\x10\x03\x41\x08\x06\x41\x2e\x10\x11\x06\x7e\x13\x7d"

BEYOND_64_BITS = b"\x11\x06" + sleb(2**62) + b"\x41\x12\x07" + sleb(-2**62) + b"\x41\x13" + sleb(2**63 - 1) + b"\x41\x2f\x06" + uleb(2**63)


def eh_frames():
    signal = cie(augmentation=b"zRS", program=b"\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01")
    aarch64 = cie(register=30, program=b"\x0c\x1f\x00")
    return {
        "frames": (0, section(cie(), [PUSH_RBP + LEAVE, b"\x44\x0e\x20", REMEMBER, ADVANCES])),
        "special": (0, section(cie(), [PLT, UNDEFINED, ALLOCA, REGISTER])),
        "beyond_64_bits": (0, section(cie(), [BEYOND_64_BITS], terminated=False) + section(cie(data_alignment=-2**63), [BEYOND_64_BITS])),
        "signal": (0, section(signal, [b"", b"\x41\x0e\x08"])),
        "aarch64": (1, section(aarch64, [SIGNED, b"\x44\x0e\x10\x9d\x02\x9e\x01", b""])),
        "version4": (0, section(cie(version=4), [PUSH_RBP], terminated=False)),
        "many_rows": (0, section(cie(), [b"".join(bytes([0x41, 0x0E, 8 * (i % 15 + 1)]) for i in range(150))])),
    }


def word(kind, value):
    """unwind_fuzz's four bytes for a word; kind 1 and 2 are places on the stack, 3 is code."""
    return struct.pack("<I", (value << 2 | kind) & 0xFFFFFFFF)


def code(entry_number, offset):
    return word(3, entry_number << 26 | offset)


def unwind_inputs():
    frames = b"".join(code(i % 3, 0x1234 * (i + 1)) + word(2, 4 * i + 6) for i in range(24))
    raw = struct.pack("<4Q", 0x401000, 0x7FF000000000, 0x7FF000000010, 0) + struct.pack("<8Q", *range(0x7FF000000000, 0x7FF000000040, 8))
    return {
        "chain": b"\0" + code(0, 0x2345) + word(2, 0) + word(2, 2) + word(0, 0) + frames,
        "library": b"\0" + code(1, 0x45678) + word(2, 0) + word(2, 9) + code(1, 0x777) + frames,
        "raw": b"\x05" + raw,
        "own_base": b"\x02" + code(2, 0x999) + word(1, 8) + word(1, 16) + code(0, 4) + frames,
    }


def record(weights, frames, end=0, generation=1):
    """A RecordHeader with the weights of the CPU and the wall provider, as they come, and frames."""
    amounts = (0, 0b1, 0b101)[len(weights)]
    return struct.pack("<IHHHBBI", generation, len(frames), 0, amounts, end, 0, 0) + struct.pack(f"<{len(weights)}q{len(frames)}Q", *weights, *frames)


def commit(bytes_, framed=True):
    bytes_ += b"\0" * (-len(bytes_) % 4)
    return bytes([0 if framed else 1, len(bytes_) // 4]) + bytes_


def ring_inputs():
    one = commit(record([1, 0], [0x401000, 0x402000, 0x403000]))
    ends = b"".join(commit(record([i, 5], [0x401000 + i], end=i)) for i in range(8))
    drain = b"\3\0"
    overwrite = b"\2\x10\x00\x00" + struct.pack("<IIQ", 0x1000, 0x52425354, 7)
    marker = b"\2\x08\x20\x00" + struct.pack("<II", 0x0FE0, 0x4D425354)
    return {
        "one": one + drain,
        "ends": ends + drain + one,
        "weight": commit(record([2**62, -2**63], [0x401000])) * 2 + drain,
        "wrap": b"".join((one * 20 + drain) for _ in range(4)),
        "corrupt": one + one + overwrite + drain + one + marker + drain,
        "short": commit(b"\1\0\0\0", framed=False) + drain,
    }


def elf_file(machine=62):
    """A library with a build id, a table of symbols, their strings and a linkage table, at the places that elf_fuzz asks for."""
    strings = b"\0main\0_Z3foov\0_ZNSt6vectorIiSaIiEE9push_backEOi@@V\0.plt\0"
    symbols = b"\0" * 24
    for name, value, size in ((1, 0x1000, 0x10), (6, 0x1010, 0), (14, 0x1100, 0x20)):
        symbols += struct.pack("<IBBHQQ", name, 2, 0, 1, value, size)
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    # Two stubs from 0x401000 on, whose slots are at 0x402000 and 0x402008; the second's has no
    # symbol.
    if machine == 62:
        stubs = b"\xff\x25" + struct.pack("<i", 0xFFA) + b"\x66\x90" + b"\xff\x25" + struct.pack("<i", 0xFFA) + b"\x66\x90"
    else:
        stubs = struct.pack("<8I", 0xB0000010, 0xF9400211, 0x91000210, 0xD61F0220, 0xB0000010, 0xF9400611, 0x91002210, 0xD61F0220)
    relocations = struct.pack("<QIIQ", 0x402000, 7, 3, 0) + struct.pack("<QIIQ", 0x402008, 37, 0, 0x1000)
    offset = 64 + 56
    places = []
    for part in (note, strings, symbols, stubs, relocations):
        places.append(offset)
        offset += len(part)
    header = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, offset, 0, 64, 56, 1, 64, 7, 3)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x2000, 0x2000, 0x1000)
    sections = b"\0" * 64
    for name, kind, flags, address, at, size, link, entry_size in (
            (0, 1, 0, 0x1000, 0x1000, 0x1000, 0, 0), (0, 7, 0, 0, places[0], len(note), 0, 0), (0, 3, 0, 0, places[1], len(strings), 0, 0),
            (0, 11, 0, 0, places[2], len(symbols), 3, 24), (strings.index(b".plt"), 1, 6, 0x401000, places[3], len(stubs), 0, 16),
            (0, 4, 2, 0, places[4], len(relocations), 4, 24)):
        sections += struct.pack("<IIQQQQIIQQ", name, kind, flags, address, at, size, link, 0, 4, entry_size)
    return header + load + note + strings + symbols + stubs + relocations + sections


def images():
    """Three functions: one with an epilogue, one with a frame register that the first continues into, one that a machine interrupted."""
    entries, codes, code = 0, 0x80, 0x200
    xdata = b""
    pdata = b""
    for number, (prologue, frame, unwind) in enumerate(((6, 0, b"\x06\x42\x02\x30\x01\x50"), (10, 0x25, b"\x0a\x03\x05\x72\x01\x50"),
                                                        (6, 0, b"\x06\x12\x02\x50\x00\x1a"))):
        pdata += struct.pack("<III", code + 0x40 * number, code + 0x40 * number + 0x38, codes + len(xdata))
        xdata += struct.pack("<BBBB", 1, prologue, len(unwind) // 2, frame) + unwind + b"\0\0"
    pdata += struct.pack("<III", code + 0xC0, code + 0xF0, codes + len(xdata))
    xdata += struct.pack("<BBBB", 1 | 4 << 3, 1, 1, 0) + b"\x01\x60\0\0" + pdata[:12]
    pdata += struct.pack("<III", code + 0x100, code + 0x120, entries + 1)
    text = (b"\x90" * 0x28 + b"\x48\x83\xc4\x28\x5b\x5d\xc3").ljust(0x40, b"\x90")
    text += (b"\x90" * 0x20 + b"\x48\x8d\x65\x20\x5d\xe9\0\1\0\0").ljust(0x40, b"\x90")
    image = pdata.ljust(codes, b"\0") + xdata.ljust(code - codes, b"\0") + text
    return {"functions": struct.pack("<HH", 0x400, len(pdata)) + image}


def pe_file(symbols=True, exports=True, codeview=True, frames=True):
    """A Windows image with code at 0x1000 and data at 0x2000, cut as small as its parts allow."""
    names = b"_ZN6strobe4WorkEv\0"
    coff, strings = b"", struct.pack("<I", 4 + len(names)) + names
    for name, value, part, kind, auxiliaries in ((b"main\0\0\0\0", 0x10, 1, 0x20, 1), (b"\0" * 8, 0, 0, 0, 0),
                                                 (struct.pack("<II", 0, 4), 0x40, 1, 0x20, 0), (b"eight888", 0x80, 1, 0x20, 0),
                                                 (b"label\0\0\0", 0x90, 1, 0, 0)):
        coff += name + struct.pack("<IhHBB", value, part, kind, 2, auxiliaries)
    exported = (b"Alpha\0", b"Beta\0", b"Gamma\0")
    at = 0x2000 + 40 + 12 + 12 + 6
    table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, 0, 1, 3, 3, 0x2000 + 40, 0x2000 + 52, 0x2000 + 64)
    table += struct.pack("<III", 0x1010, 0x1040, at)  # the last is another image's function
    for name in exported:
        table, at = table + struct.pack("<I", at), at + len(name)
    table += struct.pack("<HHH", 0, 1, 2) + b"".join(exported)
    pdata = struct.pack("<IIIIII", 0x1010, 0x1030, 0x2000, 0x1080, 0x10A0, 0x2000)
    rsds = b"RSDS" + bytes(range(16)) + struct.pack("<I", 3) + b"x.pdb\0"
    data, places = b"", {}
    for part, content in (("exports", table), ("pdata", pdata), ("rsds", rsds)):
        places[part] = 0x2000 + len(data)
        data += content
    places["debug"] = 0x2000 + len(data)
    data += struct.pack("<IIHHIIII", 0, 0, 0, 0, 2, len(rsds), places["rsds"], 0)
    directories = [(0, 0)] * 16
    for wanted, number, part, size in ((exports, 0, "exports", len(table)), (frames, 3, "pdata", len(pdata)), (codeview, 6, "debug", 28)):
        if wanted:
            directories[number] = places[part], size
    headers_end = 0x40 + 24 + 0xF0 + 2 * 40
    coff_at = headers_end + 16 + len(data)
    out = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0"
    out += struct.pack("<HHIIIHH", 0x8664, 2, 0x5F00ABCD, coff_at if symbols else 0, len(coff) // 18 if symbols else 0, 0xF0, 0x22)
    optional = bytearray(struct.pack("<H", 0x20B).ljust(112, b"\0"))
    struct.pack_into("<Q", optional, 24, 0x180000000)
    struct.pack_into("<I", optional, 56, 0x3000)
    struct.pack_into("<I", optional, 108, 16)
    out += bytes(optional) + b"".join(struct.pack("<II", *entry) for entry in directories)
    for start, size, offset, bytes_, flags in ((0x1000, 0x100, headers_end, 16, 0x60000020),
                                               (0x2000, len(data), headers_end + 16, len(data), 0x40000040)):
        out += b".name\0\0\0" + struct.pack("<IIIIIIHHI", size, start, bytes_, offset, 0, 0, 0, 0, flags)
    return out + b"\xcc" * 16 + data + (coff + strings if symbols else b"")


def abbreviation(code, tag, has_children, *attributes):
    return uleb(code) + uleb(tag) + bytes([has_children]) + b"".join(uleb(name) + uleb(form) for name, form in attributes) + b"\0\0"


def dwarf_file(version, mode=0):
    """A unit with code from 0x1000 to 0x1040: a function, another inlined into it from 0x1008 to 0x1030, in that a third one, in two parts."""
    origin, named, low, high, ranges = (0x31, 0x13), (0x03, 0x0E), (0x11, 0x01), (0x12, 0x07), (0x55, 0x17)
    call = ((0x58, 0x0B), (0x59, 0x0B), (0x57, 0x0B))
    abbreviations = abbreviation(1, 0x11, 1, (0x03, 0x08), (0x1B, 0x08), (0x10, 0x17), low, high) + abbreviation(2, 0x2E, 0, named, (0x6E, 0x0E))
    abbreviations += abbreviation(3, 0x2E, 1, named, low, high, (0x01, 0x13), (0x3A, 0x0B), (0x3B, 0x0B))
    abbreviations += abbreviation(4, 0x1D, 1, origin, low, high, *call) + abbreviation(5, 0x1D, 0, origin, ranges, *call)
    abbreviations += abbreviation(6, 0x4A, 0, (0x10, 0x17), low, high, (0x76, 0x08), (0x73, 0x17)) + b"\0"
    header = struct.pack("<HBBI", 5, 1, 8, 0) if version == 5 else struct.pack("<HIB", version, 0, 8)
    strings = b"\0outer\0middle\0inner\0_Z6middlev\0"

    def entries(first):
        body = b"\1a.cc\0/src\0" + struct.pack("<IQQ", 0, 0x1000, 0x40)
        abstract = first + len(body)
        body += b"\2" + struct.pack("<II", strings.index(b"middle"), strings.index(b"_Z6"))
        body += b"\2" + struct.pack("<II", strings.index(b"inner"), strings.index(b"inner"))
        end = first + len(body) + 1 + 4 + 8 + 8 + 4 + 2 + 26 + 12 + 2
        body += b"\3" + struct.pack("<IQQIBB", strings.index(b"outer"), 0x1000, 0x40, end, 1, 3)
        body += b"\4" + struct.pack("<IQQBBB", abstract, 0x1008, 0x28, 1, 7, 2)
        body += b"\5" + struct.pack("<IIBBB", abstract + 9, 12 if version == 5 else 0, 1, 9, 4) + b"\0\0\0"
        return body

    def unit(kind, body):
        header_bytes = struct.pack("<HBBI", 5, kind, 8, 0) + (b"12345678" if kind in (4, 5) else b"") if version == 5 else header
        return struct.pack("<I", len(header_bytes) + len(body)) + header_bytes + body

    if mode & 2:  # a skeleton, and a split unit with its number
        info = unit(4, b"\6" + struct.pack("<IQQ", 0, 0x1000, 0x40) + b"a.dwo\0" + struct.pack("<I", 8)) + unit(5, entries(20))
    else:
        info = unit(1, entries(4 + len(header)))
    program = b"\0\x09\2" + struct.pack("<Q", 0x1000) + b"\5\3\x13\x84\x4b\4\1\xe5\2\x10\1\3\x7e\1\2\x10\0\1\1"
    fields = b"\1\1\1\xfb\x0e\x0d\0\1\1\1\1\0\0\0\1\0\0\1"
    if version == 5:
        lists = b"\1\1\x08\1/src\0\2\1\x08\2\x0b\2a.cc\0\0b.h\0\0"
        lines = struct.pack("<HBBI", 5, 8, 0, len(fields) + len(lists)) + fields + lists + program
        lists = struct.pack("<HBBI", 5, 8, 0, 0) + b"\4\x08\x08\4\x18\x20\7" + struct.pack("<Q", 0x1022) + b"\x04\0"
        ranges_section, range_lists = b"", struct.pack("<I", len(lists)) + lists
    else:
        fields = fields if version >= 4 else fields[:1] + fields[2:]
        lists = b"sub\0\0a.cc\0\0\0\0b.h\0\1\0\0\0"
        lines = struct.pack("<HI", version, len(fields) + len(lists)) + fields + lists + program
        ranges_section, range_lists = struct.pack("<6Q", 8, 0x10, 0x18, 0x20, 0, 0), b""
    if mode & 1:
        info = struct.pack("<IIQQ", 1, 0, len(info), 1) + zlib.compress(info)
    package = struct.pack("<HHIII", 5, 0, 2, 1, 1) + b"12345678" + struct.pack("<7I", 1, 1, 3, 0, 0, len(info), len(abbreviations))
    sections = [info, abbreviations, struct.pack("<I", len(lines)) + lines, strings, strings, struct.pack("<IHHII", 12, 5, 0, 1, 7),
                struct.pack("<IHBBQ", 12, 5, 8, 0, 0x1000), ranges_section, range_lists, package if mode & 2 else b""]
    return bytes([mode]) + struct.pack("<10H", *map(len, sections)) + b"".join(sections)


def headers():
    out = {}
    for name, (flags, frame) in eh_frames().items():
        # version 1, pc-relative address of the section, count and table left out
        out[name] = bytes([flags | 2]) + struct.pack("<H", 0x300) + b"\1\x1b\xff\xff" + struct.pack("<i", 8) + b"\0\0\0\0" + frame
    out["absolute"] = b"\0\x40\0\1\0\xff\xff" + struct.pack("<Q", 0x7F0000000010) + eh_frames()["frames"][1]
    return out


def encode_inputs():
    """Function names, and what encode_fuzz reads as a profile with a thread, a module, two frames, a label, a moment and symbols."""
    def text(content):
        return bytes([len(content)]) + content

    def numbers(*values):
        return struct.pack("<%dQ" % len(values), *values)

    module = numbers(0x1000, 0x3000, 0x1000) + text(b"/lib/a.so") + text(b"00112233445566778899aabbccddeeff") + b"\1\0"
    profile = b"\2\1" + numbers(10**18, 10**9, 10**7) + text(b"program") + b"\1" + module
    profile += b"\2" + b"\0" + numbers(0x1010) + b"\0" + numbers(0x2010)  # frames
    profile += b"\1" + text(b"request") + text(b"a;b") + text(b"size") + numbers(7) + b"\1" + text(b"main")  # labels
    profile += b"\1" + b"\1" + text(b"main") + numbers(10**18, 0, 5 * 10**8)  # a thread
    profile += b"\3" + b"\0\0" + b"\0\0" + b"\1\1"  # stacks
    profile += b"\1" + b"\2\0" + numbers(3, 3 * 10**7) + b"\1" + b"\0" + numbers(10**18 + 10**6) + numbers(1, 10**7)
    profile += b"\1" + text(b"void f<int>(int)") + text(b"_Z1fIiEvi") + b"\0" + text(b"f.cc") + b"\5"
    profile += b"\1" + b"\0\6" + b"\1" + b"\0\7\0\1" + b"\0\x08\0\0"
    names = [b"std::function<void (int)>::operator()(int) const", b"f(int)::{lambda(auto:1)#1}::operator()<int>(int) const [clone .cold]",
             b"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", b"<A as B>::f::h0123456789abcdef"]
    return {"profile": profile} | {"name%d" % number: name for number, name in enumerate(names)}


def profiles():
    """Files of each format that the command reads."""
    def field(number, value):
        return uleb(number << 3) + uleb(value) if isinstance(value, int) else uleb(number << 3 | 2) + uleb(len(value)) + value

    def part(number, *fields):
        return field(number, b"".join(field(*one) for one in fields))

    strings = (b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"Work", b"/src/a.cc", b"/bin/a", b"00112233445566778899", b"thread_id", b"42",
               b"end_timestamp_ns", b"[truncated]", b"[a]")
    label, time = field(3, field(1, 10) + field(2, 11)), field(3, field(1, 12) + field(3, 10**18))
    profile = part(1, (1, 1), (2, 2)) + part(1, (1, 3), (2, 4))
    profile += field(2, field(1, b"\2\1") + field(2, b"\1\x0a") + label) + field(2, field(1, b"\3\1\4") + field(2, b"\2\x14") + label + time)
    profile += part(3, (1, 1), (2, 0x1000), (3, 0x9000), (4, 0), (5, 8), (6, 9), (7, 1))
    profile += part(4, (1, 1), (2, 1), (3, 0x1234), (4, field(1, 1) + field(2, 7))) + part(4, (1, 3), (2, 1), (3, 0x2345))
    profile += part(4, (1, 2), (2, 1), (3, 0x1300), (4, field(1, 2) + field(2, 3)), (4, field(1, 1) + field(2, 9))) + part(4, (1, 4), (4, field(1, 3)))
    profile += part(5, (1, 1), (2, 5), (3, 5), (4, 7), (5, 2)) + part(5, (1, 2), (2, 6), (3, 6)) + part(5, (1, 3), (2, 13))
    profile += b"".join(field(6, text) for text in strings) + field(9, 10**18) + field(10, 10**9) + part(11, (1, 3), (2, 4)) + field(12, 10**7)
    profile += field(13, b"\1") + field(14, 3)
    perf = b"a b 4/5 [000] 1.5: 1000 cycles:u: \n\t 1234 Work+0x4 (/bin/a)\n\t 1300 [unknown] ([kernel])\n\nb 6 2.25: cycles:\n\t 1234 in (inlined)\n"
    return {"pprof": profile, "gzip": gzip.compress(profile, mtime=0), "members": gzip.compress(profile[:50], mtime=0) + gzip.compress(profile[50:], mtime=0),
            "folded": b"main;Work;[truncated] 12\n# no\nmain 3\nmain;a b(c, d) 4\n", "perf": perf}


def handshake_inputs():
    no_patch, whole_file = b"\0", b"\2"
    area = no_patch + whole_file
    hello = area + b"\1" + no_patch
    return {"hello": b"\0" + hello, "option": b"\0" + hello + b"sampling.cpu_frequency_hz=50\n", "any": b"\1" + area + b"\1" + b"STROBWKR",
            "answer": b"\2" + area + b"\2" + no_patch, "chunks": b"\0" + b"\1\x18\4\xff\xff\0\0" + whole_file + b"\1" + no_patch,
            "address": b"\0" + area + b"\1" + b"\1\x30\x08" + b"\xff" * 8}


def shared_area_inputs():
    amounts = struct.pack("<IHHHBBI", 1, 3, 0, 0b10, 0, 0, 0) + struct.pack("<q3Q", 1000000, 0x401000, 0x402000, 0x403000)
    record = bytes([0, len(amounts) // 4]) + amounts
    see, drain, poll, take, leave = b"\4\0", b"\5\0", b"\6\0", b"\7\0", b"\3\1"
    corrupt = b"".join(bytes([1, place]) + struct.pack("<IB", offset, 8) + b"\x77" * 8 for place in (0, 64) for offset in range(0, 704, 64))
    return {"one": record + drain + take, "poll": poll + record + drain + take, "leave": leave + see + drain + take + b"\3\0" + see,
            "corrupt": record + corrupt + drain + poll + take, "long": record + drain + b"\x0f\0" * 3 + take}


def tables_inputs():
    share = b"\0\1\5" + b"\2\x10" * 5
    return {"shared": b"\4" + share + b"\1\2\0" + b"\4" + b"\0\0\0\0\4abcd\1\2" + b"\3\1\1",
            "offer": b"\0\x10\x11\x11" + struct.pack("<Q", 0x500000000000), "labels": b"\1\0\x20\0\0\0\x08" + b"\1" * 8 + b"\3\3\0\3\4\0",
            "ranges": b"\2\1\0\0\0\0\x20" + b"\1\0\0\0\0\0\0\0" * 4 + b"\0", "profile": b"\3\1" + b"\x40\0\0\0\4\xff\xff\xff\xff"}


def jit_dumps():
    def record(kind, time, *words, name=b""):
        body = struct.pack("<2I", 42, 42) + struct.pack("<%dQ" % len(words), *words) + name
        return struct.pack("<2IQ", kind, 16 + len(body), time) + body

    head = struct.pack("<6IQQ", 0x4A695444, 1, 40, 62, 0, 42, 0, 0)
    loads = record(0, 1, 0x1000, 0x1000, 0x20, 1, name=b"f\0code") + record(0, 0x1010, 0x1000, 0x1008, 0x1000, 2, name=b"g\0")
    return {"loads": head + loads, "moves": head + loads + record(1, 0x2000, 0, 0x1000, 0x2000, 0x20, 1) + record(2, 3) + record(3, 4)}


def main():
    directory = pathlib.Path(sys.argv[1])
    eh_frame = {name: bytes([flags | 0x10]) + struct.pack("<HH", 0x400, 0x8) + frame for name, (flags, frame) in eh_frames().items()}
    targets = {"eh_frame": eh_frame, "eh_frame_hdr": headers(), "unwind": unwind_inputs(), "ring_records": ring_inputs(),
               "elf": {"library": elf_file(), "aarch64": elf_file(machine=183)},
               "pe": {"whole": pe_file(), "stripped": pe_file(symbols=False), "symbols": pe_file(exports=False, codeview=False),
                      "leaf": pe_file(symbols=False, frames=False)},
               "profile": profiles(), "perf": {"whole": perf_data.whole(), "piped": perf_data.piped()}, "pdata": images(), "encode": encode_inputs(),
               "handshake": handshake_inputs(), "shared_area": shared_area_inputs(), "tables": tables_inputs(),
               "jit_dump": jit_dumps(),
               "names": {"cpp": b"_ZN3foo3barIS_EEvi", "rust": b"_RINvCs1_1m3genTaEEB2_", "legacy": b"_ZN1m10_$LT$T$GT$3new17h0123456789abcdefE",
                         "d": b"_D3std5range__T6ChunksTAhVAyaa1_61ZQt6lengthMxFNbDFZvZm", "parts": b"3foo__T3barTSQpVii3Z1fMFQfZv"},
               "dwarf": {"version2": dwarf_file(2), "version4": dwarf_file(4), "version5": dwarf_file(5),
                         "compressed": dwarf_file(5, mode=1), "split": dwarf_file(5, mode=2)}}
    for target, seeds in targets.items():
        (directory / target).mkdir(parents=True, exist_ok=True)
        paths = []
        for name, content in seeds.items():
            path = directory / target / name
            path.write_bytes(content)
            paths.append(str(path))
        (directory / f"{target}.list").write_text(",".join(paths))


if __name__ == "__main__":
    main()
