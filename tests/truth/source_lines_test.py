#!/usr/bin/env python3
"""Checks the lines and inlined functions that Strobe reads against those of llvm-symbolizer and addr2line.

  source_lines_test.py TOOL SOURCES COMPILER...

TOOL is source_lines. Builds the program in SOURCES in every form in which compilers and distributions leave debug information, and asks
all three about every byte of its functions. At least 99.9 % of the answers must be equal. What a machine has no tools for is left out by
name. The last line is "N forms agree"; exit status 1 if one does not.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from newest import newest  # noqa: E402

LEAST_EQUAL = 0.999
PACKER_TIMEOUT_S = 10
IS_CLANG = "clang" in " ".join(sys.argv[3:])
LLVM = shutil.which(newest("llvm-symbolizer"))
ADDR2LINE = shutil.which("addr2line")
WINDOWS_COMPILERS = ("x86_64-w64-mingw32-g++-posix", "x86_64-w64-mingw32-g++")
# What binutils' addr2line (2.40) does not read, or does not tell apart; nor does it of clang's programs.
NOT_FOR_ADDR2LINE = {"type units", "64-bit offsets", "link-time optimisation", "split, DWARF 5", "split, DWARF 4",
                     "Windows, DWARF 5"}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, capture_output=True, **options).stdout


def answers(text):
    """The frames of each address: a list of (name, file, line, column)."""
    result, frames = [], []
    lines = iter(text.splitlines())
    for line in lines:
        if not line:
            result.append(frames)
            frames = []
            continue
        place = re.sub(r" \(discriminator \d+\)$", "", next(lines))
        file, row, *column = place.rsplit(":", 2) if re.search(r":\d+:\d+$", place) else place.rsplit(":", 1)
        row = int(row) if row.isdigit() else 0
        file = "??" if file == "??" or row == 0 else os.path.normpath(file)
        frames.append((line, file, row, int(column[0]) if column else 0))
    return result


def addr2line_answers(text):
    """Its answer to each address begins with the address itself."""
    result = []
    for part in re.split(r"^0x[0-9a-f]+\n", text, flags=re.M)[1:]:
        result += answers(part + "\n")
    return result


def functions(image):
    """The addresses of the image's functions, and all names of each."""
    addresses, names = set(), {}
    for line in run("nm", "--defined-only", "-S", image).splitlines():
        match = re.match(r"([0-9a-f]+) ([0-9a-f]+) [tTwW] (\S+)$", line)
        if not match:
            continue
        start, size = int(match[1], 16), int(match[2], 16)
        addresses.update(range(start, start + size))
        for address in range(start, start + size):
            names.setdefault(address, set()).add(match[3])
    return sorted(addresses), names


def windows_functions(image):
    """The same of a Windows image, whose symbols have no sizes: a function ends where the next one begins. Those of the program only."""
    symbols = sorted((int(line.split()[0], 16), line.split()[2]) for line in run("nm", "--defined-only", image).splitlines()
                     if re.match(r"[0-9a-f]+ [tT] ", line))
    addresses, names = set(), {}
    starts = sorted({start for start, _ in symbols})
    ends = dict(zip(starts, starts[1:]))
    for start, name in symbols:
        if not re.match(r"_Z|main$", name) or start not in ends:
            continue
        for address in range(start, ends[start]):
            names.setdefault(address, set()).add(name)
        addresses.update(range(start, ends[start]))
    return sorted(addresses), names


def places(frames, with_column):
    return [frame[1:] if with_column else (os.path.basename(frame[1]), frame[2]) for frame in frames]


def check(form, tool, image, symbols, arguments=(), functions_of=functions):
    """True if the tool's answers about `image` are those of the others about `symbols`, the file with all of its debug information."""
    addresses, names = functions_of(symbols)
    listed = "".join(f"0x{address:x}\n" for address in addresses)
    own = answers(run(tool, image, *arguments, input=listed))
    assert len(own) == len(addresses), f"{form}: {len(own)} answers to {len(addresses)} addresses"
    inlined = max(map(len, own))
    is_equal = True
    peers = []
    if LLVM:
        peers.append(("llvm-symbolizer", answers(run(LLVM, "--no-demangle", f"--obj={symbols}", input=listed)), True))
    if ADDR2LINE and form not in NOT_FOR_ADDR2LINE and not IS_CLANG:
        peers.append(("addr2line", addr2line_answers(run(ADDR2LINE, "-a", "-i", "-f", "-e", symbols, input=listed)), False))
    for peer, theirs, is_exact in peers:
        different = []
        for address, ours, other in zip(addresses, own, theirs):
            equal = places(ours, is_exact) == places(other, is_exact)
            if is_exact:
                equal &= [frame[0] for frame in ours[:-1]] == [frame[0] for frame in other[:-1]]
                equal &= ours[-1][0] in names[address]
            if not equal:
                different.append((address, ours, other))
        share = 1 - len(different) / len(addresses)
        print(f"{form}: {share:.3%} of {len(addresses)} as {peer}; up to {inlined} functions deep")
        if share < LEAST_EQUAL:
            is_equal = False
            for address, ours, other in different[:3]:
                print(f"  {address:#x}\n    here {ours}\n    {peer} {other}")
    return is_equal


