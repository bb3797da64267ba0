# What tests/run.sh and bench/run.sh share to build for Windows and to run by Wine. Sourced, in the root of the source tree; the caller sets
# wine_directory, an absolute path, and has have().

# Unpacks Abseil, CLI11 and GoogleTest, or that named $1 alone, from Debian's mirror, where the wraps look for them: no package of this machine is
# for such a target. Prints what is missing if it fails.
unpack_wraps() {
  local pool=http://deb.debian.org/debian/pool/main download name directory archive hash status=0
  download=$(mktemp -d -p subprojects .download.XXXXXX)
  while read -r name directory archive hash; do
    [ "${1:-$name}" = "$name" ] && [ ! -f "subprojects/$directory/meson.build" ] || continue
    rm -rf "subprojects/${directory:?}"
    if ! /usr/lib/apt/apt-helper download-file "$pool/$archive" "$download/archive" "SHA256:$hash" >/dev/null 2>&1; then
      echo "no $name here: $pool/$archive could not be downloaded"
      status=1
      break
    fi
    mkdir "$download/$name" && tar -xf "$download/archive" -C "$download/$name" --strip-components=1 &&
      cp "subprojects/packagefiles/$name/meson.build" "$download/$name" && mv "$download/$name" "subprojects/$directory" || status=1
    rm -f "$download/archive"
  done <<'END'
abseil-cpp abseil-cpp-20220623.1 a/abseil/abseil_20220623.1.orig.tar.gz abfe2897f3a30edaa74bc34365afe3c2a3cd012091a97dc7e008f7016adcd5fe
cli11 CLI11-2.1.2 c/cli11/cli11_2.1.2+ds.orig.tar.xz 8143d20b688e98ccce8e24562d3b68e5f47c12e896c42c7ca8553dbde5bed55d
googletest googletest-release-1.12.1 g/googletest/googletest_1.12.1.orig.tar.gz 81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2
END
  rm -rf "$download"
  return $status
}

# Ends Wine's services: they stay otherwise, and hold the output of the first program that Wine ran.
end_wine() {
  if [ -d "$wine_directory" ] && have wineserver; then WINEPREFIX=$wine_directory timeout 60 wineserver -k >/dev/null 2>&1; fi
}

# Makes a prefix for Wine in $WINEPREFIX, without a display or a question, for the compiler $1. Its server stays until it is ended: by itself
# it goes when no program runs, and a program that starts at that moment fails. Prints what is missing if it fails.
wine_prefix() {
  have wine && have wineserver || { echo "no wine or no wineserver on this machine"; return 1; }
  echo '#include <zlib.h>' | "$1" -x c++ -fsyntax-only - 2>/dev/null || { echo "no zlib for $1 (libz-mingw-w64-dev)"; return 1; }
  mkdir -p "$WINEPREFIX"
  end_wine
  { timeout -k 10 60 wineserver -p && timeout -k 10 300 wine wineboot --init && timeout -k 10 60 wine cmd /c exit; } \
    </dev/null >"$WINEPREFIX.log" 2>&1 3>&- || { echo "wine does not work here; see $WINEPREFIX.log"; return 1; }
}
