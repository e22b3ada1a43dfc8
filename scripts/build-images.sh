#!/usr/bin/env bash
# Builds deploy/Dockerfile and deploy/Dockerfile.python as they are, by buildah (Debian: buildah, debootstrap; as root), starts each
# image, and asks its action. The bases stand in for Docker's, which a machine without its registry cannot pull:
# golang:1.26 is Debian with this machine's Go, python:X-slim-bookworm is Debian with its Python.
set -euo pipefail
cd "$(dirname "$0")/.."
export BUILDAH_ISOLATION=chroot
for tool in buildah debootstrap; do
  command -v "$tool" >/dev/null || { echo "build-images: $tool is missing; install it: apt-get install -y buildah debootstrap" >&2; exit 1; }
done

work=$(mktemp -d)
engine() { buildah --root "$work/storage" --runroot "$work/run" "$@"; }
end() {
  engine umount --all >/dev/null 2>&1 || true
  umount "$work"/storage/*/*/merged "$work"/storage/* 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT

# base NAME COMMAND... makes an image of Debian, after the command has changed its root, which is its last argument. Both trust the
# authorities that this machine trusts.
base() {
  local container root
  container=$(engine from scratch)
  root=$(engine mount "$container")
  cp -a "$work/debian/." "$root/"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  "${@:2}" "$root"
  engine config --env PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin "$container"
  engine umount "$container" >/dev/null
  engine commit -q --rm "$container" "docker.io/library/$1" >/dev/null
}
with_go() { cp -a "$(go env GOROOT)" "$1/usr/local/go"; }
with_python() {
  ln -s /usr/bin/python3 "$1/usr/local/bin/python3"
  ln -s /usr/bin/pip3 "$1/usr/local/bin/pip"
  rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED # Docker's Python has none
}

debootstrap --variant=minbase --include=ca-certificates,python3,python3-pip bookworm "$work/debian" >"$work/log" 2>&1 ||
  { tail -5 "$work/log" >&2; exit 1; }
python=$(chroot "$work/debian" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
base golang:1.26 with_go
base "python:$python-slim-bookworm" with_python

mkdir "$work/context"
git ls-files -z | tar -c --null -T - | tar -x -C "$work/context"
echo "numpy==1.24.2" >"$work/context/requirements.txt"

# built FILE NAME OPTION... builds an image, and unpacks it.
built() {
  engine bud -q --pull-never -f "$work/context/deploy/$1" --build-arg VERSION=1.0 --build-arg REVISION=1 "${@:3}" -t "$2" \
    "$work/context" >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
  [ "$(engine inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' "$2")" = "65532:65532 [/disdel-runtime]" ]
  engine mount "$(engine from --pull-never --name "of-$2" "$2")"
}

# serves NAME ROOT starts the image as its user, and asks its action as OpenWhisk does. The action says that no job came.
serves() {
  local answer
  ln -sfn "$2/tmp" "$work/of" # a socket's name may have 107 letters
  ask() { curl -s --unix-socket "$work/of/socket" -H 'Content-Type: application/json' -d "$2" "http://runtime/$1"; }
  set -m # a process group of its own, which ends as a whole
  engine run "of-$1" -- /disdel-runtime --listen unix:/tmp/socket >"$work/log" 2>&1 &
  set +m
  until ask init '{"value":{"name":"train","main":"train","code":"disdel"}}' >/dev/null; do
    kill -0 $! 2>/dev/null || { tail -5 "$work/log" >&2; exit 1; }
    sleep 0.1
  done
  answer=$(ask run '{"value":{}}')
  kill -- -$!
  wait $! 2>/dev/null || true
  case "$answer" in *error*) echo "image $1: built, answers /init and /run" ;; *) echo "image $1: /run answers $answer" >&2; exit 1 ;; esac
}

root=$(built Dockerfile plain)
[ ! -e "$root/bin" ] || { echo "build-images: the plain image has more than the program" >&2; exit 1; }
serves plain "$root"
root=$(built Dockerfile.python python --build-arg "PYTHON=$python")
engine run of-python -- /usr/local/bin/python3 -c 'import numpy; print("image python: numpy", numpy.__version__)'
serves python "$root"
