#!/usr/bin/env bash
# Builds and runs the tests:
#
#   tests/run.sh [--quick] [--begin-within MINUTES] [NAME...]      (no name: gcc)
#
#   gcc          a release build by g++, and all tests of it
#   clang        the same by the newest clang++, each source in a translation unit of its own, as an installation has it
#   hardened     the same by g++, with the checks that distributions build with: of the C++ library, of buffers and of the stack
#   asan, tsan   the unit and integration tests under AddressSanitizer + UndefinedBehaviorSanitizer, and under ThreadSanitizer
#   fuzz         the fuzzers, for about a minute in all (tests/fuzz)
#   windows      the library and the tests built for Windows x64 with mingw-w64, and run by Wine
#   aarch64      the library and the unit tests built for aarch64, and run by qemu's user mode
#   lint         the source tree by clang-format and clang-tidy
#   kernels      tests of the build of gcc on other kernels, in virtual machines (kernels.sh)
#   compilers    all sources, and each header alone, by each compiler that is installed, in C++20, 23 and 26 (compilers.py)
#   packages     packages of the tree by Bazel, Conan and Debian, each of which builds the library again (packaging/)
#   all          all of them but aarch64, kernels and packages
#   --quick      without the tests of suite `slow`
#   --begin-within MINUTES   skips what has not begun by then, by name
#
# Installs with apt what is missing for these, and says so first. Builds in build-tests/NAME, or in $STROBE_BUILD_ROOT/NAME. The last
# line is "N passed, N failed, N skipped"; every skip and its reason stands above it. Before it stands the probability that chance
# alone fails a test of the run. Exit status 1 if anything failed, also if something did not build.
set -uo pipefail
readonly MAX_CHANCE=1e-6  # that chance alone fails a run
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_root=${STROBE_BUILD_ROOT:-$root/build-tests}
cd "$root" || exit 1

usage() { sed -n '2,25s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
quick=false
begin_within_s=
configurations=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=true ;;
    --begin-within)
      [[ ${2:-} =~ ^[0-9]+$ ]] || usage
      begin_within_s=$(($2 * 60))
      shift
      ;;
    all) configurations+=(gcc clang hardened asan tsan fuzz windows lint compilers) ;;
    gcc | clang | hardened | asan | tsan | fuzz | aarch64 | windows | kernels | packages | lint | compilers) configurations+=("$1") ;;
    *) usage ;;
  esac
  shift
done
[ ${#configurations[@]} -gt 0 ] || configurations=(gcc)
asks_for() {
  local name
  for name in "$@"; do [[ " ${configurations[*]} " == *" $name "* ]] && return; done
  return 1
}

have() { command -v "$1" >/dev/null 2>&1; }
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The newest package whose name is $1 and a version: clang-19 for clang-, libmimalloc3.0 for libmimalloc.
newest_package() { apt-cache --names-only search "^$1[0-9.]*[0-9]\$" 2>/dev/null | cut -d' ' -f1 | sort -V | tail -1; }

# The packages that the tests need, those first without which nothing builds.
needs() {
  echo g++ meson ninja-build pkg-config python3 binutils libabsl-dev libgtest-dev libgmock-dev zlib1g-dev libcli11-dev libdeflate-dev \
    libsqlite3-dev sqlite3 libcurl4-openssl-dev util-linux
  # Readers of profiles, tools to compare with, and what a test profiles or builds with.
  echo golang-github-google-pprof-dev protobuf-compiler chromium dwz xz-utils libtcmalloc-minimal4 libgoogle-perftools-dev libjemalloc2 libjemalloc-dev "$(newest_package libmimalloc)" \
    libdebuginfod-dev debuginfod linux-perf cmake luajit "$(newest_package llvm-)"
  # What did not come from apt does as well.
  have go || echo golang-go
  have node || echo nodejs
  have npm || echo npm
  local clang
  clang=$(newest_package clang-)
  asks_for clang asan tsan fuzz compilers && echo "$clang" "libclang-rt-${clang#clang-}-dev" "lld-${clang#clang-}"
  asks_for lint && echo clang-format-14 clang-tidy-14
  asks_for packages && echo debhelper lintian
  asks_for compilers && echo "libc++-${clang#clang-}-dev" "libc++abi-${clang#clang-}-dev"
  asks_for aarch64 && echo g++-aarch64-linux-gnu qemu-user
  asks_for windows && echo g++-mingw-w64-x86-64-posix libz-mingw-w64-dev wine wine64 "lld-${clang#clang-}" "$clang"
}

install_needs() {
  if ! have apt-get || ! have dpkg-query; then
    echo "tests/run.sh: no apt here, so nothing is installed; needed are the counterparts of:" $(needs)
    return
  fi
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  # Without lists of packages, the newest ones are not known.
  if [ "$(id -u)" -eq 0 ] || have sudo; then
    [ -n "$(newest_package llvm-)" ] || "${as_root[@]}" apt-get update -q </dev/null || true
  fi
  local missing=() package
  for package in $(needs); do
    case $package in  # tools from elsewhere count too
      meson | python3 | sqlite3 | cmake | pkg-config) have "$package" && continue ;;
      ninja-build) have ninja && continue ;;
      protobuf-compiler) have protoc && continue ;;
    esac
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "tests/run.sh: installing with apt: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ] && ! have sudo; then
    echo "tests/run.sh: neither root nor sudo, so nothing is installed; going on with what is there"
    return
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null || true
  local available=()
  for package in "${missing[@]}"; do
    if apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then
      available+=("$package")
    else
      echo "tests/run.sh: this system has no package $package; going on without it"
    fi
  done
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${available[@]}" </dev/null; then
    # One package that cannot be installed must not keep the others away.
    for package in "${available[@]}"; do
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

