#!/usr/bin/env bash
# Does on bare systems what a new user does:
#
#   tests/bare.sh [--no-tests] [bookworm] [trixie] [forky] [noble]      (no name: all of them)
#
#   --no-tests   leaves out the tests, which take most of the time
#
# Makes each system with debootstrap (Debian 12, 13 and the next, Ubuntu 24.04; nothing but what it cannot do without), clones this
# tree's HEAD into it, and there, as root: runs the README's two commands, the second in its shortest form; tries what the first has
# built; installs that, and builds a program by pkg-config and by CMake with the README's lines. Needs root, debootstrap and the
# systems' mirrors: what cannot be made is skipped by name. Packages are kept in build-tests/bare, or in $STROBE_BUILD_ROOT/bare, for the next run.
#
# Each step's log stays there. The last line is "N passed, N failed, N skipped"; exit status 1 if anything failed.
set -uo pipefail
readonly DEBIAN=http://deb.debian.org/debian UBUNTU=http://archive.ubuntu.com/ubuntu
readonly MAKE_SECONDS=600 STEP_SECONDS=1800
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bare=$(realpath -m "${STROBE_BUILD_ROOT:-$root/build-tests}/bare")

with_tests=true
suites=()
for argument in "$@"; do
  case $argument in
    --no-tests) with_tests=false ;;
    bookworm | trixie | forky | noble) suites+=("$argument") ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie forky noble)

. "$root/tests/support/counts.sh"
have() { command -v "$1" >/dev/null 2>&1; }

if [ "$(id -u)" -ne 0 ]; then
  skip "bare systems: only root can make them"
  finish
fi
if ! have debootstrap && have apt-get; then
  echo "tests/bare.sh: installing debootstrap by apt"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap >/dev/null 2>&1 </dev/null ||
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap; } >/dev/null 2>&1 </dev/null
fi
if ! have debootstrap; then
  skip "bare systems: no debootstrap here"
  finish
fi

# The system $1, made once and kept as it was made: $bare/$1.tar. An older debootstrap takes a newer release for unstable.
make_system() {
  local suite=$1 script=/usr/share/debootstrap/scripts/$1 mirror=$DEBIAN components=main
  [ -f "$bare/$suite.tar" ] && return
  [ "$suite" = noble ] && mirror=$UBUNTU components=main,universe script=/usr/share/debootstrap/scripts/gutsy
  [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
  rm -rf "$bare/$suite.new"
  mkdir -p "$bare/$suite.packages"
  timeout "$MAKE_SECONDS" debootstrap --variant=minbase --components="$components" --cache-dir="$bare/$suite.packages" "$suite" "$bare/$suite.new" \
    "$mirror" "$script" \
    >"$bare/$suite.log" 2>&1 </dev/null || return
  rm -f "$bare/$suite.new"/var/cache/apt/archives/*.deb
  # A mirror may have a copy of the coming release that is older than that says it may be.
  [ "$suite" = forky ] && echo 'Acquire::Check-Valid-Until "false";' >"$bare/$suite.new/etc/apt/apt.conf.d/99-old-copy"
  tar -C "$bare/$suite.new" -cf "$bare/$suite.tar.new" . && mv "$bare/$suite.tar.new" "$bare/$suite.tar" && rm -rf "$bare/$suite.new"
}

# Runs the shell lines $2 in the system $1, with mounts that end with them.
in_system() {
  local system=$1
  timeout -k 10 "$STEP_SECONDS" unshare --mount --pid --fork --propagation private sh -c '
    mount -t proc proc "$0/proc" && mount -t sysfs sysfs "$0/sys" && mount -t tmpfs tmpfs "$0/dev/shm" && mount -t devpts devpts "$0/dev/pts" &&
      mount --bind "$1" "$0/var/cache/apt/archives" &&
      exec chroot "$0" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
        DEBIAN_FRONTEND=noninteractive sh -c "cd /root/strobe && $2"' "$system" "${system%.system}.packages" "$2" </dev/null
}

# A step named $2 of the system $1: the shell lines $3. Says how long it took.
step() {
  local suite=$1 name=$2 lines=$3 log="$bare/$1.$2.log" begin_s=$SECONDS
  if in_system "$bare/$suite.system" "$lines" >"$log" 2>&1; then
    pass "$suite $name: $((SECONDS - begin_s)) s"
  else
    tail -25 "$log"
    fail "$suite $name: see $log"
    return 1
  fi
}

# The README's first command, what it has built, and the installation of that.
first_command() {
  local suite=$1
  step "$suite" quickstart 'src/quickstart.sh --seconds 2 && times && test -s build/quickstart/profile.pb.gz' || return
  step "$suite" command 'set -ex
    build/strobe top --total build/quickstart/profile.pb.gz | grep -q RunDatabase
    build/strobe record -o cpu.pb.gz -- build/src/examples/quickstart --seconds 1
    build/strobe record --alloc -o alloc.pb.gz -- build/src/examples/quickstart --seconds 1
    build/strobe record --worker -o worker.pb.gz -- build/src/examples/quickstart --seconds 1
    build/strobe record --perf -o perf.pb.gz -- build/src/examples/quickstart --seconds 1
    for profile in cpu alloc worker perf; do build/strobe top --total -n 0 "$profile.pb.gz" | grep -q RunDatabase; done
    build/strobe html -o page.html cpu.pb.gz && grep -q "<title>quickstart" page.html'
  step "$suite" install 'meson install -C build' || return
  step "$suite" pkg-config "g++ -std=c++20 tests/consumer/main.cc \$(pkg-config --cflags --libs strobe) -o consumer &&
    mkdir -p out && ./consumer out | grep -q '^stop: OK'"
  step "$suite" cmake "apt-get install -y -q --no-install-recommends cmake >/dev/null && cmake -G Ninja -S tests/consumer/cmake -B build-cmake &&
    cmake --build build-cmake && mkdir -p out && build-cmake/consumer out | grep -q '^stop: OK'"
}

for suite in "${suites[@]}"; do
  mkdir -p "$bare"
  if ! make_system "$suite"; then
    skip "$suite: debootstrap could not make it; see $bare/$suite.log"
    continue
  fi
  system=$bare/$suite.system
  rm -rf --one-file-system "$system"
  mkdir -p "$system" && tar -C "$system" -xf "$bare/$suite.tar" && git clone -q "$root" "$system/root/strobe" || { fail "$suite: no system"; continue; }
  first_command "$suite"
  $with_tests && step "$suite" tests 'tests/run.sh --quick'
  rm -rf --one-file-system "$system"
done
finish
