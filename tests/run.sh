#!/usr/bin/env bash
# Builds and runs all tests:
#
#   tests/run.sh [--quick] [gcc] [clang] [asan] [tsan] [fuzz] [windows] [aarch64]      (no name: the first six)
#
#   gcc, clang   release builds; these also check the source tree (tidy, compile_fail), the packages and the handler's object code
#   asan, tsan   the unit and integration tests under AddressSanitizer + UndefinedBehaviorSanitizer, and under ThreadSanitizer
#   fuzz         the fuzzers, for about a minute in all (tests/fuzz)
#   windows      the library and the tests built for Windows x64 with mingw-w64, and run by Wine
#   aarch64      the library and the unit tests built for aarch64, and run by qemu's user mode
#   --quick      gcc only, unless others are named, and without the tests of suite `slow`
#
# Installs with apt what is missing, and says so first. Builds in build-tests/<configuration>, or in
# $STROBE_BUILD_ROOT/<configuration>. The last line is "N passed, N failed, N skipped"; every skip
# and its reason stands above it. Exit status 1 if anything failed, also if a configuration did not
# build.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_root=${STROBE_BUILD_ROOT:-$root/build-tests}
cd "$root" || exit 1

quick=false
configurations=()
for argument in "$@"; do
  case $argument in
    --quick) quick=true ;;
    gcc | clang | asan | tsan | fuzz | aarch64 | windows) configurations+=("$argument") ;;
    *) sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done
if [ ${#configurations[@]} -eq 0 ]; then
  if $quick; then configurations=(gcc); else configurations=(gcc clang asan tsan fuzz windows); fi
fi

have() { command -v "$1" >/dev/null 2>&1; }

# The packages that the tests need, those first without which nothing builds.
install_needs() {
  local packages=(g++ clang-14 libclang-rt-14-dev meson ninja-build pkg-config python3 binutils libabsl-dev libgtest-dev libgmock-dev
    zlib1g-dev libcli11-dev libdeflate-dev libsqlite3-dev sqlite3 libcurl4-openssl-dev libcpp-httplib-dev libbenchmark-dev cmake ccache clang-format-14 clang-tidy-14 protobuf-compiler golang-github-google-pprof-dev util-linux
    chromium llvm-14 dwz xz-utils libtcmalloc-minimal4 libjemalloc2 libmimalloc2.0 libdebuginfod-dev debuginfod linux-perf)
  [[ " ${configurations[*]} " == *" aarch64 "* ]] && packages+=(g++-aarch64-linux-gnu qemu-user)
  [[ " ${configurations[*]} " == *" windows "* ]] && packages+=(g++-mingw-w64-x86-64-posix libz-mingw-w64-dev wine wine64 lld-14)
  # What did not come from apt does as well.
  have go || packages+=(golang-go)
  # What drives the browser.
  have node || packages+=(nodejs)
  have npm || packages+=(npm)
  if ! have apt-get || ! have dpkg-query; then
    echo "tests/run.sh: no apt here, so nothing is installed; needed are the counterparts of: ${packages[*]}"
    return
  fi
  local missing=() package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  # Tools from elsewhere count too.
  for package in "${!missing[@]}"; do
    case ${missing[$package]} in
      meson | ccache | python3 | sqlite3) have "${missing[$package]}" && unset "missing[$package]" ;;
      ninja-build) have ninja && unset "missing[$package]" ;;
      pkg-config) have pkg-config && unset "missing[$package]" ;;
      protobuf-compiler) have protoc && unset "missing[$package]" ;;
    esac
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "tests/run.sh: installing with apt: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo; then
      echo "tests/run.sh: neither root nor sudo, so nothing is installed; going on with what is there"
      return
    fi
    as_root=(sudo)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null || true
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null; then
    # One package that this release does not have must not keep the others away.
    for package in "${missing[@]}"; do
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" </dev/null ||
        echo "tests/run.sh: $package could not be installed; going on without it"
    done
  fi
}

# A compile of these headers takes up to 1 GiB.
job_count() {
  local cores memory_gib
  cores=$(nproc 2>/dev/null || echo 2)
  memory_gib=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo 2)
  [ "$memory_gib" -lt 1 ] && memory_gib=1
  echo $((cores < memory_gib ? cores : memory_gib))
}

clang_cc() { if have clang++-14; then echo clang++-14; else echo clang++; fi; }

