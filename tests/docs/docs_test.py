#!/usr/bin/env python3
"""Holds the documents to the tree, and runs what they say.

  docs_test.py links SOURCE_ROOT                     each link leads to a file, and to an anchor that is there
  docs_test.py diagnosis SOURCE_ROOT                 each sentence of Diagnose() has a heading in troubleshooting.md
  docs_test.py compiled SOURCE_ROOT COMPILER...      each block of C++ and C compiles
  docs_test.py commands SOURCE_ROOT BUILD_ROOT STROBE SERVER BEFORE AFTER
                                                     each block of the language sh runs

The documents are README.md and what is below src/docs. Blocks of the language `console` need a network, root or another build of the tree:
`commands` prints the first line of each.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from markdown import Document

LANGUAGES = {"sh", "console", "cpp", "c", "cmake", "meson", "starlark", "ini", "yaml"}
MAX_COLUMNS = 120
MAX_CONSOLE_BLOCKS = 6
BLOCK_TIMEOUT_S = 60
FOLDERS = ("include", "src", "tests", "bench")


def documents(root):
    return [Document(path) for path in [root / "README.md", *sorted((root / "src/docs").rglob("*.md"))]]


def report(failures, what):
    for failure in failures:
        print(failure)
    if failures:
        sys.exit(f"{len(failures)} failures")
    print(what)


# Links, columns, languages.

def links(root):
    everything = {path.resolve(): Document(path) for folder in FOLDERS for path in (root / folder).rglob("*.md")}
    everything[(root / "README.md").resolve()] = Document(root / "README.md")
    failures, count = [], 0
    for path, document in sorted(everything.items()):
        where = path.relative_to(root)
        for line, target in document.links():
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            file, _, anchor = target.partition("#")
            linked = (path.parent / file).resolve() if file else path
            if not linked.exists():
                failures.append(f"{where}:{line}: there is no {target}")
            elif anchor and (linked not in everything or anchor not in everything[linked].anchors()):
                failures.append(f"{where}:{line}: there is no heading for {target}")
    for document in documents(root):
        where = document.path.relative_to(root)
        for line, text in enumerate(document.prose, 1):
            if len(text) > MAX_COLUMNS and not text.startswith("|"):
                failures.append(f"{where}:{line}: {len(text)} columns (at most {MAX_COLUMNS})")
        failures += [f"{where}:{block.line}: a block of the language {block.language!r}; there are {sorted(LANGUAGES)}"
                     for block in document.blocks if block.language not in LANGUAGES]
    failures += list(unlinked(root))
    failures += list(other_build_files(root))
    report(failures, f"{count} links in {len(everything)} documents")


def unlinked(root):
    """The documents that src/docs/README.md does not name."""
    index = Document(root / "src/docs/README.md")
    named = {(index.path.parent / target.partition("#")[0]).resolve() for _, target in index.links()}
    for path in sorted((root / "src/docs").rglob("*.md")):
        if path.resolve() not in named | {index.path.resolve()}:
            yield f"{path.relative_to(root)}: src/docs/README.md has no link to it"


def other_build_files(root):
    """Blocks for build systems have the lines that tests build by, or that the tree ships, and no others."""
    files = {"cmake": ["tests/consumer/cmake/CMakeLists.txt", "tests/consumer/fetchcontent/CMakeLists.txt"],
             "meson": ["tests/consumer/subproject/meson.build"], "starlark": ["src/packaging/bazel/MODULE.bazel"]}
    for language, names in files.items():
        built = "".join((root / name).read_text() for name in names).replace("../", "").splitlines()
        for document in documents(root):
            for block in document.of(language):
                for offset, line in enumerate(block.text.splitlines()):
                    if line not in built:
                        yield f"{document.path.relative_to(root)}:{block.line + offset}: not what {' or '.join(names)} has: {line}"


# Diagnose().

_TEXT = r'"(?:\\.|[^"\\])*"'


def sentences(source):
    """What each statement of `source` that makes a line says first, with … for what is no literal."""
    for match in re.finditer(r"lines\.push_back\(|add_unless_zero\(|return absl::StrCat\(", source):
        statement = source[match.end():source.index(";\n", match.end())]
        if re.search(r"\btext\b|BlockingThreads\(", statement):
            continue  # what another function says, which stands in its own file
        text, end = ("…" if match[0].startswith("add_unless_zero") else ""), 0
        statement = re.sub(r"^\s*absl::StrCat\(", "", statement)
        for literal in re.finditer(_TEXT, statement):
            between = statement[end:literal.start()]
            text += ("…" if re.search(r"\w", between) else "") + (" " if match[0].startswith("add_unless_zero") and text == "…" else "")
            text, end = text + literal[0][1:-1], literal.end()
        if re.search(r"\w", statement[end:]):
            text += "…"
        if re.search(r"\w", text):
            yield re.split(r"[.:;](?= |$|…)| \(", text)[0]


def plain(text):
    return re.sub(r"\s*…\s*", "…", text.removeprefix("Note that ")).strip("…. ")


def diagnosis(root):
    headings = {plain(re.sub(r"[:;,.](?: …)?$", "", heading)) for heading in Document(root / "src/docs/troubleshooting.md").headings()}
    failures, count = [], 0
    for file in ("src/runtime/control/diagnosis.cc", "src/runtime/threads/signal_mask.cc", "src/core/unregistered_threads.cc"):
        for sentence in sentences((root / file).read_text()):
            count += 1
            if plain(sentence) not in headings:
                failures.append(f"{file}: troubleshooting.md has no heading \"{sentence}\"")
    report(failures, f"{count} sentences of Diagnose() have a heading")


# C++ and C.

_FUNCTION = re.compile(r"^(?!if|for|while|switch|do|else|try)[A-Za-z].*\)(?: const| noexcept)* \{$|^\s+static constexpr", re.MULTILINE)


def unit(blocks, root, language):
    """One translation unit of all blocks: includes first, each block in a scope of its own."""
    includes, scopes = ['#include "names.h"'], []
    for number, (path, block) in enumerate(blocks):
        lines = []
        for offset, line in enumerate(block.text.splitlines()):
            if line.startswith("#include"):
                includes.append(f'#line {block.line + offset} "{path.relative_to(root)}"\n{line}')
                line = ""
            lines.append(line)
        text = f'#line {block.line} "{path.relative_to(root)}"\n' + "\n".join(lines)
        if language == "c":
            scopes.append(f"#define main main_{number}\n{text}\n#undef main")
        elif _FUNCTION.search(block.text):
            scopes.append(f"namespace block_{number} {{\n{text}\n}}")
        else:
            scopes.append(f"void Block{number}() {{\n{text}\n}}")
    return "\n".join([*includes, *scopes]) + "\n"


def compiled(root, *compiler):
    probe = subprocess.run([*compiler, "-x", "c++", "-E", "-"], input="#include <absl/status/status.h>\n", text=True, capture_output=True)
    if probe.returncode != 0:
        print("Abseil is not installed: its headers come from a wrap")
        sys.exit(77)
    for language, flags in (("cpp", ["-x", "c++", "-std=c++20"]), ("c", ["-x", "c", "-std=c11"])):
        blocks = [(document.path, block) for document in documents(root) for block in document.of(language)]
        present = [(path, block) for path, block in blocks if has_headers(block, compiler)]
        command = [*compiler, *flags, "-fsyntax-only", "-Wno-return-type", "-I", str(root / "include"), "-I", str(root / "tests/docs"), "-"]
        result = subprocess.run(command, input=unit(present, root, language), text=True, capture_output=True)
        if result.returncode != 0:
            sys.exit(result.stderr)
        print(f"{len(present)} blocks of {language} compile")
        for path, block in blocks:
            if (path, block) not in present:
                print(f"left out, because a library is not installed: {path.relative_to(root)}:{block.line}")


def has_headers(block, compiler):
    """Whether the libraries that a block includes, beside Strobe, are installed."""
    needed = {"<strobe/strobe_gtest.h>": "gtest/gtest.h", "<strobe/strobe_benchmark.h>": "benchmark/benchmark.h"}
    tests = "".join(f"#if !__has_include(<{header}>)\n#error\n#endif\n" for include, header in needed.items() if include in block.text)
    return not tests or subprocess.run([*compiler, "-x", "c++", "-E", "-"], input=tests, text=True, capture_output=True).returncode == 0


# Commands.

def make_prefix(root, build, prefix):
    """What an installation has: headers, libraries, and how CMake and pkg-config find them. False if these are not made."""
    (prefix / "include").mkdir(parents=True)
    (prefix / "include/strobe").symlink_to(root / "include/strobe")
    (prefix / "lib/pkgconfig").mkdir(parents=True)
    (prefix / "lib/cmake/strobe").mkdir(parents=True)
    for library in [*sorted((build / "src").rglob("libstrobe*.a")), *sorted((build / "src").glob("libstrobe-c.so*[0-9o]"))]:
        (prefix / "lib" / library.name).symlink_to(library)
    for package in sorted((build / "meson-private").glob("strobe*.pc")):
        text = re.sub(r"^prefix=.*$", f"prefix={prefix}", package.read_text(), flags=re.MULTILINE)
        (prefix / "lib/pkgconfig" / package.name).write_text(text)
    for config in sorted((build / "src/package").glob("*.cmake")):
        shutil.copy(config, prefix / "lib/cmake/strobe")
    return (prefix / "lib/pkgconfig/strobe.pc").exists()


def prepare(document, root, folder, programs):
    """The files that the documents name."""
    server, before, after = programs
    for name, program in (("server", server), ("before/program", before), ("after/program", after)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(program)
    (folder / "strobe.py").symlink_to(root / "src/examples/bindings/strobe.py")
    blocks = [block.text for block in document.of("cpp") if "int main()" in block.text]
    if blocks:
        (folder / "main.cc").write_text(blocks[0].replace("int main()", "static void RunYourProgram() {}\n\nint main()"))
    for block in [block for block in document.of("cmake") if "project(" in block.text]:
        (folder / "CMakeLists.txt").write_text(block.text)


def run_block(block, folder, environment):
    """The block's exit status and output. What it leaves running is killed."""
    shell = subprocess.Popen(["sh", "-e", "-c", block.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = shell.communicate(timeout=BLOCK_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        output, _ = shell.communicate()
        output += f"\nended after {BLOCK_TIMEOUT_S} s"
    try:
        os.killpg(shell.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return shell.returncode, output


def missing(block, strobe, packages, folder):
    """What the block needs and this machine does not have; empty if it can run."""
    if re.search(r"\bcmake\b|pkg-config", block.text) and not packages:
        return "packages: a dependency comes from a wrap"
    if re.search(r"^cmake\b", block.text, re.MULTILINE) and not shutil.which("cmake"):
        return "cmake"
    if re.search(r"record (?:-p|--perf)", block.text):
        probe = subprocess.run([strobe, "record", "--perf", "-e", "task-clock,off-cpu", "--no-top", "-o", folder / "probe.pb.gz", "--", "true"], cwd=folder,
                               stdin=subprocess.DEVNULL, text=True, capture_output=True)
        if probe.returncode != 0:
            return "perf events: " + probe.stderr.strip().splitlines()[-1]
    return ""


def commands(root, build, strobe, *programs):
    build, strobe, *programs = (pathlib.Path(path).resolve() for path in (build, strobe, *programs))
    failures, run, console, left_out = [], 0, [], []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        prefix = work / "prefix"
        packages = make_prefix(root, build, prefix)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STROBE_")}
        environment |= {"PATH": f"{strobe.parent}:{os.environ['PATH']}", "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig",
                        "CMAKE_PREFIX_PATH": str(prefix), "LC_ALL": "C.UTF-8"}
        for number, document in enumerate(documents(root)):
            folder = work / str(number)
            folder.mkdir()
            prepare(document, root, folder, programs)
            where = document.path.relative_to(root)
            console += [f"{where}:{block.line}: {block.text.splitlines()[0]}" for block in document.of("console")]
            for block in document.of("sh"):
                if reason := missing(block, strobe, packages, folder):
                    left_out.append(f"{where}:{block.line}: {reason}")
                    continue
                status, output = run_block(block, folder, environment)
                run += 1
                if status != 0:
                    failures.append(f"{where}:{block.line}: exit status {status}\n{output}")
    print(f"{len(console)} blocks that are not run here:", *console, sep="\n  ")
    if left_out:
        print(f"{len(left_out)} blocks whose needs are not met:", *left_out, sep="\n  ")
    if len(console) > MAX_CONSOLE_BLOCKS:
        failures.append(f"{len(console)} blocks of the language console are too many (at most {MAX_CONSOLE_BLOCKS})")
    report(failures, f"{run} blocks ran")


def main():
    parts = {"links": links, "diagnosis": diagnosis, "compiled": compiled, "commands": commands}
    part, root, *arguments = sys.argv[1:]
    parts[part](pathlib.Path(root).resolve(), *arguments)


if __name__ == "__main__":
    main()