# The installed program $1 with the highest version in its name: clang++-19 for clang++.
newest() { python3 "$root/tests/support/newest.py" "$1"; }

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
  totals+=("0 0 $(grep -c "$mark" "$file") 0")
}

# Objects with lines name the folder that they were compiled in. Clones of this tree share a cache all the same: sources have relative names.
export CCACHE_NOHASHDIR=1
launcher=$(have ccache && echo "ccache ")

totals=()
skip() {
  echo "SKIP $*"
  totals+=("0 0 1 0")
}

# Configures the build of $1 with the compiler $2 and further arguments for meson.
configure() {
  local configuration=$1 compiler=$2 build="$build_root/$1"
  shift 2
  local setup=(meson setup "$build" "$root" -Dwerror=true -Dwarning_level=2 -Dbuildtype=release -Dunity=on -Dunity_size=20 "$@")
  [ -f "$build/build.ninja" ] && setup+=(--reconfigure)
  # The C compiler of the same kind: clang++-14 and clang-14, g++ and gcc.
  local c_compiler=${compiler/clang++/clang}
  CC="$launcher${c_compiler/g++/gcc}" CXX="$launcher$compiler" "${setup[@]}" >"$build_root/$configuration.log" 2>&1
}

build() { ninja -C "$build_root/$1" -k 20 -j"$(job_count)" "${@:2}" >>"$build_root/$1.log" 2>&1; }

failed_build() {
  grep -E 'error|ERROR|FAILED|undefined reference' "$build_root/$1.log" | head -60
  echo "FAIL $1: the build failed; see $build_root/$1.log"
  totals+=("0 1 0 0")
}

