#!/usr/bin/env python3
"""The rules of this source tree that a compiler does not know.

  tidy.py ROOT            reports every violation below ROOT/include, ROOT/src, ROOT/tests and ROOT/bench
  tidy.py ROOT format TOOL           asks clang-format
  tidy.py ROOT lint TOOL BUILD       asks clang-tidy about each source of the library

One line for each violation, `file:line: rule`; exit status 1 if there is any. A tool that is missing skips (77), with the reason.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import source

# A folder includes itself and the ranks above its own line, never a neighbour of its rank.
RANKS = [["base"], ["arch"], ["core"], ["clock"], ["ring", "unwind", "provider", "aggregate"], ["encode", "symbolize"], ["export"],
         ["platform"], ["runtime"], ["."], ["http", "allocations", "locks", "exceptions", "process"], ["worker"], ["testing"],
         ["preload", "cli", "examples"], ["gperftools"]]
RANK_OF = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}
# The rooms of a folder that has some, lowest first: a room includes itself, those before it, and what stands in the folder outside of rooms.
ROOMS = {
    "core": ["settings"],
    "unwind": ["pdata", "decoded"],
    "encode": ["firefox", "html", "pprof", "svg"],
    "symbolize": ["images", "elf", "dwarf", "pe", "names"],
    "platform": ["files", "memory", "signals"],
    "runtime": ["code", "channels", "capture", "threads", "drain", "polls", "session", "control"],
    "http": ["backends", "pull"],
    "worker": ["shared", "program", "serve"],
    "testing": ["fakes"],
    "preload": ["exec"],
    "cli": ["ui", "profile", "jit", "perf", "readers", "commands", "compare", "pgo", "worker", "record", "live"],
}
SYSTEMS = {"linux", "windows"}  # the part of a folder, or of a room, that is one system's
# The folders of src/ that are libraries or programs of their own; all others are in the library strobe. Examples are a program each.
LIBRARIES = {"allocations", "cli", "exceptions", "gperftools", "http", "locks", "preload", "process", "worker"}
MAX_FOLDER_FILES = 22
NAMESPACES = {"strobe", "strobe::internal", "strobe::testing", "internal", "testing", ""}
MAX_FILE_LINES = 440
MAX_FUNCTION_LINES = 50
MAX_COLUMNS = 100
MACRO_FOLDERS = {"platform", "arch", "examples"}
# Macros that say which system or processor the build is for; compilers and sanitizers are asked
# about everywhere.
SYSTEM_MACRO = re.compile(r"\b(_WIN32|_WIN64|WIN32|__linux__|__linux|linux|__unix__|__APPLE__|__MACH__|__FreeBSD__|__ANDROID__|__GLIBC__"
                          r"|__x86_64__|_M_X64|__aarch64__|_M_ARM64|__i386__|_M_IX86|__arm__|__riscv|__SSE\w*|__AVX\w*|__ARM_NEON)\b")
# A register's own name, or a constant for it that arch/ does not define.
CPU_REGISTER = re.compile(r"(?<!X86_64Encoding::)\bk?[rR](?:[abcd]x|[sd]i|[sb]p|ip)\b|\bk?[xX](?:29|30)\b")

# Words that have gone, and the one that stands in their place.
RETIRED = {
    "Slot": "Channel, or RegisteredThread",
    "Seat": "SharedRegistration",
    "SampledThread": "SampleTarget",
    "ThreadLink": "RegistrationLink",
    "ExportWorker": "OutputThreads",
    "WorkerCore": "RemoteCore: it runs in the program",
    "WorkerProfiler": "RemoteProfiler: it runs in the program",
    "ClientPlatform": "RemotePlatform",
    "ServedPlatform": "WorkerPlatform",
    "Paper": "Printer",
    "Subject": "FilteredProfile",
    "HasGone": "WasUnloaded",
    "SeeTo": "Update",
    "Look": "Poll",
}
# Hash tables have slots, and so have stacks.
RETIRED_WORD = re.compile(r"\b(?:(Slot)(?:Arena|Blocks|Thread|Drain|Accounts|Token)|(" + "|".join(RETIRED) + r"))\b")
MAY_SAY_SLOT = {"core", "aggregate", "unwind", "arch", "symbolize", "export"}


def folder_of(relative):
    """The layer of a path below include/strobe or src: its first folder, '.' for the root's own files."""
    parts = relative.parts[:-1]
    return parts[0] if parts else "."


