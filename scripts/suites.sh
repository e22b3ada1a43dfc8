#!/usr/bin/env bash
# Runs what others test their clients of OpenWhisk with against the embedded platform, and prints "suite NAME: PASSED of ALL":
# cases of wsk, of npm's openwhisk and of its openwhisk-composer, written anew in our words (platform/clients/testdata/suites);
# the integration tests that wskdeploy brings, as they are; and the serverless framework. It needs bin/disdel (make build) and
# what scripts/test-deps.sh installs. ONLY=cases, wskdeploy or serverless runs one part.
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

# Their tests look for their own folder below GOPATH, and for wskdeploy in PATH.
wskdeploy() {
  local module="github.com/apache/openwhisk-wskdeploy" from modules
  from=$(cd platform/clients/wskdeploy && GOWORK=off go list -mod=readonly -m -f '{{.Dir}}' "$module")
  modules=$(go env GOMODCACHE)
  mkdir -p "$work/go/src/$module"
  cp -r "$from/." "$work/go/src/$module"
  chmod -R u+w "$work/go"
  "$program" --home "$work/home" platform up --detach --port 0 --catalog --per-minute 100000 --wskprops "$work/.wskprops" >/dev/null 2>&1
  sed -i 's/^NAMESPACE=.*/NAMESPACE=guest/' "$work/.wskprops"
  (
    cd "$work/go/src/$module"
    export HOME="$work" GOPATH="$work/go" GOMODCACHE="$modules" GOFLAGS=-mod=mod GOWORK=off WSK_CONFIG_FILE="$work/.wskprops"
    PATH="$OLDPWD/.cache/bin:$PATH" go test -count=1 -tags=integration -p 1 -timeout 10m -v ./tests/src/integration/... >"$work/wskdeploy" 2>&1
  ) || true
  echo "suite wskdeploy: $(grep -c '^--- PASS' "$work/wskdeploy") of $(grep -cE '^--- (PASS|FAIL)' "$work/wskdeploy")"
  grep -E '^--- FAIL' "$work/wskdeploy" || true
}

serverless() {
  scripts/serverless.sh >"$work/serverless" || failed=1
  echo "suite serverless: $(tail -1 "$work/serverless")"
  grep '^FAIL' "$work/serverless" || true
}

work=$(mktemp -d)
end() { "$program" --home "$work/home" platform down >/dev/null 2>&1 || true; rm -rf "$work"; }
trap end EXIT
for part in ${ONLY:-cases wskdeploy serverless}; do "$part"; done
exit $failed
