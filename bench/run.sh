#!/usr/bin/env bash
# Measures: bench/run.sh [question...]          (no name: every question, one after the other)
#
# A question is a folder here: `ring`, `unwind`, `aggregate`, ... Builds with optimisation in build-bench/ (or $STROBE_BENCH_BUILD), prints
# one table a question, ours beside each peer, with ratios taken within that one run, and writes the same to
# build-bench/<question>.json. Peers that are missing are installed with apt where that is possible, and otherwise skipped by name.
#
# To add a question, make one of:
#   bench/<question>/meson.build   that defines executable('bench_<question>', ...) of Google Benchmark; benchmarks are named
#                                  <case>/<contender>[/argument...], ours beginning with `strobe`; counters become metrics of their own
#   bench/<question>/<question>.py that prints lines of JSON {"question", "contender", "metric", "value", "unit"} (and "case", where there
#                                  are several) and is called with the root of the source tree and that of the build.
# A question windows_* is built for Windows x64 with mingw-w64 in build-bench/windows, run by Wine, and skipped where either is missing.
# Either may print `skipped: NAME (REASON)` on stderr for a peer that is not there. An executable may print such lines of JSON too.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${STROBE_BENCH_BUILD:-$root/build-bench}
cd "$root" || exit 1

have() { command -v "$1" >/dev/null 2>&1; }

wine_directory=$(realpath -m "$build/windows.wine")
. tests/windows.sh

install_needs() {
  local packages=(g++ meson ninja-build pkg-config python3 libabsl-dev libbenchmark-dev zlib1g-dev libcli11-dev libdeflate-dev libgoogle-perftools-dev libunwind-dev
    libboost-dev libdw-dev llvm-14 binutils linux-perf
    libsqlite3-dev heaptrack libjemalloc2 libmimalloc2.0)
  if ! have apt-get || ! have dpkg-query; then
    echo "bench/run.sh: no apt here; needed (peers last): ${packages[*]}"
    return
  fi
  local missing=() package as_root=()
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "bench/run.sh: installing with apt: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || { echo "bench/run.sh: neither root nor sudo; going on with what is there"; return; }
    as_root=(sudo)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null || true
  # One by one: a peer that this release does not have must not keep the others away.
  for package in "${missing[@]}"; do
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" </dev/null >/dev/null ||
      echo "bench/run.sh: $package could not be installed"
  done
}

questions=("$@")
if [ ${#questions[@]} -eq 0 ]; then
  for folder in bench/*/; do
    question=$(basename "$folder")
    [ -f "bench/$question/meson.build" ] || [ -f "bench/$question/$question.py" ] && questions+=("$question")
  done
fi
for question in "${questions[@]}"; do
  if [ ! -f "bench/$question/meson.build" ] && [ ! -f "bench/$question/$question.py" ]; then
    echo "bench/run.sh: no question $question; there are: $(cd bench && echo */ | tr -d /)" >&2
    exit 2
  fi
done

install_needs
options=(--buildtype=release -Doptimization=2 -Db_ndebug=true -Dtests=false -Dbenchmarks=true -Dexamples=false --wrap-mode=nofallback)
launcher=""
have ccache && launcher="ccache "
mkdir -p "$build"
status=0

# build_in DIRECTORY OPTIONS QUESTION...: OPTIONS is the name of an array of Meson's options. False where Meson fails.
build_in() {
  local directory=$1 question programs
  local -n setup_options=$2
  local reconfigure=()
  shift 2
  [ -f "$directory/build.ninja" ] && reconfigure=(--reconfigure)
  echo "bench/run.sh: building in $directory"
  if ! CXX="$launcher${CXX:-g++}" meson setup "$directory" "$root" "${setup_options[@]}" "${reconfigure[@]}" >"$build/setup.log" 2>&1; then
    tail -20 "$build/setup.log"
    return 1
  fi
  for question; do
    [ -f "bench/$question/meson.build" ] || continue
    # All programs of the folder: a question in Python may have several.
    mapfile -t programs < <(ninja -C "$directory" -t targets all | sed -n "s|^\(bench/$question/bench_[^/:]*\): cpp_LINKER.*|\1|p")
    if ! ninja -C "$directory" "${programs[@]}" >"$build/bench_$question.log" 2>&1; then
      grep -E 'error|FAILED' "$build/bench_$question.log" | head -20
      echo "bench/run.sh: bench_$question did not build; see $build/bench_$question.log"
      status=1
    fi
  done
}

native=() windows=() skipped_windows=""
for question in "${questions[@]}"; do
  case $question in windows_*) windows+=("$question") ;; *) native+=("$question") ;; esac
done
if [ ${#native[@]} -gt 0 ]; then build_in "$build" options "${native[@]}" || exit 1; fi
if [ ${#windows[@]} -gt 0 ]; then
  compiler=x86_64-w64-mingw32-g++-posix
  export WINEPREFIX=$wine_directory WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY=""
  trap end_wine EXIT
  trap 'exit 130' INT
  if ! have "$compiler"; then
    skipped_windows="no $compiler on this machine"
  elif skipped_windows=$(wine_prefix "$compiler") && skipped_windows=$(unpack_wraps); then
    printf "[constants]\nlauncher = [%s]\n" "$(have ccache && echo "'ccache'")" >"$build/windows.ini"
    windows_options=("${options[@]/nofallback/default}" --cross-file "$build/windows.ini" --cross-file "$root/tests/windows.ini")
    CXX=$compiler build_in "$build/windows" windows_options "${windows[@]}" || exit 1
  fi
fi

printf 'machine: %s, %s processors, %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -sr)"
for question in "${questions[@]}"; do
  program="$build/bench/$question/bench_$question"
  runner=()
  if [[ $question = windows_* ]]; then
    program="$build/windows/bench/$question/bench_$question.exe"
    runner=(wine)
    if [ -n "$skipped_windows" ]; then
      printf '\n== %s\nskipped: %s (%s)\n' "$question" "$question" "$skipped_windows"
      continue
    fi
  fi
  if [ -f "bench/$question/$question.py" ]; then
    python3 "bench/$question/$question.py" "$root" "$build" >"$build/$question.out" 2>"$build/$question.err" </dev/null
  elif [ -x "$program" ]; then
    "${runner[@]}" "$program" --benchmark_format=json >"$build/$question.out" 2>"$build/$question.err" </dev/null
  else
    continue
  fi
  code=$?
  if [ $code -ne 0 ]; then
    tail -20 "$build/$question.err"
    echo "bench/run.sh: $question ended with status $code"
    status=1
  fi
  python3 bench/table.py "$question" "$build/$question.out" "$build/$question.err" "$build/$question.json" || status=1
done
exit $status