def room_of(relative):
    """The room of a path below include/strobe or src; None outside of rooms. KeyError if the folder has no such room."""
    folder, *inner = relative.parts[:-1] or ["."]
    inner = [part for part in inner if part not in SYSTEMS]
    if not inner:
        return None
    if len(inner) > 1 or inner[0] not in ROOMS.get(folder, []):
        raise KeyError("/".join(inner))
    return inner[0]


def is_below(folder, included, room):
    """Whether code in `room` may include `included`, a room of the same folder; either is None outside of rooms."""
    rooms = ROOMS.get(folder, [])
    return included is None or room is None or rooms.index(included) <= rooms.index(room)


def check_includes(where, folder, room, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*["<]((?:strobe|src)/[^">]+)[">]', line) or re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if not match:
            continue
        target = match.group(1)
        relative = pathlib.PurePath(target)
        if relative.parts[0] in ("strobe", "src"):
            relative = pathlib.PurePath(*relative.parts[1:])
        elif relative.parts[0] == "..":
            relative = pathlib.PurePath(os.path.normpath(where.parent / relative))
            relative = relative.relative_to("src") if relative.is_relative_to("src") else relative
        elif relative.parts[0] in ROOMS.get(folder, []):  # from a folder that is searched for headers
            relative = pathlib.PurePath(folder, relative)
        elif relative.parts[0] not in RANK_OF:
            continue
        included = folder_of(relative)
        if included not in RANK_OF:
            continue
        if included == folder:
            try:
                if not is_below(folder, room_of(relative), room):
                    yield f"{where}:{number}: {folder}/{room}/ must not include {target}: it is not lower"
            except KeyError:
                pass  # reported where the file is
            continue
        if RANK_OF[included] >= RANK_OF[folder]:
            yield f"{where}:{number}: {folder}/ must not include {target}: it is not lower"


def check_macros(where, folder, text):
    if folder in MACRO_FOLDERS:
        return
    for number, line in enumerate(source.blanked(text).splitlines(), 1):
        if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)", line) and (match := SYSTEM_MACRO.search(line)):
            yield f"{where}:{number}: {match.group(1)} is asked about only under platform/ and arch/"


def check_registers(where, folder, text):
    if folder in MACRO_FOLDERS:
        return
    for number, line in enumerate(source.blanked(text).splitlines(), 1):
        if match := CPU_REGISTER.search(line):
            yield f"{where}:{number}: {match.group(0)} is a register of one CPU: those are known only under platform/ and arch/"


def check_words(where, folder, text):
    for number, line in enumerate(source.blanked(text).splitlines(), 1):
        for match in RETIRED_WORD.finditer(line):
            word = match[1] or match[2]
            if match[0] != "Slot" or folder not in MAY_SAY_SLOT:
                yield f"{where}:{number}: {match[0]} is no word of this tree any more: {RETIRED[word]}"


