#!/usr/bin/env bash
# Sends profiles to real servers, and lets real clients fetch them: tests/interop/interop.py says what it checks.
#
#   tests/interop.sh [--parca BINARY] [--pyroscope BINARY]
#
# Installs the servers that package registries have, into build-tests/interop: Datadog's test agent from PyPI (Python 3.8 or later), an
# OpenTelemetry collector and the newest pprof from the Go module proxy. What is there is kept for the next run. What is missing is
# skipped by name. The last line is "N passed, N failed, N skipped".
set -uo pipefail
readonly INSTALL_SECONDS=150   # for one server or client
readonly COLLECTOR_SECONDS=330 # for downloading and building it
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
# interop.py skips it, and counts that.
missing() { echo "     $1: $2; see $build/$1.log"; }

# tests/run.sh has built the programs with g++; without it, they are configured once, with what it has installed.
strobe=${STROBE_BUILD_ROOT:-$root/build-tests}/gcc
if [ ! -f "$strobe/build.ninja" ]; then
  strobe=$build/strobe
  [ -f "$strobe/build.ninja" ] || CXX="$(have ccache && echo 'ccache ')${CXX:-g++}" meson setup "$strobe" "$root" -Dbuildtype=release \
    --wrap-mode=nofallback -Dexamples=false >"$build/setup.log" 2>&1
fi
if ! ninja -C "$strobe" tests/interop/interop_send tests/interop/interop_pull >"$build/strobe.log" 2>&1; then
  tail -20 "$build/strobe.log"
  if grep -q 'unknown target\|error: loading' "$build/strobe.log"; then
    echo "SKIP interop: it needs libcurl4-openssl-dev; see $build/strobe.log"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

arguments=("$strobe/tests/interop/interop_send" --pull "$strobe/tests/interop/interop_pull" "$@")

agent=$build/ddapm/bin/ddapm-test-agent
if [ ! -x "$agent" ]; then
  { python3 -m venv "$build/ddapm" &&
    timeout "$INSTALL_SECONDS" "$build/ddapm/bin/pip" install -q ddapm-test-agent; } >"$build/ddapm.log" 2>&1
fi
if [ -x "$agent" ]; then arguments+=(--ddapm "$agent"); else missing ddapm "no ddapm-test-agent from PyPI"; fi

if have go; then
  arguments+=(--pprof "go tool pprof")
  for pprof in /usr/lib/go-*/pkg/tool/*/pprof; do # Debian's
    [ -x "$pprof" ] && arguments+=(--pprof "$pprof")
  done
  [ -x "$build/pprof" ] || GOBIN=$build timeout "$INSTALL_SECONDS" go install github.com/google/pprof@latest >"$build/pprof.log" 2>&1
  if [ -x "$build/pprof" ]; then arguments+=(--pprof "$build/pprof"); else skip pprof "no newest pprof; see $build/pprof.log"; fi
else
  skip pprof "no Go here"
fi

# Keeps the binary alone, not the modules that it is built from.
build_collector() {
  local directory builder=go.opentelemetry.io/collector/cmd/builder@v0.164.0
  directory=$(mktemp -d "$build/collector.XXXXXX") || return
  export GOMODCACHE=$directory/modules GOBIN=$directory GOFLAGS="-modcacherw -buildvcs=false"
  # The builder takes settings from the environment, too.
  timeout "$COLLECTOR_SECONDS" bash -c "go install $builder && env dist.output_path='$directory/out' \
    '$directory/builder' --config tests/interop/collector.yaml --skip-strict-versioning --ldflags='-s -w'" &&
    mv "$directory/out/otelcol" "$build/otelcol"
  rm -rf "$directory"
}
if ! have go; then
  echo "no Go here" >"$build/collector.log"
else
  [ -x "$build/otelcol" ] || (build_collector) >"$build/collector.log" 2>&1
fi
if [ -x "$build/otelcol" ]; then
  arguments+=(--collector "$build/otelcol")
else
  missing collector "none could be built within $COLLECTOR_SECONDS s"
fi

python3 tests/interop/interop.py "${arguments[@]}" 2>&1 | tee "$build/result"
status=${PIPESTATUS[0]}
passed=$(grep -c '^PASS' "$build/result")
failed=$(grep -c '^FAIL' "$build/result")
[ "$status" -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
echo "$passed passed, $failed failed, $((skipped + $(grep -c '^SKIP' "$build/result"))) skipped"
[ "$failed" -eq 0 ]
