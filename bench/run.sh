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
# Either may print `skipped: NAME (REASON)` on stderr for a peer that is not there. An executable may print such lines of JSON too.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${STROBE_BENCH_BUILD:-$root/build-bench}
cd "$root" || exit 1

have() { command -v "$1" >/dev/null 2>&1; }

install_needs() {
  local packages=(g++ meson ninja-build pkg-config python3 libabsl-dev libbenchmark-dev zlib1g-dev libgoogle-perftools-dev libunwind-dev
    libboost-dev)
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
reconfigure=()
[ -f "$build/build.ninja" ] && reconfigure=(--reconfigure)
targets=()
for question in "${questions[@]}"; do [ -f "bench/$question/meson.build" ] && targets+=("bench_$question"); done
echo "bench/run.sh: building in $build"
if ! CXX="$launcher${CXX:-g++}" meson setup "$build" "$root" "${options[@]}" "${reconfigure[@]}" >"$build/setup.log" 2>&1; then
  tail -20 "$build/setup.log"
  exit 1
fi
status=0
for target in "${targets[@]}"; do
  if ! ninja -C "$build" "bench/${target#bench_}/$target" >"$build/$target.log" 2>&1; then
    grep -E 'error|FAILED' "$build/$target.log" | head -20
    echo "bench/run.sh: $target did not build; see $build/$target.log"
    status=1
  fi
done

printf 'machine: %s, %s processors, %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -sr)"
for question in "${questions[@]}"; do
  program="$build/bench/$question/bench_$question"
  if [ -f "bench/$question/$question.py" ]; then
    python3 "bench/$question/$question.py" "$root" "$build" >"$build/$question.out" 2>"$build/$question.err" </dev/null
  elif [ -x "$program" ]; then
    "$program" --benchmark_format=json >"$build/$question.out" 2>"$build/$question.err" </dev/null
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