def check_columns(where, text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            yield f"{where}:{number}: {len(line)} columns (at most {MAX_COLUMNS})"


def check_sizes(where, text):
    lines = text.splitlines()
    first_comment = "\n".join(line for line in lines[:15] if line.startswith("//"))
    if len(lines) > MAX_FILE_LINES and "lines long" not in first_comment:
        yield (f"{where}:{MAX_FILE_LINES + 1}: {len(lines)} lines; over {MAX_FILE_LINES} needs a reason in the first comment "
               "(\"... lines long because ...\")")
    for first, last, heading in source.functions(text):
        if last - first + 1 > MAX_FUNCTION_LINES:
            yield f"{where}:{first}: function of {last - first + 1} lines (at most {MAX_FUNCTION_LINES}): {heading[:80]}"


def check_namespaces(where, text):
    for number, name in source.namespaces(text):
        if name not in NAMESPACES:
            yield f"{where}:{number}: namespace {name}: there are only strobe, strobe::internal and strobe::testing"


def check_header(root, where, relative, text):
    if "#pragma once" not in text:
        yield f"{where}:1: no #pragma once"
    folder = relative.parts[0] if len(relative.parts) > 1 else "root"
    test = next((path.relative_to(root) for path in sorted((root / "tests" / folder).rglob(f"{relative.stem}_test.cc"))), None)
    if test is None:
        yield f"{where}:1: no test: tests/{folder}/{relative.stem}_test.cc is missing"
        return
    # So that it compiles the header as if alone.
    first = re.search(r'^\s*#\s*include\s*[<"](.*?)[>"]', (root / test).read_text(), re.MULTILINE)
    if not first or first[1] != f"strobe/{relative.as_posix()}":
        yield f"{test}:1: does not include strobe/{relative.as_posix()} first"


def included_by_tests(root):
    """The headers below root/src that the tests include: by a path from the test itself, or from root/src."""
    included = set()
    for path in cxx_files(root / "tests", (".cc",)):
        if not path.stem.endswith("_test"):
            continue
        for target in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE):
            for base in (path.parent, root / "src"):
                included.add(pathlib.Path(os.path.normpath(base / target)))
    return included


def check_private_headers(root):
    included = included_by_tests(root)
    for path in cxx_files(root / "src", (".h",)):
        if path not in included:
            yield f"{path.relative_to(root)}:1: no test includes it"


def cxx_files(directory, suffixes=(".h", ".cc")):
    return sorted(path for path in directory.rglob("*") if path.suffix in suffixes) if directory.exists() else []


def check_folders(root):
    for base in ("include", "src"):
        for folder in sorted(path for path in (root / base).rglob("*") if path.is_dir()):
            count = sum(path.is_file() for path in folder.iterdir())
            if count > MAX_FOLDER_FILES:
                yield f"{folder.relative_to(root)}:1: {count} files (at most {MAX_FOLDER_FILES}): give them rooms"


def library_of(relative):
    """The library that a source below src/ is compiled into: its files may meet in one translation unit."""
    folder = relative.parts[0]
    return folder if folder in LIBRARIES else "strobe"


# Each test of these folders is a program of its own.
PROGRAM_FOLDERS = {"integration", "exceptions"}


def meeting_files(root):
    """(path, where it is, what it may be compiled into, its systems) of each source that may meet others in a unit of a unity build."""
    for base in ("src", "tests"):
        for path in cxx_files(root / base, (".cc",)):
            relative = path.relative_to(root / base)
            if base == "src":
                group = None if relative.parts[0] == "examples" else library_of(relative)
            else:
                group = f"tests/{relative.parts[0]}" if path.stem.endswith("_test") and relative.parts[0] not in PROGRAM_FOLDERS else None
            if group is not None:
                yield path, path.relative_to(root), group, SYSTEMS & {*relative.parts, relative.stem.split("_")[0]}


def check_units(root):
    """Files that may meet have names and functions of their own: which meet depends on their number. Two systems' files never do."""
    seen = {}
    for path, where, group, systems in meeting_files(root):
        text = path.read_text()
        # Aliases of tests are short, and of one file: those that meet say so when they are compiled.
        own = [(number, "name", name, definition) for number, name, definition in source.file_names(text)
               if group in LIBRARIES | {"strobe"} or not definition.startswith("using ")]
        own += [(number, "function", function, "") for number, function in source.file_functions(text)]
        for number, kind, name, definition in own:
            others = seen.setdefault((group, name), [])
            for other, other_systems, other_definition in others:
                may_meet = not systems or not other_systems or systems == other_systems
                if other != where and may_meet and not (definition == other_definition and definition.startswith("using ")):
                    yield f"{where}:{number}: {name.rsplit('::')[-1]} is a {kind} of {other}, too: both may be in one unit of a unity build"
            others.append((where, systems, definition))