# ThreadSanitizer gives up where the kernel scatters mappings more widely than it expects; without
# randomisation it works everywhere. Prints the command to run the tests under, or fails if
# ThreadSanitizer does not work at all.
tsan_wrapper() {
  local directory status=1
  directory=$(mktemp -d)
  if echo 'int main() {}' | $1 -x c++ - -fsanitize=thread -o "$directory/probe" 2>/dev/null; then
    if "$directory/probe" >/dev/null 2>&1; then
      status=0
    elif setarch "$(uname -m)" -R "$directory/probe" >/dev/null 2>&1; then
      echo "setarch $(uname -m) -R"
      status=0
    fi
  fi
  rm -rf "$directory"
  return $status
}

# libFuzzer's runtime is a package of its own.
has_fuzzer() {
  local directory status=1
  directory=$(mktemp -d)
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    "$1" -x c++ - -fsanitize=fuzzer,address -o "$directory/probe" 2>/dev/null && status=0
  rm -rf "$directory"
  return $status
}

# Debian's arm64 packages of what Strobe and its tests need, unpacked in $1 without telling this
# machine's dpkg of another architecture. Prints what is missing if it fails.
aarch64_sysroot() {
  local sysroot=$1 apt_state=$1.apt package
  local packages=(libabsl-dev libabsl20220623 libgtest-dev libgmock-dev zlib1g zlib1g-dev)
  local apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::Lists=$apt_state/lists"
    -o Dir::State::status=/dev/null -o "Dir::Cache=$apt_state/cache" -o APT::Sandbox::User=)
  have qemu-aarch64 || { echo "no qemu-aarch64 (qemu-user)"; return 1; }
  [ -f "$sysroot/complete" ] && return
  have apt-get && have dpkg-deb || { echo "no apt-get here to download arm64 packages with"; return 1; }
  rm -rf "$sysroot" "$apt_state"
  mkdir -p "$sysroot" "$apt_state"/{lists/partial,cache/archives/partial,packages}
  "${apt[@]}" update </dev/null >"$apt_state/log" 2>&1
  for package in "${packages[@]}"; do
    (cd "$apt_state/packages" && "${apt[@]}" download "$package" </dev/null >>"$apt_state/log" 2>&1) && continue
    echo "apt-get could not download $package for arm64; see $apt_state/log"
    return 1
  done
  for package in "$apt_state"/packages/*.deb; do dpkg-deb -x "$package" "$sysroot" || return 1; done
  rm -rf "$apt_state"
  touch "$sysroot/complete"
}

wine_directory=$(realpath -m "$build_root/windows.wine")
trap 'exit 130' INT
. "$root/tests/windows.sh"

# The tests that a target's Meson file says cannot work there, one line each: "# left out: NAME why", or "# not there: NAME why" where they
# test what the target does not have.
leave_out() {
  local configuration=$1 file=$2 mark='^# \(left out\|not there\): '
  GTEST_FILTER="-$(sed -n "s/$mark\([^ ]*\) .*/\2/p" "$file" | paste -sd :)"
  sed -n "s/$mark/SKIP $configuration /p" "$file"
  totals+=("0 0 $(grep -c "$mark" "$file")")
}

# Objects with lines name the folder that they were compiled in. Clones of this tree share a cache all the same: sources have relative names.
export CCACHE_NOHASHDIR=1