run_configuration() {
  local configuration=$1 build="$build_root/$1" compiler=g++ options=(-Doptimization=2 -Db_sanitize=none) wrapper=""
  local wrap_mode=nofallback
  # Lines, but no variables: that is what a report shows, and it compiles faster.
  local sanitized=(-Doptimization=1 -Dcpp_args=-g1 -Db_lundef=false -Dexamples=false)
  case $configuration in
    clang | asan | tsan | fuzz) compiler=$(newest clang++) ;;
    aarch64) compiler=aarch64-linux-gnu-g++ ;;
    windows) compiler=x86_64-w64-mingw32-g++-posix ;;
  esac
  case $configuration in
    asan) have "$compiler" || compiler=g++ ;;  # g++ does not take fences under -fsanitize=thread, so that needs clang
  esac
  if ! have "$compiler"; then
    skip "$configuration: no $compiler on this machine"
    return
  fi
  case $configuration in
    clang) options=(-Doptimization=3 -Db_sanitize=none -Dunity=off -Dlibdeflate=disabled) ;;  # so that both compressors are tested
    hardened)
      options+=("-Dcpp_args=-D_GLIBCXX_ASSERTIONS=1 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection")
      echo 'int main() {}' | "$compiler" -x c++ -O2 -fhardened -fsyntax-only - 2>/dev/null && options[-1]="-Dcpp_args=-fhardened"
      ;;
    asan) options=("${sanitized[@]}" -Db_sanitize=address,undefined) ;;
    tsan)
      options=("${sanitized[@]}" -Db_sanitize=thread)
      if ! wrapper=$(tsan_wrapper "$compiler"); then
        skip "tsan: ThreadSanitizer of $compiler does not run on this machine"
        return
      fi
      ;;
    fuzz)
      options=("${sanitized[@]}" -Db_sanitize=address,undefined -Dfuzz=true)
      if ! has_fuzzer "$compiler"; then
        skip "fuzz: $compiler of this machine has no fuzzer (libclang-rt-dev of its version)"
        return
      fi
      ;;
    aarch64)
      local sysroot reason
      sysroot=$(realpath -m "$build.sysroot")
      if ! reason=$(aarch64_sysroot "$sysroot"); then
        skip "aarch64: $reason"
        return
      fi
      printf "[constants]\nsysroot = '%s'\nlauncher = [%s]\n" "$sysroot" "${launcher:+'ccache'}" >"$sysroot.ini"
      options=(--cross-file "$sysroot.ini" --cross-file "$root/tests/aarch64.ini" -Doptimization=2 -Dexamples=false)
      local -x GTEST_FILTER
      leave_out aarch64 tests/aarch64.ini
      ;;
    windows)
      local reason
      local -x WINEPREFIX WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY="" GTEST_FILTER
      WINEPREFIX=$wine_directory
      trap end_wine EXIT
      if ! reason=$(wine_prefix "$compiler") || ! reason=$(unpack_wraps); then
        skip "windows: $reason"
        return
      fi
      printf "[constants]\nlauncher = [%s]\n" "${launcher:+'ccache'}" >"$build.ini"
      # Abseil, a subproject here, is not written for units of many sources.
      options=(--cross-file "$build.ini" --cross-file "$root/tests/windows.ini" -Doptimization=2 -Dunity=off)
      wrap_mode=default
      leave_out windows tests/windows.ini
      ;;
  esac
  echo "== $configuration: $compiler, ${options[*]} (log: $build_root/$configuration.log)"
  local begin_s=$SECONDS
  if ! configure "$configuration" "$compiler" --wrap-mode="$wrap_mode" "${options[@]}" || ! build "$configuration"; then
    failed_build "$configuration"
    return
  fi
  echo "   built in $((SECONDS - begin_s)) s"
  local test=(meson test -C "$build" --no-rebuild --print-errorlogs --num-processes 2 --timeout-multiplier 2)
  $quick && test+=(--no-suite slow)
  [ "$configuration" = windows ] && test+=(--wrapper "$(printf '%q' "$root/tests/start_again.sh")")
  rm -f "$build"/*.xml "$build"/meson-logs/testlog*.json
  export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=$root/tests/tsan.supp"
  # The background of a shell without job control ignores some signals that tests send.
  local anew=()
  env --default-signal true 2>/dev/null && anew=(env --default-signal)
  "${anew[@]}" $wrapper "${test[@]}" </dev/null 2>&1 3>&- | grep --line-buffered -vE '^(ninja: |Full log|Ok:|Expected Fail|Fail:|Unexpected Pass|Skipped:|Timeout:|$)'
  totals+=("$(python3 "$root/tests/summarize.py" "$configuration" "$build" 2>&1 >&3)")
}

# What looks at sources needs no objects, but the generated sources. $1: lint, or compilers.
check_sources() {
  local tool status
  echo "== $1 (log: $build_root/$1.log)"
  local options=(--wrap-mode=nofallback -Db_sanitize=none)
  [ "$1" = lint ] && options+=(-Dunity=off)
  if ! configure "$1" g++ "${options[@]}" || ! build "$1" src/encode/html/html_page.cc; then
    failed_build "$1"
    return
  fi
  if [ "$1" = compilers ]; then
    local summary
    summary=$(python3 tests/compilers.py "$root" "$build_root/compilers" | tee /dev/fd/3 | tail -1)
    totals+=("$(awk '{ print $1, $3, $5, 0 }' <<<"$summary")")
    return
  fi
  for tool in format tidy; do
    python3 tests/tidy/tidy.py "$root" "${tool/tidy/lint}" "clang-$tool-14" "$build_root/lint"
    status=$?
    case $status in
      0) echo "PASS lint clang-$tool" && totals+=("1 0 0 0") ;;
      77) skip "lint clang-$tool: no clang-$tool-14 here" ;;
      *) echo "FAIL lint clang-$tool" && totals+=("0 1 0 0") ;;
    esac
  done
}

make_packages() {
  local name log status
  echo "== packages (logs: $build_root/packages.*.log)"
  for name in bazel conan debian; do
    log=$build_root/packages.$name.log
    python3 tests/packaging/packages_test.py "$name" "$root" g++ </dev/null >"$log" 2>&1
    status=$?
    case $status in
      0) echo "PASS packages $name" && totals+=("1 0 0 0") ;;
      77) skip "packages $name: $(tail -n 1 "$log")" ;;
      *) tail -n 20 "$log" && echo "FAIL packages $name" && totals+=("0 1 0 0") ;;
    esac
  done
}

other_kernels() {
  echo "== kernels (logs: $build_root/kernels)"
  local summary
  summary=$(bash tests/kernels.sh </dev/null | tee /dev/fd/3 | tail -1)
  totals+=("$(awk '{ print $1, $3, $5, 0 }' <<<"$summary")")
}

exec 3>&1
is_late=0
[ "${begin_within_s:-1}" -eq 0 ] || install_needs
mkdir -p "$build_root"
for configuration in "${configurations[@]}"; do
  if [ -n "$begin_within_s" ] && [ "$SECONDS" -ge "$begin_within_s" ]; then
    skip "$configuration: its turn has not come within $((begin_within_s / 60)) minutes"
    is_late=1
    continue
  fi
  case $configuration in
    lint | compilers) check_sources "$configuration" ;;
    kernels) other_kernels ;;
    packages) make_packages ;;
    *) run_configuration "$configuration" ;;
  esac
  [ "$configuration" = windows ] && end_wine
done
printf '%s\n' "${totals[@]}" | awk -v most="$MAX_CHANCE" -v is_late="$is_late" '
  NF == 4 { passed += $1; failed += $2; skipped += $3; chance += $4 }
  NF != 4 { print; failed++ }
  END {
    printf "A test of this run fails by chance with a probability of %g\n", chance
    if (chance > most) { printf "FAIL chance: that is more than %g\n", most; failed++ }
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0 || (passed == 0 && !is_late)
  }'
