#!/usr/bin/env python3
"""Checks in the machine code that the signal handler calls nothing it must not, and how much stack it may need.

  handler_gate.py EXECUTABLE ALLOW_FILE ROOT...

Starts at every function whose demangled name matches one of the regular expressions ROOT, follows every direct call and jump, and
reports, each with the path that leads there: a call to a function that ALLOW_FILE does not name, a call through a pointer, a system call
instruction, and an access to thread-local storage that is allocated when first touched. What is reached only through a pointer must be
a ROOT of its own. Adds up what the functions on each way from the first ROOT keep on the stack, and reports a way that needs more than
ALLOW_FILE says, and one that has no end (x86-64 only). Exit status 1 if anything is reported.

A line of ALLOW_FILE is `KIND REGEX # reason`, REGEX to be found in a demangled name:
  walk      may be called, and is checked in its turn        indirect  may call through a pointer
  leaf      may be called, and is not looked into            syscall   may contain a system call instruction
  stack     no REGEX but a number: the most bytes that all functions together may need, those of leaves left out
"""
import bisect
import collections
import re
import subprocess
import sys

KINDS = ("walk", "leaf", "indirect", "syscall", "stack")
_PREFIXES = {"bnd", "notrack", "rep", "repz", "repnz", "lock", "data16", "rex.W", "cs", "ds"}
_CALLS = {"call", "callq", "bl"}
_INDIRECT_ARM = {"blr", "br", "blraa", "braa"}
_SYSTEM_CALLS = {"syscall", "sysenter", "svc"}
# What makes a frame larger on x86-64; where the number is not in the instruction, its size is
# unknown.
_GROWTH = re.compile(r"(sub|add)\w* +\$0x([0-9a-f]+),%rsp")
_UNKNOWN_GROWTH = re.compile(r"(sub\w* +%\w+,%rsp|mov\w* +%(?!rbp)\w+,%rsp)")
_ALIGNMENT_BYTES = 64  # of `and $-64,%rsp` and less
_LAZY_TLS = {"__tls_get_addr", "__tlsdesc_dynamic"}


def tool(*command, text=None):
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


class Allowed:
    def __init__(self, path):
        self.rules = {kind: [] for kind in KINDS}
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            kind, _, rest = line.partition(" ")
            pattern, _, reason = rest.partition(" # ")
            if kind not in KINDS or not pattern.strip() or not reason.strip():
                sys.exit(f"{path}:{number}: wanted `KIND REGEX # reason`, KIND one of {', '.join(KINDS)}")
            self.rules[kind].append(re.compile(pattern.strip()))

    def stack_bytes(self):
        return min((int(rule.pattern) for rule in self.rules["stack"]), default=None)

    def __call__(self, kind, name):
        return any(rule.search(name) for rule in self.rules[kind])


class Program:
    """An executable's functions by address, and where its calls go."""

    def __init__(self, path):
        self.code = {}
        self.names = {}
        instructions = None
        for line in tool("objdump", "-d", "-w", "--no-show-raw-insn", path).splitlines():
            if heading := re.match(r"([0-9a-f]+) <(.+)>:$", line):
                instructions = self.code.setdefault(int(heading[1], 16), [])
                self.names[int(heading[1], 16)] = heading[2]
            elif instructions is not None and (instruction := re.match(r"\s*[0-9a-f]+:\s+(.+)$", line)):
                instructions.append(instruction[1])
        self.starts = sorted(self.code)
        mangled = list(dict.fromkeys(re.sub(r"@plt$", "", name) for name in self.names.values()))
        self.demangled = dict(zip(mangled, tool("c++filt", text="\n".join(mangled) + "\n").splitlines()))
        self.slots = {}  # of the global offset table: a symbol's name or a function's address
        for line in tool("readelf", "-rW", path).splitlines():
            if relocation := re.match(r"([0-9a-f]{8,})\s+[0-9a-f]+\s+R_\w+(?:JUMP_SLOT|JUMP_SLO|GLOB_DAT|RELATIVE)\s+(.*)$", line):
                parts = relocation[2].split()
                if len(parts) == 1:
                    self.slots[int(relocation[1], 16)] = int(parts[0], 16)
                elif len(parts) > 1:
                    self.slots[int(relocation[1], 16)] = parts[1].split("@")[0]

    def name(self, address):
        raw = self.names[address].removesuffix("@plt")
        return self.demangled.get(raw, raw)

    def frame_bytes(self, function):
        """At most, with the return address; None where that depends on what happens."""
        total = 8
        below = 0
        for text in self.code[function]:
            if used := re.search(r"-0x([0-9a-f]+)\(%rsp[,)]", text):
                below = max(below, int(used[1], 16))
            if text.startswith("push"):
                total += 8
            elif growth := _GROWTH.match(text):
                size = int(growth[2], 16)
                size -= (size >> 63) << 64  # -128 has a shorter encoding than 128
                total += max(0, size if growth[1] == "sub" else -size)
            elif re.match(r"and\w* +\$0xf+[0-9a-f]+,%rsp", text):
                total += _ALIGNMENT_BYTES
            elif _UNKNOWN_GROWTH.match(text):
                return None
        return total + below

    def is_import(self, address):
        return "@plt" in self.names[address]

    def function_at(self, address):
        index = bisect.bisect_right(self.starts, address) - 1
        return self.starts[index] if index >= 0 else None

    def demangle(self, name):
        return tool("c++filt", text=name + "\n").strip()

    def edges(self, function):
        """(kind, callee's address or name) of each way out: call, indirect, syscall."""
        recent = collections.deque(maxlen=8)
        for text in self.code[function]:
            words = text.split()
            while words and words[0] in _PREFIXES:
                words.pop(0)
            if not words:
                continue
            mnemonic, operands = words[0], " ".join(words[1:])
            is_jump = mnemonic.startswith("j") or mnemonic in ("b", "cbz", "cbnz", "tbz", "tbnz") or mnemonic.startswith("b.")
            if mnemonic in _SYSTEM_CALLS or (mnemonic == "int" and operands.startswith("$0x80")):
                yield "syscall", text
            elif mnemonic in _INDIRECT_ARM:
                yield "indirect", text
            elif mnemonic in _CALLS or is_jump:
                yield from self._transfer(function, text, operands, is_jump, recent)
            recent.append(text)

    def _transfer(self, function, text, operands, is_jump, recent):
        if operands.startswith("*"):
            slot = re.search(r"# ([0-9a-f]+) <", operands)
            target = self.slots.get(int(slot[1], 16)) if slot else None
            if target is not None:
                yield "call", target
            elif not (is_jump and self._is_switch(operands, recent)):
                yield "indirect", text
        elif direct := re.search(r"\b([0-9a-f]+) <[^>]*>", operands):
            target = self.function_at(int(direct[1], 16))
            if target is not None and (target != function or not is_jump):
                yield "call", target

    @staticmethod
    def _is_switch(operands, recent):
        """Whether a jump goes through the table of a switch: those load 32-bit offsets, or index a table of addresses in place."""
        return "(,%r" in operands or any(text.startswith("movslq") and ",4)" in text for text in recent)