def check_tree(root):
    yield from check_folders(root)
    yield from check_units(root)
    for base in ("include/strobe", "src"):
        for path in cxx_files(root / base):
            where, relative, text = path.relative_to(root), path.relative_to(root / base), path.read_text()
            folder = folder_of(relative)
            try:
                room = room_of(relative)
            except KeyError as unknown:
                yield f"{where}:1: {folder}/ has no room {unknown.args[0]} (ROOMS in tidy.py)"
                room = None
            if folder in RANK_OF:
                yield from check_includes(where, folder, room, text)
                yield from check_macros(where, folder, text)
                yield from check_registers(where, folder, text)
                yield from check_namespaces(where, text)
                yield from check_words(where, folder, text)
            else:
                yield f"{where}:1: {folder}/ has no rank among the layers (RANKS in tidy.py)"
            yield from check_sizes(where, text)
            if base == "include/strobe":
                yield from check_header(root, where, relative, text)
    yield from check_private_headers(root)
    for base in ("include", "src", "tests", "bench"):
        for path in cxx_files(root / base):
            yield from check_columns(path.relative_to(root), path.read_text())


def pool(work, items):
    """`work` over `items` on as many threads as there are processors; the violations of all."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as executor:
        for result in executor.map(work, items):
            yield from result


def check_format(root, tool):
    version = subprocess.run([tool, "--version"], text=True, capture_output=True).stdout
    if "version 14" not in version:
        skip(f"clang-format 14 decides about the format, and this is: {version.strip()}")
    paths = [path for base in ("include", "src", "tests", "bench") for path in cxx_files(root / base)]
    result = subprocess.run([tool, "--dry-run", "--Werror", *map(str, paths)], text=True, capture_output=True)
    found = sorted({line.split(": error")[0] for line in result.stderr.splitlines() if ": error" in line})
    return [f"{pathlib.Path(place).as_posix().removeprefix(str(root) + '/')}: not formatted (clang-format-14 -i)" for place in found]


def compiled_files(build):
    database = json.loads((build / "compile_commands.json").read_text())
    return {(pathlib.Path(entry["directory"]) / entry["file"]).resolve() for entry in database}


def check_lint(root, tool, build):
    wanted = [path for path in compiled_files(pathlib.Path(build)) if path.is_relative_to(root / "src") and not path.is_relative_to(root / "src/examples")]
    # What was changed last comes first: it is what is most likely to be wrong.
    wanted.sort(key=lambda path: (-path.stat().st_mtime, path))

    def lint(path):
        result = subprocess.run([tool, "-p", str(build), "--quiet", str(path)], text=True, capture_output=True)
        found = (re.match(r"(\S+?):(\d+:\d+: (?:warning|error): .*)", line) for line in result.stdout.splitlines())
        return sorted({f"{os.path.relpath(os.path.join(build, match[1]), root)}:{match[2]}" for match in found if match})

    yield from pool(lint, wanted)


def skip(reason):
    print(reason)
    sys.exit(77)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    mode, *arguments = sys.argv[2:] or ["tree"]
    if mode in ("format", "lint") and not shutil.which(arguments[0]):
        skip(f"{arguments[0]} is not installed")
    if mode == "format":
        violations = check_format(root, arguments[0])
    elif mode == "lint":
        violations = check_lint(root, arguments[0], arguments[1])
    else:
        violations = check_tree(root)
    seen = set()
    for violation in violations:
        if violation not in seen:
            print(violation, flush=True)
        seen.add(violation)
    if not seen:
        print(f"{mode}: no violation")
    sys.exit(1 if seen else 0)


if __name__ == "__main__":
    main()
