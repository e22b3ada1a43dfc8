#!/usr/bin/env bash
# Installs what the tests need and a fresh machine may lack: redis-server, Chromium, tmux, PyTorch and Fashion-MNIST from Debian, pouchdb-server (a
# CouchDB-wire server that others wrote), openwhisk (a client), openwhisk-composer and axe-core (which examines pages) from npm, the clients wsk and wskdeploy from Go modules of
# their own. What is there already is left alone. Needs apt only for what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

POUCHDB_SERVER=4.2.0
OPENWHISK_JS=3.21.9
COMPOSER=0.12.0
AXE=4.14.1
cache=.cache
mkdir -p "$cache"

missing=()
command -v redis-server >/dev/null || missing+=(redis-server) # it is a Sentinel and a node of a cluster, too
command -v redis-cli >/dev/null || missing+=(redis-tools)
[ -e /usr/share/dataset-fashion-mnist ] || [ -e /usr/share/datasets/fashion-mnist ] || missing+=(dataset-fashion-mnist)
command -v npm >/dev/null || missing+=(npm)
command -v node >/dev/null || missing+=(nodejs)
command -v python3 >/dev/null || missing+=(python3)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
command -v chromium >/dev/null || missing+=(chromium)
# PyTorch for processors, of Debian's own Python: users' programs are tested with it.
/usr/bin/python3 -c 'import torch' 2>/dev/null || missing+=(python3-torch)
command -v tmux >/dev/null || missing+=(tmux)
command -v strace >/dev/null || missing+=(strace) # calls to the disk that fail
command -v gcc >/dev/null || missing+=(gcc libc6-dev) # the race detector links with cgo

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "install by hand, then run make test again: ${missing[*]}" >&2
    exit 1
  fi
  sudo=""
  if [ "$(id -u)" -ne 0 ]; then sudo="sudo"; fi
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  # The servers are started by the tests, on ports of their own: no service of the machine is wanted.
  $sudo env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 ||
    { cat "$cache/apt.log" >&2; exit 1; }
fi

if [ ! -x "$cache/npm/node_modules/.bin/pouchdb-server" ]; then
  echo "installing: pouchdb-server $POUCHDB_SERVER"
  npm install --silent --no-audit --no-fund --prefix "$cache/npm" "pouchdb-server@$POUCHDB_SERVER" >"$cache/npm.log" 2>&1 ||
    { cat "$cache/npm.log" >&2; exit 1; }
fi

# npm prunes what its package.json does not name, and --prefix is where that lies: a package at a time adds to it.
if ! grep -qs "\"version\": \"$OPENWHISK_JS\"" "$cache/npm/node_modules/openwhisk/package.json"; then
  echo "installing: openwhisk $OPENWHISK_JS"
  npm install --silent --no-audit --no-fund --prefix "$cache/npm" "openwhisk@$OPENWHISK_JS" >"$cache/npm.log" 2>&1 ||
    { cat "$cache/npm.log" >&2; exit 1; }
fi

if ! grep -qs "\"version\": \"$AXE\"" "$cache/npm/node_modules/axe-core/package.json"; then
  echo "installing: axe-core $AXE"
  npm install --silent --no-audit --no-fund --prefix "$cache/npm" "axe-core@$AXE" >"$cache/npm.log" 2>&1 ||
    { cat "$cache/npm.log" >&2; exit 1; }
fi

# Apart from the others: the containers of its compositions are to find what it needs and nothing else, which in OpenWhisk's
# image are redis and uuid as well.
if ! grep -qs "\"version\": \"$COMPOSER\"" "$cache/composer/node_modules/openwhisk-composer/package.json"; then
  echo "installing: openwhisk-composer $COMPOSER"
  npm install --silent --no-audit --no-fund --prefix "$cache/composer" "openwhisk-composer@$COMPOSER" \
    redis@3.1.2 uuid@8.3.2 >"$cache/npm.log" 2>&1 ||
    { cat "$cache/npm.log" >&2; exit 1; }
fi

scripts/daily-deps.sh || echo "onnxruntime could not be installed: its test is skipped" >&2
scripts/export-deps.sh || echo "PyArrow, TensorBoard and MLflow could not be installed: their test is skipped" >&2
scripts/mlflow-deps.sh || echo "MLflow's server could not be installed: its test is skipped" >&2
scripts/movielens.sh || echo "MovieLens-100K could not be fetched: its test is skipped" >&2

# client FOLDER/NAME MODULE builds what a module of its own has, at the versions of its go.mod and go.sum, where any of it changed.
client() {
  local module="$1" program="$cache/bin/${1##*/}"
  if [ -x "$program" ] && [ -z "$(find "$module" -type f -newer "$program")" ]; then return; fi
  echo "building: ${1##*/}"
  mkdir -p "$cache/bin"
  (cd "$module" && GOWORK=off go build -mod=readonly -o "$OLDPWD/$program" "$2")
}
client platform/clients/wsk github.com/sciabarracom/openwhisk-cli
client platform/clients/wskdeploy github.com/apache/openwhisk-wskdeploy
client deploy/cluster/kubecheck . || echo "kubecheck could not be built: manifests are not held against Kubernetes' types" >&2
