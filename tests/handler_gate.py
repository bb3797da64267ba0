#!/usr/bin/env python3
"""Checks in the machine code that the signal handler calls nothing it must not.

  handler_gate.py EXECUTABLE ALLOW_FILE ROOT...

Starts at every function whose demangled name matches one of the regular expressions ROOT, follows every direct call and jump, and
reports, each with the path that leads there: a call to a function that ALLOW_FILE does not name, a call through a pointer, a system call
instruction, and an access to thread-local storage that is allocated when first touched. What is reached only through a pointer must be
a ROOT of its own. Exit status 1 if anything is reported.

A line of ALLOW_FILE is `KIND REGEX # reason`, REGEX to be found in a demangled name:
  walk      may be called, and is checked in its turn        indirect  may call through a pointer
  leaf      may be called, and is not looked into            syscall   may contain a system call instruction
"""
import bisect
import collections
import re
import subprocess
import sys

KINDS = ("walk", "leaf", "indirect", "syscall")
_PREFIXES = {"bnd", "notrack", "rep", "repz", "repnz", "lock", "data16", "rex.W", "cs", "ds"}
_CALLS = {"call", "callq", "bl"}
_INDIRECT_ARM = {"blr", "br", "blraa", "braa"}
_SYSTEM_CALLS = {"syscall", "sysenter", "svc"}
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
            if target != function and target is not None:
                yield "call", target

    @staticmethod
    def _is_switch(operands, recent):
        """Whether a jump goes through the table of a switch: those load 32-bit offsets, or index a table of addresses in place."""
        return "(,%r" in operands or any(text.startswith("movslq") and ",4)" in text for text in recent)


def check(program, allowed, roots, path_to):
    """The violations; `path_to` gets the way to each function that was looked at."""
    queue = collections.deque()
    for root in roots:
        found = [address for address in program.starts if not program.is_import(address) and re.search(root, program.name(address))]
        if not found:
            yield f"no function matches the root {root}"
        for address in found:
            path_to[address] = [program.name(address)]
            queue.append(address)
    while queue:
        function = queue.popleft()
        name, path = program.name(function), path_to[function]
        for kind, target in program.edges(function):
            if kind == "call":
                yield from follow(program, allowed, target, path, path_to, queue)
            elif not allowed(kind, name):
                what = {"indirect": "call through a pointer", "syscall": "system call instruction"}[kind]
                yield f"{what} `{' '.join(target.split())}`: {' -> '.join(path)}"


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
    path_to = {}
    violations = list(dict.fromkeys(check(program, Allowed(sys.argv[2]), sys.argv[3:], path_to)))
    print("\n".join(violations) or f"the handler calls nothing off its list; looked at {len(path_to)} functions")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
