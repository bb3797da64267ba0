#!/usr/bin/env bash
# Sends profiles to real servers, and lets real clients fetch them: tests/interop/interop.py says what it checks.
#
#   tests/interop.sh [--parca BINARY] [--pyroscope BINARY]
#
# Installs the servers that package registries have, into build-tests/interop: Datadog's test agent from PyPI (Python 3.8 or later), the
# newest pprof from the Go module proxy. What is missing is skipped by name. The last line is "N passed, N failed, N skipped".
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${STROBE_BUILD_ROOT:-$root/build-tests}/interop
cd "$root" || exit 1
have() { command -v "$1" >/dev/null 2>&1; }
mkdir -p "$build"
skipped=0
skip() {
  echo "SKIP $1: $2"
  skipped=$((skipped + 1))
}

# Configured once, with what tests/run.sh has installed.
if [ ! -f "$build/strobe/build.ninja" ]; then
  CXX="$(have ccache && echo 'ccache ')${CXX:-g++}" meson setup "$build/strobe" "$root" -Dbuildtype=release --wrap-mode=nofallback \
    -Dexamples=false -Dhttp=enabled -Dpull=enabled >"$build/strobe.log" 2>&1
fi
if ! ninja -C "$build/strobe" tests/interop/interop_send tests/interop/interop_pull >>"$build/strobe.log" 2>&1; then
  tail -20 "$build/strobe.log"
  echo "SKIP interop: it needs libcurl4-openssl-dev and libcpp-httplib-dev; see $build/strobe.log"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

arguments=("$build/strobe/tests/interop/interop_send" --pull "$build/strobe/tests/interop/interop_pull" "$@")

agent=$build/ddapm/bin/ddapm-test-agent
if [ ! -x "$agent" ]; then
  { python3 -m venv "$build/ddapm" && "$build/ddapm/bin/pip" install -q ddapm-test-agent; } >"$build/ddapm.log" 2>&1
fi
if [ -x "$agent" ]; then arguments+=(--ddapm "$agent"); else skip ddapm "no ddapm-test-agent from PyPI; see $build/ddapm.log"; fi

if have go; then
  arguments+=(--pprof "go tool pprof")
  [ -x "$build/pprof" ] || GOBIN=$build go install github.com/google/pprof@latest >"$build/pprof.log" 2>&1
  if [ -x "$build/pprof" ]; then arguments+=(--pprof "$build/pprof"); else skip pprof "no newest pprof; see $build/pprof.log"; fi
else
  skip pprof "no Go here"
fi

python3 tests/interop/interop.py "${arguments[@]}" 2>&1 | tee "$build/result"
status=${PIPESTATUS[0]}
passed=$(grep -c '^PASS' "$build/result")
failed=$(grep -c '^FAIL' "$build/result")
[ "$status" -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
echo "$passed passed, $failed failed, $((skipped + $(grep -c '^SKIP' "$build/result"))) skipped"
[ "$failed" -eq 0 ]