def check(program, allowed, roots, path_to, callees):
    """The violations; `path_to` gets the way to each function that was looked at, `callees` those that it calls."""
    queue = collections.deque()
    first = None
    for root in roots:
        found = [address for address in program.starts if not program.is_import(address) and re.search(root, program.name(address))]
        if not found:
            yield f"no function matches the root {root}"
        for address in found:
            path_to[address] = [program.name(address)]
            queue.append(address)
        first = found if first is None else first
    by_pointer = set(queue) - set(first)
    while queue:
        function = queue.popleft()
        name, path = program.name(function), path_to[function]
        for kind, target in program.edges(function):
            if kind == "call":
                yield from follow(program, allowed, target, path, path_to, queue)
                if target in path_to:
                    callees[function].add(target)
            elif kind == "indirect" and allowed(kind, name):
                callees[function] |= by_pointer
            elif not allowed(kind, name):
                what = {"indirect": "call through a pointer", "syscall": "system call instruction"}[kind]
                yield f"{what} `{' '.join(target.split())}`: {' -> '.join(path)}"
    limit = allowed.stack_bytes()
    for function in first:
        needed, way = deepest(program, callees, function, ())
        names = " -> ".join(f"{program.name(step)} ({program.frame_bytes(step)})" for step in way)
        if needed is None:
            yield f"a stack without bounds: {names}"
        elif limit is not None and needed > limit:
            yield f"{needed} bytes of stack, where {limit} are allowed: {names}"


def deepest(program, callees, function, above):
    """(bytes of stack, way) of the way from `function` on that needs most; None bytes where it leads to itself or no one knows."""
    way = (*above, function)
    frame = program.frame_bytes(function)
    if frame is None or function in above:
        return None, way
    most, most_way = frame, way
    for callee in callees[function]:
        needed, callee_way = deepest(program, callees, callee, way)
        if needed is None:
            return None, callee_way
        if frame + needed > most:
            most, most_way = frame + needed, callee_way
    return most, most_way


def follow(program, allowed, target, path, path_to, queue):
    is_defined = isinstance(target, int) and target in program.code and not program.is_import(target)
    callee = program.name(target) if isinstance(target, int) and target in program.code else program.demangle(str(target))
    trail = " -> ".join([*path, callee])
    if callee in _LAZY_TLS:
        yield f"thread-local storage that is allocated when first touched: {trail}"
    elif allowed("leaf", callee):
        return
    elif is_defined and (target in path_to or allowed("walk", callee)):
        if target not in path_to:
            path_to[target] = [*path, callee]
            queue.append(target)
    else:
        yield f"call to {callee}, which the list does not allow: {trail}"


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program = Program(sys.argv[1])
    allowed = Allowed(sys.argv[2])
    path_to, callees = {}, collections.defaultdict(set)
    violations = list(dict.fromkeys(check(program, allowed, sys.argv[3:], path_to, callees)))
    if violations:
        print("\n".join(violations))
    else:
        first = next(iter(path_to))
        print(f"the handler calls nothing off its list; looked at {len(path_to)} functions; they need at most",
              f"{deepest(program, callees, first, ())[0]} bytes of stack")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
