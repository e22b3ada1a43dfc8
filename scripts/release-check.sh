#!/usr/bin/env bash
# Builds a release of this commit twice, from two clones in folders of different names, the second with an empty build
# cache. It installs the programs of the first as users do, and they must say which release and commit they are. Then it
# prints "figure reproducible 1", or 0 and the sums that differ.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
dist=$work/a.dist
revision=$(git rev-parse HEAD)

# says fails unless a program says that it is of the release.
says() { # WHAT PROGRAM...
  local what=$1 said
  shift
  said=$("$@" version)
  [[ $said == "disdel v0.0.0"*"$revision"* ]] || { echo "$what says that it is: $said" >&2; exit 1; }
  echo "$what runs"
}

install_all() {
  sh "$dist/install.sh" --from "$dist" --to "$work/script" >/dev/null
  says "the program that install.sh installed" "$work/script/disdel"
  if command -v dpkg >/dev/null; then
    mkdir -p "$work/root/var/lib/dpkg/info" "$work/root/var/lib/dpkg/updates"
    : >"$work/root/var/lib/dpkg/status"
    dpkg --root="$work/root" --log=/dev/null --force-not-root -i "$dist/disdel_v0.0.0_linux_$(dpkg --print-architecture).deb" >/dev/null
    says "the program of Debian's package" "$work/root/usr/bin/disdel"
  fi
  tar -xzf "$dist/disdel_v0.0.0_linux_arm64.tar.gz" -C "$work"
  if command -v qemu-aarch64 >/dev/null; then
    says "the program for arm64, under an emulator," qemu-aarch64 "$work/disdel_v0.0.0_linux_arm64/disdel"
  fi
  for machine in amd64 arm64; do
    mkdir "$work/image-$machine"
    tar -xf "$dist/disdel-runtime_v0.0.0_linux_$machine.image.tar" -C "$work/image-$machine"
    tar -xzOf "$work/image-$machine"/*.tar.gz disdel-runtime >"$work/runtime-$machine"
  done
  cmp "$work/runtime-arm64" "$work/disdel_v0.0.0_linux_arm64/disdel-runtime"
  cmp "$work/runtime-amd64" <(tar -xzOf "$dist/disdel_v0.0.0_linux_amd64.tar.gz" disdel_v0.0.0_linux_amd64/disdel-runtime)
  echo "the images have the runtimes of the archives"
}

for copy in a another-folder; do
  git clone -q . "$work/$copy"
  [ "$copy" = a ] || export GOCACHE="$work/cache"
  (cd "$work/$copy" && go -C tools run ./release -root .. -version v0.0.0 -out "$work/$copy.dist")
  (cd "$work/$copy.dist" && sha256sum --quiet -c SHA256SUMS)
  [ "$copy" != a ] || install_all
done
if diff "$dist/SHA256SUMS" "$work/another-folder.dist/SHA256SUMS"; then
  echo "figure reproducible 1 (two builds have the same bytes)"
else
  echo "figure reproducible 0 (two builds have the same bytes)"
  exit 1
fi