def build(compiler, sources, directory, flags, link=("-Wl,--build-id=sha1",)):
    image = directory / "program.exe"  # MinGW's name, and any other compiler takes it
    objects = []
    for name in ("main", "other"):
        objects.append(directory / f"{name}.o")
        run(*compiler, "-std=c++20", "-O2", "-g", *flags, "-c", sources / f"{name}.cc", "-o", objects[-1], cwd=directory)
    run(*compiler, "-O2", *flags, *objects, *link, "-o", image, cwd=directory)
    return image


def strip(image, *flags):
    stripped = image.with_name("stripped")
    run("objcopy", "--strip-all", *flags, image, stripped)
    return stripped


def keep_debug(image, name):
    name.parent.mkdir(parents=True, exist_ok=True)
    run("objcopy", "--only-keep-debug", image, name)
    return name


def build_id(image):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", image))[1]


def in_build_id_directory(image, directory):
    identity = build_id(image)
    debug = keep_debug(image, directory / "debug/.build-id" / identity[:2] / f"{identity[2:]}.debug")
    return debug, directory / "debug"


def check_separate(form, tool, image, directory):
    """Debug information in files of its own: by build id, and by a link."""
    _, debug_directory = in_build_id_directory(image, directory)
    is_equal = check(form + ", build-id directory", tool, strip(image), image, [debug_directory])
    link = keep_debug(image, directory / "linked.debug")
    linked = strip(image, f"--add-gnu-debuglink={link}")
    is_equal &= check(form + ", debug link", tool, linked, image)
    # Without a build id, the link's checksum tells which file belongs to the image.
    run("objcopy", "--remove-section=.note.gnu.build-id", image, directory / "nameless")
    link = keep_debug(directory / "nameless", directory / "nameless.debug")
    linked = strip(directory / "nameless", f"--add-gnu-debuglink={link}")
    is_equal &= check(form + ", debug link without build id", tool, linked, image)
    with open(link, "ab") as file:
        file.write(b"changed")
    refused = answers(run_any(tool, linked, functions(image)[0]))
    if any(frame[1] != "??" for frames in refused for frame in frames):
        print(form + ": a file with another checksum was believed")
        is_equal = False
    return is_equal


def check_mini(tool, image, directory):
    """The names of functions that are not exported, which some distributions leave in a stripped file."""
    mini = directory / "mini"
    run("objcopy", "--strip-debug", "--remove-section=.comment", image, mini)
    run("xz", "-k", mini)
    stripped = strip(image, f"--add-section=.gnu_debugdata={mini}.xz")
    listed = "".join(f"{address:x}\n" for address in functions(image)[0])
    full, found = (answers(run(tool, "--names", path, input=listed)) for path in (image, stripped))
    missing = sum(a[0][0] != b[0][0] for a, b in zip(full, found))
    print(f"mini symbols: {len(full) - missing} of {len(full)} names are those of the whole file")
    return missing == 0


def run_any(tool, image, addresses):
    return subprocess.run([tool, image], input="".join(f"{a:x}\n" for a in addresses), text=True, capture_output=True).stdout


def check_shared(form, tool, image, other, directory):
    """What dwz makes of the debug information of one file, and of two."""
    for path in (image, other):
        in_build_id_directory(path, directory)
    debug = [directory / "debug/.build-id" / build_id(path)[:2] / f"{build_id(path)[2:]}.debug" for path in (image, other)]
    single = directory / "single"
    run("dwz", "-o", single, image)
    is_equal = check(form + ", dwz", tool, single, image)
    run("dwz", "-m", directory / "debug/common.debug", "-M", directory / "debug/common.debug", *debug)
    return is_equal & check(form + ", dwz of several files", tool, strip(image), image, [directory / "debug"])


