#!/usr/bin/env bash
# Deploys, invokes, reads and removes actions by the serverless framework, on a platform of its own: what clients do that send
# every action as an archive. It needs bin/disdel (make build), Node.js and npm, and installs the framework at these versions
# into SERVERLESS_CACHE. Prints a line a step and how many of them were as expected.
set -euo pipefail
cd "$(dirname "$0")/.."

SERVERLESS=3.40.0
PLUGIN=0.18.4
cache=${SERVERLESS_CACHE:-$PWD/.cache/serverless}
program=${PROGRAM:-$PWD/bin/disdel}

mkdir -p "$cache"
if [ ! -x "$cache/node_modules/.bin/serverless" ]; then
  npm install --silent --no-audit --no-fund --prefix "$cache" "serverless@$SERVERLESS" "serverless-openwhisk@$PLUGIN"
fi

work=$(mktemp -d)
end() { "$program" --home "$work/home" platform down >/dev/null 2>&1 || true; rm -rf "$work"; }
trap end EXIT
cp -r platform/clients/testdata/serverless "$work/project"
ln -s "$cache/node_modules" "$work/project/node_modules"
"$program" --home "$work/home" platform up --detach --port 0 >/dev/null 2>&1
property() { sed -n "s/^$1=//p" "$work/home/wskprops"; }
OW_APIHOST=$(property APIHOST) OW_AUTH=$(property AUTH)
export OW_APIHOST OW_AUTH OW_NAMESPACE=guest SLS_TELEMETRY_DISABLED=1 SLS_NOTIFICATIONS_MODE=off

passed=0 steps=0
# step NAME WANTED COMMAND... holds a command's output against a text that it has to have.
step() {
  local name=$1 wanted=$2 out
  shift 2
  steps=$((steps + 1))
  if out=$(cd "$work/project" && "$@" 2>&1) && grep -qF -- "$wanted" <<<"$out"; then
    passed=$((passed + 1))
    echo "ok    $name"
  else
    echo "FAIL  $name: no \"$wanted\" in"
    sed 's/^/      /' <<<"$out"
  fi
}
sls="node_modules/.bin/serverless"
step deploy tried-dev-hello "$sls" deploy
step invoke '"payload": "Hello, Jane"' "$sls" invoke --function hello --data '{"name":"Jane"}'
step logs "asked for Jane" "$sls" logs --function hello
step page "<b>Hello, Joe</b>" curl -sf "$OW_APIHOST/api/v1/web/guest/default/tried-dev-page?name=Joe"
step remove "Resource removal successful" "$sls" remove
echo "$passed of $steps"
[ "$passed" -eq "$steps" ]
