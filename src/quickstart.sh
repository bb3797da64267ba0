#!/bin/sh
# Builds Strobe and runs its example on a machine that may have nothing yet:  src/quickstart.sh
# [--seconds N]. Installs what is missing by apt-get and says so first. Shows the first profile,
# build/quickstart/profile.pb.gz, before it builds the command to look at it with, build/strobe.
set -eu
cd "$(dirname "$0")/.."

# One line a need: how to see that it is there, and the Debian and Ubuntu package that brings it.
needs='command:c++ g++
command:meson meson
command:ninja ninja-build
command:pkg-config pkg-config
library:absl_status libabsl-dev
library:zlib zlib1g-dev
library:sqlite3 libsqlite3-dev
library:CLI11 libcli11-dev'

compiler=${CXX:-c++}
is_there() {
  case $1 in
    command:c++) command -v "${compiler%% *}" >/dev/null 2>&1 ;;  # CXX may have a launcher or arguments
    command:*) command -v "${1#command:}" >/dev/null 2>&1 ;;
    library:*) pkg-config --exists "${1#library:}" 2>/dev/null ;;
  esac
}

missing_packages() {
  echo "$needs" | while read -r need package; do
    is_there "$need" || printf '%s ' "$package"
  done
}

stop() {
  printf 'quickstart: %s\n' "$1" >&2
  printf 'It needs: a C++20 compiler (g++ 12 or clang 14, or later), Meson 1.0.1 or later, Ninja, pkg-config,\n' >&2
  printf 'and the development files of Abseil (20220623 or later), zlib, SQLite 3 and CLI11.\n' >&2
  exit 1
}

missing=$(missing_packages)
if [ -n "$missing" ]; then
  command -v apt-get >/dev/null 2>&1 || stop "missing here (by the names of their Debian packages): $missing- and there is no apt-get to install them"
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || stop "run this first as root: apt-get install $missing"
    as_root=sudo
  fi
  echo "quickstart: installing $missing(by apt-get)"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
  # shellcheck disable=SC2086  # a list of names
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
  missing=$(missing_packages)
  [ -z "$missing" ] || stop "still missing after apt-get: $missing"
fi

# The compiler's time on one CPU, measured on a machine of 2021: to the first profile, and from there.
cpus=$(nproc 2>/dev/null || echo 1)
echo "quickstart: the first profile comes in about $((15 + 75 / cpus)) s on $cpus CPUs of this machine"

# Many sources share a translation unit, and only the signal handler is optimised for its speed: an
# installation compiles better code for longer (src/docs/start.md). Configured once; a directory that was
# left half configured, or without the example or the command, is configured again.
setup='--optimization=1 --unity=on --unity-size=40 -Dtests=false --wrap-mode=nofallback'
if [ ! -f build/build.ninja ]; then
  rm -rf build/meson-private
  # shellcheck disable=SC2086
  meson setup build $setup
elif ! grep -q '^build src/examples/quickstart:' build/build.ninja ||
  ! grep -q '^build src/cli/strobe:' build/build.ninja; then
  # shellcheck disable=SC2086
  meson setup --reconfigure build $setup
fi
ninja -C build src/examples/quickstart
build/src/examples/quickstart --directory build/quickstart "$@"

[ -f build/src/cli/strobe ] || echo "quickstart: building the command strobe, in about $((120 / cpus)) s"
ninja -C build src/cli/strobe
ln -sf src/cli/strobe build/strobe
echo 'Look at the profile:  build/strobe top build/quickstart/profile.pb.gz
Profile any program:  build/strobe record PROGRAM'