def forms():
    """The flags of each form: for compiling, and for linking."""
    yield "DWARF 5", ["-gdwarf-5"], []
    yield "DWARF 4", ["-gdwarf-4"], []
    yield "DWARF 3", ["-gdwarf-3"], []
    yield "DWARF 2", ["-gdwarf-2"], []
    yield "without optimisation", ["-O0"], []
    yield "lines only", ["-g1"], []
    yield "compressed", ["-gz"], ["-gz"]
    yield "unused code left out", ["-ffunction-sections"], ["-Wl,--gc-sections"]
    yield "type units", ["-fdebug-types-section"], []
    yield "fixed address", ["-fno-pie", "-no-pie"], []
    if not IS_CLANG:
        yield "64-bit offsets", ["-gdwarf64"], []
        yield "link-time optimisation", ["-flto"], []
        yield "no columns", ["-gno-column-info"], []
    elif shutil.which(newest("ld.lld")):
        yield "link-time optimisation", ["-flto", "-fuse-ld=" + newest("ld.lld").removeprefix("ld.")], []


def split_forms():
    yield "split, DWARF 5", ["-gsplit-dwarf", "-gdwarf-5"]
    yield "split, DWARF 4", ["-gsplit-dwarf", "-gdwarf-4"]


def pack(form, image):
    """Whether a packer has put all split units into one file. On those of GCC's DWARF 5, llvm-dwp 14 does not end, and dwp 2.40 crashes."""
    packer = next((name for name in (newest("llvm-dwp"), "dwp") if shutil.which(name)), None)
    if not packer:
        return False
    try:
        run(packer, "-e", image, "-o", f"{image}.dwp", timeout=PACKER_TIMEOUT_S)
        return True
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        print(f"SKIP {form}, packed: {packer} crashed, or did not end in {PACKER_TIMEOUT_S} s")
        pathlib.Path(f"{image}.dwp").unlink(missing_ok=True)
        return False


def check_all(tool, sources, compiler, directory):
    results = []

    def place(name):
        path = directory / re.sub(r"\W+", "_", name)
        path.mkdir()
        return path

    for form, flags, link in forms():
        image = build(compiler, sources, place(form), flags, ["-Wl,--build-id=sha1", *link])
        results.append(check(form, tool, image, image))
    for form, flags in split_forms():
        image = build(compiler, sources, place(form), flags)
        results.append(check(form, tool, image, image))
        if pack(form, image):
            for entries in image.parent.glob("*.dwo"):
                entries.rename(entries.with_suffix(".kept"))
            own = functions(image)[0][:1]
            assert len(answers(run_any(tool, image, own))) == 1
            packed = run_any(tool, image, functions(image)[0])
            for entries in image.parent.glob("*.kept"):
                entries.rename(entries.with_suffix(".dwo"))
            os.remove(f"{image}.dwp")
            unpacked = run_any(tool, image, functions(image)[0])
            print(f"{form}, packed: {'the same' if packed == unpacked else 'another answer'}")
            results.append(packed == unpacked)
    if windows := next(filter(shutil.which, WINDOWS_COMPILERS), None):
        for version in ("5", "4"):
            form = f"Windows, DWARF {version}"
            image = build([windows], sources, place(form), [f"-gdwarf-{version}"], ())
            results.append(check(form, tool, image, image, functions_of=windows_functions))
    else:
        print("SKIP Windows' images: no g++ of MinGW on this machine")
    separate = place("separate")
    image = build(compiler, sources, separate, ["-gdwarf-5"])
    results.append(check_separate("separate", tool, image, separate))
    if shutil.which("xz"):
        results.append(check_mini(tool, image, place("mini")))
    else:
        print("SKIP mini symbols: no xz on this machine")
    if shutil.which("dwz"):
        shared = place("shared")
        (shared / "other").mkdir()
        image = build(compiler, sources, shared, ["-gdwarf-4"])
        other = build(compiler, sources, shared / "other", ["-gdwarf-4", "-O1"])
        results.append(check_shared("shared", tool, image, other, shared))
    else:
        print("SKIP dwz's forms: no dwz on this machine")
    return results


def main():
    tool, sources, *compiler = sys.argv[1:]
    if not LLVM and not ADDR2LINE:
        print("SKIP: neither llvm-symbolizer nor addr2line on this machine")
        return 77
    with tempfile.TemporaryDirectory(prefix="strobe-lines-") as name:
        results = check_all(tool, pathlib.Path(sources), compiler, pathlib.Path(name))
    print(f"{sum(results)} forms agree" + ("" if all(results) else f", {results.count(False)} do not"))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
