#!/bin/sh
# Installs the programs of a release for this machine, after it has checked the archive's SHA-256 sum.
#
#   scripts/install.sh --from URL|FOLDER [--version v0.1.0] [--to FOLDER]
#
# --from has SHA256SUMS and the archives, as `make release` writes them. --version is only needed where --from has several.
# --to is ~/.local/bin by default. An archive whose sum differs is refused, and no file of --to changes.
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

from='' version='' to="${HOME:-}/.local/bin"
while [ $# -gt 0 ]; do
  case $1 in
  --from | --version | --to)
    [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 has no value. Write $1 VALUE."
    case $1 in --from) from=$2 ;; --version) version=$2 ;; --to) to=$2 ;; esac
    shift 2
    ;;
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  *) fail "there is no option $1. Options are --from, --version and --to." ;;
  esac
done
[ -n "$from" ] || fail "--from is missing. Name the URL or folder that has SHA256SUMS and the archives."

case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) fail "there are no programs for $(uname -s), only for Linux and macOS." ;;
esac
case $(uname -m) in
x86_64 | amd64) machine=amd64 ;;
aarch64 | arm64) machine=arm64 ;;
*) fail "there are no programs for $(uname -m) processors, only for amd64 and arm64." ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch() { # NAME
  case $from in
  http://* | https://*)
    if command -v curl >/dev/null; then
      curl -fsSL -o "$work/$1" "${from%/}/$1"
    else
      wget -qO "$work/$1" "${from%/}/$1"
    fi
    ;;
  *) cp "${from#file://}/$1" "$work/$1" ;;
  esac || fail "$1 cannot be read from $from. Check --from."
}

sum_of() { # FILE
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | cut -d ' ' -f 1
}

fetch SHA256SUMS
archives=$(awk -v end="_${system}_$machine.tar.gz" -v name="disdel_${version}_${system}_$machine.tar.gz" -v version="$version" '
  version == "" ? substr($2, length($2) - length(end) + 1) == end : $2 == name { print $2 }' "$work/SHA256SUMS")
case $(printf '%s' "$archives" | grep -c .) in
1) ;;
0) fail "$from has no programs${version:+ of version $version} for $system/$machine. Its SHA256SUMS lists what it has." ;;
*) fail "$from has several versions. Choose one with --version:
$archives" ;;
esac
case $archives in
*/* | *[!A-Za-z0-9._+-]*) fail "the name $archives in SHA256SUMS is no archive's name. Download the release again." ;;
esac

fetch "$archives"
want=$(awk -v name="$archives" '$2 == name { print $1 }' "$work/SHA256SUMS")
got=$(sum_of "$work/$archives")
[ "$got" = "$want" ] || fail "$archives has the sum $got, and SHA256SUMS has $want.
The archive is damaged or not the released one. Nothing was installed. Download it again."

folder=${archives%.tar.gz}
tar -xzf "$work/$archives" -C "$work" || fail "$archives cannot be unpacked."
mkdir -p "$to" || fail "the folder $to cannot be made. Choose another with --to."
for program in disdel disdel-runtime; do
  [ -f "$work/$folder/$program" ] || continue
  cp "$work/$folder/$program" "$to/.$program.new" && chmod 755 "$to/.$program.new" && mv "$to/.$program.new" "$to/$program" ||
    fail "$to/$program cannot be written. Choose another folder with --to."
  echo "installed $to/$program"
done
case :$PATH: in
*:"$to":*) ;;
*) echo "PATH does not have $to. Add it, or start $to/disdel." ;;
esac
