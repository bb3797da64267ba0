"""The packages of package.json, installed once in a directory that tests share."""
import fcntl
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
INSTALL_TIMEOUT_S = 180


class Missing(Exception):
    """Why a reader is not here."""


def packages(directory):
    """The path of node_modules. Tests that run at the same time wait for the one that installs."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            raise Missing("no %s (nodejs npm)" % tool)
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "package.json").read_text()
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = directory / "installed.json"
        if not done.exists() or done.read_text() != wanted:
            (directory / "package.json").write_text(wanted)
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--fetch-retries=1",
                       "--fetch-timeout=30000"]
            try:
                result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                raise Missing("npm install took more than %d s" % INSTALL_TIMEOUT_S) from error
            if result.returncode != 0:
                raise Missing("npm could not install %s: %s" % (wanted.count(".0\"") or "", (result.stderr.strip().splitlines() or ["?"])[-1]))
            done.write_text(wanted)
    return directory / "node_modules"


def chromium():
    """The command of a Chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise Missing("no chromium")


def environment(directory):
    """Programs keep their files below `directory`, not in the user's home."""
    return dict(os.environ, HOME=str(directory), XDG_CONFIG_HOME=str(directory), XDG_CACHE_HOME=str(directory))
