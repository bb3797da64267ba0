#!/usr/bin/env bash
# Runs the built tests on other kernels, and on this one's successors, in virtual machines:
#
#   tests/kernels.sh [--list] [NAME...]      (no name: all of them)
#
#   --list       prints the names, and what each is
#
# The kernels are Debian's packages, which are downloaded and unpacked without telling this machine's dpkg. Each boots in qemu with a file
# system of this machine's tools and of the tests of build-tests/gcc, which is built first if it is not there. Where KVM does not work,
# the CPU is emulated: then clocks are slow, and tests/kernels/left_out.txt names what would mean nothing. A kernel that does not come
# to its end within its time has failed, as has one that complains. Needs Debian on x86-64, qemu and the mirror: what cannot be made is
# skipped by name. Kernels are kept in build-tests/kernels, or in $STROBE_BUILD_ROOT/kernels, for the next run; each console stays there.
#
# The last line is "N passed, N failed, N skipped"; exit status 1 if anything failed.
set -uo pipefail
# A boot that has not ended by then has hung. Tests do not begin after the first of them.
readonly TESTS_SECONDS=600 BOOT_SECONDS=900 KVM_SECONDS=20 FETCH_SECONDS=600 NEWEST_DAYS=7
readonly MEMORY_MIB=1536 SHOWN_LINES=25
readonly MIRROR=http://deb.debian.org/debian KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Tests by name, for the table.
readonly UNIT='unit.*,core.*,runtime.*,platform.*,symbolize.*,support.*'
readonly CORE='unit.platform,unit.runtime,unit.process,runtime.*,integration.start_stop,integration.stacks,integration.first_samples'
readonly WAITS='integration.waits,integration.waiting_threads,integration.off_cpu,integration.thread_lives,integration.thread_churn'
readonly ENDS='integration.fork,integration.exec,integration.exit,integration.ending_signals,integration.hostile_signals'
readonly COMMAND='preload.ends,preload.surroundings,preload.children,preload.worker,worker.program,process.record,process.live'
# Releases of Debian and their kernels: what is before the colon is the release, what is behind it the flavour of linux-image.
readonly KERNELS='5.10=bullseye:cloud-amd64 6.1=bookworm:cloud-amd64 6.12=trixie:cloud-amd64 rt=trixie:rt-amd64 newest=sid:cloud-amd64'
# NAME KERNEL CPUS PARAMETERS SETTINGS TESTS; settings are those of tests/kernels/guest.py.
readonly TABLE="
5.10          5.10    2  -                  -                $CORE,$WAITS,$ENDS,$COMMAND,$UNIT
6.1           6.1     2  -                  -                $CORE,$WAITS,$ENDS,$COMMAND,$UNIT
6.12          6.12    2  -                  -                $CORE,$WAITS,$ENDS,$COMMAND,$UNIT
rt            rt      2  -                  -                $CORE,$WAITS,$ENDS,$COMMAND,$UNIT
newest        newest  2  -                  -                $CORE,$WAITS,$ENDS,$COMMAND,$UNIT
none          6.12    2  preempt=none       -                $CORE,$WAITS
voluntary     6.12    2  preempt=voluntary  -                $CORE,$WAITS
full          6.12    2  preempt=full       -                $CORE,$WAITS
lazy          newest  2  preempt=lazy       -                $CORE,$WAITS
one_cpu       6.12    1  -                  -                $CORE,$WAITS,worker.program
eight_cpus    6.12    8  -                  -                $CORE,$WAITS,worker.program
paranoid-1    6.12    2  -                  paranoid=-1,user $CORE,$COMMAND
paranoid0     6.12    2  -                  paranoid=0,user  $CORE,$COMMAND
paranoid1     6.12    2  -                  paranoid=1,user  $CORE,$COMMAND
paranoid2     6.12    2  -                  paranoid=2,user  $CORE,$COMMAND
paranoid3     6.12    2  -                  paranoid=3,user  $CORE,$COMMAND
paranoid4     6.12    2  -                  paranoid=4,user  $CORE,$COMMAND
no_proc       6.12    2  -                  no_proc          harmless.*
hidepid       6.12    2  -                  hidepid,user     harmless.*,$CORE,$COMMAND
read_only     6.12    2  -                  read_only        harmless.*,$CORE,$COMMAND
cgroup        6.12    2  -                  cgroup           harmless.*,$CORE,$COMMAND
seccomp       6.12    2  -                  seccomp          harmless.*,$CORE,$COMMAND
"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build_root=$(realpath -m "${STROBE_BUILD_ROOT:-$root/build-tests}")
kernels=$build_root/kernels

row() { awk -v name="$1" '$1 == name' <<<"$TABLE"; }
names() { awk 'NF { print $1 }' <<<"$TABLE"; }