totals=()
run_configuration() {
  local configuration=$1 build="$build_root/$1" compiler=g++ options=(-Dbuildtype=release -Db_sanitize=none) wrapper="" launcher=""
  local wrap_mode=nofallback
  # Lines, but no variables: that is what a report shows, and it compiles faster.
  local sanitized=(-Ddebug=false -Doptimization=1 -Dcpp_args=-g1)
  case $configuration in
    clang | asan | tsan | fuzz) compiler=$(clang_cc) ;;
    aarch64) compiler=aarch64-linux-gnu-g++ ;;
    windows) compiler=x86_64-w64-mingw32-g++-posix ;;
  esac
  case $configuration in
    asan) have "$compiler" || compiler=g++ ;;  # g++ does not take fences under -fsanitize=thread, so that needs clang
  esac
  if ! have "$compiler"; then
    echo "SKIP $configuration: no $compiler on this machine"
    totals+=("0 0 1")
    return
  fi
  case $configuration in
    clang) options+=(-Dlibdeflate=disabled) ;;  # so that both compressors are tested
    asan) options=("${sanitized[@]}" -Db_sanitize=address,undefined -Db_lundef=false -Dexamples=false) ;;
    tsan)
      options=("${sanitized[@]}" -Db_sanitize=thread -Db_lundef=false -Dexamples=false)
      if ! wrapper=$(tsan_wrapper "$compiler"); then
        echo "SKIP tsan: ThreadSanitizer of $compiler does not run on this machine"
        totals+=("0 0 1")
        return
      fi
      ;;
    fuzz)
      options=("${sanitized[@]}" -Db_sanitize=address,undefined -Db_lundef=false -Dexamples=false -Dfuzz=true)
      if ! has_fuzzer "$compiler"; then
        echo "SKIP fuzz: $compiler of this machine has no fuzzer (libclang-rt-14-dev)"
        totals+=("0 0 1")
        return
      fi
      ;;
    aarch64)
      local sysroot reason
      sysroot=$(realpath -m "$build.sysroot")
      if ! reason=$(aarch64_sysroot "$sysroot"); then
        echo "SKIP aarch64: $reason"
        totals+=("0 0 1")
        return
      fi
      printf "[constants]\nsysroot = '%s'\nlauncher = [%s]\n" "$sysroot" "$(have ccache && echo "'ccache'")" >"$sysroot.ini"
      options=(--cross-file "$sysroot.ini" --cross-file "$root/tests/aarch64.ini" -Dbuildtype=release -Doptimization=2 -Dexamples=false)
      local -x GTEST_FILTER
      leave_out aarch64 tests/aarch64.ini
      ;;
    windows)
      local reason
      local -x WINEPREFIX WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY="" GTEST_FILTER
      WINEPREFIX=$wine_directory
      trap end_wine EXIT
      if ! reason=$(wine_prefix "$compiler") || ! reason=$(unpack_wraps); then
        echo "SKIP windows: $reason"
        totals+=("0 0 1")
        return
      fi
      printf "[constants]\nlauncher = [%s]\n" "$(have ccache && echo "'ccache'")" >"$build.ini"
      options=(--cross-file "$build.ini" --cross-file "$root/tests/windows.ini" -Dbuildtype=release -Doptimization=2)
      wrap_mode=default
      leave_out windows tests/windows.ini
      ;;
  esac
  have ccache && launcher="ccache "
  local setup=(meson setup "$build" "$root" -Dwerror=true -Dwarning_level=2 --wrap-mode="$wrap_mode" "${options[@]}")
  [ -f "$build/build.ninja" ] && setup+=(--reconfigure)
  local log="$build_root/$configuration.log"
  mkdir -p "$build_root"
  echo "== $configuration: $compiler, ${options[*]} (log: $log)"
  # The C compiler of the same kind: clang++-14 and clang-14, g++ and gcc.
  local c_compiler=${compiler/clang++/clang}
  c_compiler=${c_compiler/g++/gcc}
  if ! CC="$launcher$c_compiler" CXX="$launcher$compiler" "${setup[@]}" >"$log" 2>&1 || ! ninja -C "$build" -k 20 -j"$(job_count)" >>"$log" 2>&1; then
    grep -E 'error|ERROR|FAILED|undefined reference' "$log" | head -60
    echo "FAIL $configuration: the build failed; see $log"
    totals+=("0 1 0")
    return
  fi
  local test=(meson test -C "$build" --no-rebuild --print-errorlogs --num-processes 2 --timeout-multiplier 2)
  $quick && test+=(--no-suite slow)
  [ "$configuration" = windows ] && test+=(--wrapper "$(printf '%q' "$root/tests/start_again.sh")")
  rm -f "$build"/*.xml "$build"/meson-logs/testlog*.json
  export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=$root/tests/tsan.supp"
  $wrapper "${test[@]}" </dev/null 2>&1 3>&- | grep --line-buffered -vE '^(ninja: |Full log|Ok:|Expected Fail|Fail:|Unexpected Pass|Skipped:|Timeout:|$)'
  totals+=("$(python3 "$root/tests/summarize.py" "$configuration" "$build" 2>&1 >&3)")
}

exec 3>&1
install_needs
for configuration in "${configurations[@]}"; do
  run_configuration "$configuration"
  [ "$configuration" = windows ] && end_wine
done
printf '%s\n' "${totals[@]}" | awk '
  NF == 3 { passed += $1; failed += $2; skipped += $3 }
  NF != 3 { print; failed++ }
  END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 || passed == 0 }'
