#!/usr/bin/env bash
# Runs what others test their clients of OpenWhisk with against the embedded platform, and prints "suite NAME: PASSED of ALL":
# cases of wsk, of npm's openwhisk and of its openwhisk-composer, written anew in our words (platform/clients/testdata/suites);
# the integration tests that wskdeploy brings, as they are; and the serverless framework. It also tests the adapters of Keras,
# Hugging Face and scikit-learn, and that transformers loads exported folders. It needs bin/disdel (make build), and what
# scripts/test-deps.sh installs.
# ONLY=cases, wskdeploy, serverless, frameworks or hub runs one part; ONLY=new the last two with PyTorch 2 and today's libraries, and
# what the Python side of actions promises.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${PROGRAM:-$PWD/bin/disdel}
failed=0

cases() {
  # shellcheck disable=SC1090 # the variables that name what was installed
  . <(grep '^export DISDEL' scripts/test.sh)
  DISDEL_TEST_SUITES=whole go test -count=1 -timeout 20m -v -run 'Test(Wsk|ClientJS|Composer)Cases' ./platform/clients >"$work/cases" || failed=1
  grep -oE 'suite [a-z]+: .*' "$work/cases"
  grep -E '^ +--- FAIL' "$work/cases" || true
}

# What of theirs cannot pass here.
gateway="TestApiGateway|TestApiGatewayWithParams|TestExportApi|TestRequireWhiskAuthAnnotation"
languages="TestJarAction|TestPackagesInManifest|TestExplicitRuntimes|TestHelloWorld"

# Their tests look for their own folder below GOPATH, and for wskdeploy in PATH.
wskdeploy() {
  local module="github.com/apache/openwhisk-wskdeploy" from modules cache
  from=$(cd platform/clients/wskdeploy && GOWORK=off go list -mod=readonly -m -f '{{.Dir}}' "$module")
  modules=$(go env GOMODCACHE) cache=$(go env GOCACHE) # which HOME and GOPATH would else move
  mkdir -p "$work/go/src/$module"
  cp -r "$from/." "$work/go/src/$module"
  chmod -R u+w "$work/go"
  "$program" --home "$work/home" platform up --detach --port 0 --catalog --per-minute 100000 --wskprops "$work/.wskprops" >/dev/null 2>&1
  sed -i 's/^NAMESPACE=.*/NAMESPACE=guest/' "$work/.wskprops"
  sed -n 's/^AUTH=//p' "$work/.wskprops" >"$work/auth" # one of the tests reads what a checkout of OpenWhisk has
  sed -n "s|^APIHOST=\(.*\)://\(.*\):\(.*\)|whisk.api.host.proto=\1\nwhisk.api.host.name=\2\nwhisk.api.host.port=\3\ntesting.auth=$work/auth|p" \
    "$work/.wskprops" >"$work/whisk.properties"
  (
    cd "$work/go/src/$module"
    export HOME="$work" GOPATH="$work/go" GOMODCACHE="$modules" GOCACHE="$cache" GOFLAGS=-mod=mod GOWORK=off
    export WSK_CONFIG_FILE="$work/.wskprops" OPENWHISK_HOME="$work"
    PATH="$OLDPWD/.cache/bin:$PATH" go test -vet=off -count=1 -tags=integration -p 1 -timeout 10m -v ./tests/src/integration/... >"$work/wskdeploy" 2>&1
  ) || true
  echo "suite wskdeploy: $(grep -c '^--- PASS' "$work/wskdeploy") of $(grep -cE '^--- (PASS|FAIL)' "$work/wskdeploy")"
  grep -E '^--- FAIL' "$work/wskdeploy" | grep -vE ": ($gateway|$languages) " && failed=1
  grep -E "^--- FAIL: ($gateway) " "$work/wskdeploy" | sed 's/$/: there is no API gateway/' || true
  grep -E "^--- FAIL: ($languages) " "$work/wskdeploy" | sed 's/$/: there are no other languages/' || true
}

serverless() {
  scripts/serverless.sh >"$work/serverless" || failed=1
  echo "suite serverless: $(tail -1 "$work/serverless")"
  grep '^FAIL' "$work/serverless" || true
}

frameworks() { adapters "$(scripts/frameworks.sh)" tests/test_adapters.py; }
hub() { folders "$(scripts/frameworks.sh)"; }
new() {
  local python
  python=$(scripts/frameworks.sh --new)
  KERAS_BACKEND=torch adapters "$python" 'tests/test_adapters.py tests/test_worker*.py'
  folders "$python"
}

# adapters PYTHON FILES runs tests of clients/python.
adapters() {
  # shellcheck disable=SC2086 # several files, by patterns
  (cd clients/python && PYTHONPATH=src "$1" -m pytest -q -p no:cacheprovider $2) >"$work/frameworks" 2>&1 || failed=1
  echo "suite frameworks: $(tail -1 "$work/frameworks")"
  grep -E '^(FAILED|SKIPPED)' "$work/frameworks" || true
}

# folders has transformers load the folders that disdel writes.
folders() {
  local python="$1"
  DISDEL_TEST_TRANSFORMERS="$python" go test -vet=off -count=1 -run Transformers ./internal/export >"$work/hub" 2>&1 || failed=1
  echo "suite hub: $(tail -1 "$work/hub")"
}

work=$(mktemp -d)
end() { "$program" --home "$work/home" platform down >/dev/null 2>&1 || true; rm -rf "$work"; }
trap end EXIT
for part in ${ONLY:-cases wskdeploy serverless frameworks hub}; do "$part"; done
exit $failed