chosen=()
for argument in "$@"; do
  case $argument in
    --list)
      awk 'NF { printf "%-12s kernel %s, %s CPUs, parameters %s, settings %s\n", $1, $2, $3, $4, $5 }' <<<"$TABLE"
      exit 0
      ;;
    *)
      [ -n "$(row "$argument")" ] || { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
      chosen+=("$argument")
      ;;
  esac
done
[ ${#chosen[@]} -gt 0 ] || mapfile -t chosen < <(names)

. "$root/tests/support/counts.sh"
have() { PATH=/usr/sbin:/sbin:$PATH command -v "$1" >/dev/null 2>&1; }

install_needs() {
  local missing=()
  have qemu-system-x86_64 || missing+=(qemu-system-x86)
  have cpio || missing+=(cpio)
  have depmod || missing+=(kmod)
  [ -x /bin/busybox ] || missing+=(busybox-static)
  have mke2fs || missing+=(e2fsprogs)
  [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" -eq 0 ] && have apt-get || return
  echo "tests/kernels.sh: installing with apt: ${missing[*]}"
  apt-get update -q </dev/null >/dev/null 2>&1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null >/dev/null 2>&1
}

# What the packages of flavour $2 of the release $1 are: downloaded and unpacked into the folder $3.
download() {
  local release=$1 flavour=$2 target=$3 state=$3.apt package
  local apt=(-q -o "APT::Architecture=${flavour##*-}" -o "APT::Architectures=${flavour##*-}" -o "Dir::State::Lists=$state/lists"
    -o Dir::State::status=/dev/null -o "Dir::Cache=$state/cache" -o "Dir::Etc::sourcelist=$state/sources.list"
    -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=)
  rm -rf "$target" "$state"
  mkdir -p "$target" "$state"/{lists/partial,cache/archives/partial,packages}
  echo "deb [target=Packages signed-by=$KEYRING] $MIRROR $release main" >"$state/sources.list"
  timeout "$FETCH_SECONDS" apt-get "${apt[@]}" update </dev/null || return
  # Of what an installation would take, the kernel: one package, or since Debian 14 several.
  apt-get "${apt[@]}" -y --no-install-recommends --print-uris install "linux-image-$flavour" </dev/null |
    sed -nE 's/.* (linux-(base|image|binary|modules)-[0-9][^_]*)_.*/\1/p' >"$state/names"
  [ -s "$state/names" ] || return
  (cd "$state/packages" && timeout "$FETCH_SECONDS" apt-get "${apt[@]}" download $(cat "$state/names") </dev/null) || return
  for package in "$state"/packages/*.deb; do dpkg-deb -x "$package" "$target" || return; done
  rm -rf "$state"
  # Since Debian 13, only /usr has modules; since Debian 14, the kernel is beside them.
  [ -e "$target/lib" ] || ln -s usr/lib "$target/lib"
  cp "$target"/boot/vmlinuz-* "$target.vmlinuz" 2>/dev/null || cp "$target"/lib/modules/*/vmlinuz "$target.vmlinuz"
}

# The first file system of the kernel that is unpacked in $1, as $2: what it takes to come to a disk.
initial_files() {
  local unpacked=$1 files=$1.initial version module name
  version=$(basename "$(echo "$unpacked"/lib/modules/*)")
  rm -rf "$files"
  mkdir -p "$files"/{bin,modules,root}
  PATH=/usr/sbin:/sbin:$PATH depmod -b "$unpacked" "$version" || return
  for name in virtio_pci virtio_blk ext4; do
    PATH=/usr/sbin:/sbin:$PATH modprobe -d "$unpacked" -S "$version" --show-depends "$name" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' >"$files/paths" || return
  while read -r module; do
    name=$(basename "$module")
    case $name in
      *.xz) xz -dc "$module" >"$files/modules/${name%.xz}" ;;
      *.zst) zstd -qdc "$module" >"$files/modules/${name%.zst}" ;;
      *) cp "$module" "$files/modules/" ;;
    esac || return
    name=${name%.xz}
    echo "${name%.zst}" >>"$files/order"
  done <"$files/paths"
  cp /bin/busybox "$files/bin/" && cp "$root/tests/kernels/init" "$files/init" && chmod +x "$files/init" || return
  (cd "$files" && find . | cpio -o -H newc 2>/dev/null) | gzip >"$2"
  rm -rf "$files"
}

# The kernel $1 as $kernels/$1.vmlinuz and $kernels/$1.initrd. It is made once; the newest one is made again after some days.
kernel() {
  local name=$1 from release
  from=$(tr ' ' '\n' <<<"$KERNELS" | sed -n "s/^$name=//p")
  release=${from%:*}
  [ "$name" = newest ] && [ -n "$(find "$kernels/newest.initrd" -mtime "+$NEWEST_DAYS" 2>/dev/null)" ] && rm -f "$kernels/newest.initrd"
  [ -f "$kernels/$name.initrd" ] && return
  download "$release" "${from#*:}" "$kernels/$name.unpacked" && mv "$kernels/$name.unpacked.vmlinuz" "$kernels/$name.vmlinuz" &&
    initial_files "$kernels/$name.unpacked" "$kernels/$name.new" && mv "$kernels/$name.new" "$kernels/$name.initrd" &&
    rm -rf "$kernels/$name.unpacked"
} >"$kernels/$1.fetch.log" 2>&1

# Boots the kernel $2 with the accelerator $1, $3 CPUs and further parameters, for at most $4 seconds.
boot() {
  local accelerator=$1 name=$2 cpus=$3 seconds=$4 cpu=max
  shift 4
  [ "$accelerator" = kvm ] && cpu=host
  timeout -k 5 "$seconds" qemu-system-x86_64 -accel "$accelerator" -cpu "$cpu" -smp "$cpus" -m "$MEMORY_MIB" -display none -monitor none \
    -serial stdio -no-reboot -kernel "$kernels/$name.vmlinuz" -initrd "$kernels/$name.initrd" \
    -drive "file=$kernels/root.ext4,if=virtio,format=raw,snapshot=on" -append "console=ttyS0 quiet panic=-1 $*" </dev/null 2>&1 | sed -u 's/\r//g'
}

# There may be a /dev/kvm that no kernel boots on.
accelerator=
choose_accelerator() {
  [ -n "$accelerator" ] && return
  # With a thread of the host for each of eight CPUs, Linux 7.2 has panicked under qemu 7.2 once, at an int3 where a kernel patches code.
  accelerator=tcg,thread=single
  [ -w /dev/kvm ] && boot kvm "$1" 1 "$KVM_SECONDS" strobe.tests=none >"$kernels/kvm.log" 2>&1 && grep -qx DONE "$kernels/kvm.log" && accelerator=kvm
  echo "   by ${accelerator%,*}"
}

run_row() {
  local name kernel cpus parameters settings tests log begin_s=$SECONDS emulated=
  read -r name kernel cpus parameters settings tests <<<"$(row "$1")"
  log=$kernels/$name.log
  if ! kernel "$kernel"; then
    skip "$name: no kernel $kernel from Debian; see $kernels/$kernel.fetch.log"
    return
  fi
  choose_accelerator "$kernel"
  [ "$accelerator" = kvm ] || emulated='strobe.emulated=1 nowatchdog rcupdate.rcu_cpu_stall_suppress=1'
  begin_s=$SECONDS
  boot "$accelerator" "$kernel" "$cpus" "$BOOT_SECONDS" "${parameters#-} strobe.setting=${settings#-} strobe.tests=$tests \
    strobe.seconds=$TESTS_SECONDS $emulated" >"$log"
  local passes fails skips
  passes=$(grep -c '^PASS ' "$log") fails=$(grep -c '^FAIL ' "$log") skips=$(grep -c '^SKIP ' "$log")
  passed=$((passed + passes)) failed=$((failed + fails)) skipped=$((skipped + skips))
  grep -E '^(FAIL |SKIP |  \| )' "$log" | sed -E "s/^(FAIL|SKIP) /\1 $name /"
  if ! grep -qx DONE "$log" || grep -qE 'BUG:|Oops|Kernel panic' "$log"; then
    tail -"$SHOWN_LINES" "$log"
    fail "$name: the kernel did not come to the end within $BOOT_SECONDS s, or it complains; see $log"
  fi
  echo "== $name ($(sed -n 's/^KERNEL //p' "$log")): $passes passed, $fails failed, $skips skipped, $((SECONDS - begin_s)) s"
}

if [ "$(uname -m)" != x86_64 ]; then
  skip "kernels: the table is of x86-64"
  finish
fi
install_needs
for tool in qemu-system-x86_64 cpio depmod mke2fs apt-get dpkg-deb; do
  have "$tool" && continue
  skip "kernels: no $tool here"
  finish
done
mkdir -p "$kernels"
build=$build_root/gcc
if [ ! -f "$build/build.ninja" ]; then
  echo "tests/kernels.sh: building in $build"
  CXX="$(have ccache && echo 'ccache ')${CXX:-g++}" meson setup "$build" "$root" -Dbuildtype=release -Doptimization=2 -Dunity=on \
    -Dunity_size=20 -Db_sanitize=none --wrap-mode=nofallback >"$kernels/build.log" 2>&1 && ninja -C "$build" >>"$kernels/build.log" 2>&1 ||
    { fail "kernels: the tests do not build; see $kernels/build.log"; finish; }
fi
if ! made=$(python3 "$root/tests/kernels/image.py" "$build" "$kernels/root.ext4" 2>"$kernels/image.log"); then
  skip "kernels: $(tail -1 "$kernels/image.log")"
  finish
fi
echo "== image: $made"
for name in "${chosen[@]}"; do
  run_row "$name"
done
finish
