#!/usr/bin/env python3
"""Makes the file system that tests/kernels.sh boots: this machine's tools, Python, and the built tests, at the paths that they have here.

  image.py BUILD IMAGE

BUILD is a build folder of Meson's. IMAGE is a file of ext4. In it, /strobe/tests.json lists the tests that Meson knows: names, suites,
commands and environments. Fails with one line where this machine lacks what the image is made of.
"""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SUITES = {"strobe:unit", "strobe:integration"}
HARMLESS = ["library", "library_worker", "record", "record_worker", "record_alloc", "record_perf", "top", "top_machine"]
PYTHON = "/usr/bin/python3"
# What tests call. The names may be patterns; libraries come by themselves.
PACKAGES = ["bash", "binutils", "binutils-*-linux-gnu", "coreutils", "dash", "debianutils", "diffutils", "findutils", "grep", "gzip", "hostname", "libc-bin", "mount", "ncurses-base", "procps",
            "sed", "tar", "util-linux", "util-linux-extra", "python3-minimal", "python3.*-minimal", "libpython3.*-minimal",
            "libpython3.*-stdlib"]
LEFT_OUT_FOLDERS = ("/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/usr/share/info", "/usr/share/lintian")
# Beyond what is in it: what tests write where no tmpfs is, and the file system's own needs.
FREE_MIB = 256
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
FOLDERS = ["dev", "proc", "sys", "run", "tmp", "root", "etc", "mnt", "opt", "home", "srv", "var/tmp", "strobe"]
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\nuser:x:1000:1000:user:/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\nuser:x:1000:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def lines(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()


def placed(path):
    """The path with its folder's symbolic links followed, but not its own: /bin/sh is /usr/bin/sh, a link."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def tools():
    """The files of the packages."""
    files = set()
    for package in PACKAGES:
        for name in lines("dpkg-query", "-W", "-f", "${Package}:${Architecture} ${db:Status-Status}\n", package):
            name, status = name.split()
            if status == "installed":
                files.update(lines("dpkg-query", "-L", name.removesuffix(":all")))
    return {placed(path) for path in files if not path.startswith(LEFT_OUT_FOLDERS) and os.path.lexists(path) and
            (os.path.islink(path) or not os.path.isdir(path))}


def tests_of(build):
    """The tests of the suites, and the files that they use of the build."""
    info = build / "meson-info"
    of_id = {target["id"]: target for target in json.loads((info / "intro-targets.json").read_text())}
    listed, used = [], set()
    for test in json.loads((info / "intro-tests.json").read_text()):
        if not SUITES & set(test["suite"]) or "strobe:slow" in test["suite"]:
            continue
        command = [PYTHON if os.path.basename(word).startswith("python3") and not index else word
                   for index, word in enumerate(test["cmd"])]
        listed.append({"name": test["name"], "suite": test["suite"], "cmd": command, "env": test["env"],
                       "timeout": test["timeout"], "cwd": test["workdir"] or str(build)})
        for target in test["depends"]:
            used.update(of_id[target]["filename"] if target in of_id else [])
    for target in of_id.values():
        if target["type"].startswith("shared "):
            used.update(target["filename"])
    for how in HARMLESS:
        listed.append({"name": "harmless." + how, "suite": [], "cmd": [PYTHON, "/strobe/harmless.py", how, str(build)], "env": {},
                       "timeout": 240, "cwd": "/tmp"})
    return listed, {path for path in used if os.path.exists(path)}


def with_links(files):
    """The files, and what they lead to where they are links."""
    found = set()
    for path in files:
        while path not in found:
            found.add(path)
            if os.path.islink(path):
                path = placed(os.path.join(os.path.dirname(path), os.readlink(path)))
    return {path for path in found if os.path.exists(path)}


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries_of(files):
    """What the loader says that the files need."""
    found = set()
    elves = sorted(path for path in files if is_elf(path))
    for begin in range(0, len(elves), 50):
        for line in lines("ldd", *elves[begin:begin + 50]):
            for word in line.split():
                if word.startswith("/") and not word.endswith(":") and os.path.isfile(word):
                    found.add(placed(word))
    return found


def fill(root, files, listed):
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, target in LINKS.items():
        (root / target).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    subprocess.run(["tar", "-C", "/", "-cf", root / "files.tar", "--no-recursion", "--null", "-T", "-"],
                   input="\0".join(path.lstrip("/") for path in sorted(files)).encode(), check=True)
    subprocess.run(["tar", "-C", root, "-xf", root / "files.tar"], check=True)
    (root / "files.tar").unlink()
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    (root / "tmp").chmod(0o1777)
    for name in ("guest.py", "harmless.py", "left_out.txt"):
        shutil.copy(HERE / name, root / "strobe")
    (root / "strobe/tests.json").write_text(json.dumps(listed))


def main(build, image):
    build, image = pathlib.Path(build).resolve(), pathlib.Path(image)
    for tool in ("dpkg-query", "mke2fs", "tar", "ldd"):
        if shutil.which(tool, path="/usr/sbin:/sbin:" + os.environ["PATH"]) is None:
            sys.exit(f"no {tool} here")
    source = json.loads((build / "meson-info/meson-info.json").read_text())["directories"]["source"]
    listed, used = tests_of(build)
    tracked = {os.path.join(source, name) for name in lines("git", "-C", source, "ls-files")}
    used |= {path for path in tracked if os.path.exists(path)}
    found = tools() | {PYTHON} | used | set(glob.glob("/lib/*/libnss_dns*"))
    files = with_links(found | libraries_of(with_links(found)))
    with tempfile.TemporaryDirectory(dir=image.parent) as root:
        root = pathlib.Path(root)
        root.chmod(0o755)
        fill(root, files, listed)
        size_mib = sum(path.lstat().st_size for path in root.rglob("*")) // 2**20 + FREE_MIB
        new = image.with_suffix(".new")
        new.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": "/usr/sbin:/sbin:" + os.environ["PATH"]}
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", root, new, f"{size_mib}M"], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
        new.rename(image)
    print(f"{len(listed)} tests, {len(files)} files, {size_mib} MiB")


main(*sys.argv[1:])
