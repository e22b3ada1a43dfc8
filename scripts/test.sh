#!/usr/bin/env bash
# Runs every test. The race detector covers the packages that start goroutines or serve HTTP, in their code or in their tests: in
# others it finds nothing, and it makes plain Go kernels a hundred times slower. `scripts/test.sh --raced` lists them; a test in
# concurrency_test.go reads the code and fails when one is missing. "unraced" names the exceptions: the kernels are raced through
# runtime/engine/native with -short; the actions of internal/cli and examples/embed are processes of the built program, which the
# detector does not see; checks of clusters (deploy) hold the test's own program to its memory; simulations run one thing at a time;
# internal/export computes long beside one server.
set -euo pipefail
cd "$(dirname "$0")/.."

export DISDEL_TEST_POUCHDB="$PWD/.cache/npm/node_modules/.bin/pouchdb-server"
export DISDEL_TEST_WSK="$PWD/.cache/bin/wsk" DISDEL_TEST_WSKDEPLOY="$PWD/.cache/bin/wskdeploy"
export DISDEL_TEST_OPENWHISK_JS="$PWD/.cache/npm/node_modules/openwhisk"
export DISDEL_TEST_CHROMIUM="$(command -v chromium || true)"
export DISDEL_TEST_AXE="$PWD/.cache/npm/node_modules/axe-core/axe.min.js"
export DISDEL_TEST_ONNXRUNTIME=""
[ ! -e .cache/daily/.done ] || DISDEL_TEST_ONNXRUNTIME="$PWD/.cache/daily/bin/python"
export DISDEL_TEST_EXPORTS=""
[ ! -e .cache/export/.done ] || DISDEL_TEST_EXPORTS="$PWD/.cache/export/bin/python"
export DISDEL_TEST_MLFLOW=""
[ ! -e .cache/mlflow/.done ] || DISDEL_TEST_MLFLOW="$PWD/.cache/mlflow/bin/python"
export DISDEL_TEST_KUBECHECK="$PWD/.cache/bin/kubecheck"
export DISDEL_TEST_COMPOSER="$PWD/.cache/composer/node_modules/openwhisk-composer"

unraced='/(internal/(cli|export)|examples/embed|deploy/(doctor|image|verify)|test/simulate|runtime/engine/native/kernel)$'
concurrent='^\s*go [a-zA-Z_(]|\.Go\(|t\.Parallel\(\)|^(import)?\s+(\S+ )?"net/http'
# Tests wait for processes and servers more than they compute: twice as many at once as there are processors, and those that take
# longest first, so that none is left alone at the end.
long=(actions service/api service internal/cli platform runtime/engine/python service/program runtime/engine/native
  history/couchlite service/web dataset aggregator history deploy/doctor)
all=$(go list ./...)
packages=$({ for name in "${long[@]}"; do grep "/$name\$" <<<"$all"; done; echo "$all"; } | awk '!seen[$0]++')
module=$(go list -m)
raced=$(for name in $packages; do ! grep -qE "$concurrent" ".${name#"$module"}"/*.go || echo "$name"; done | grep -vE "$unraced")
plain=$(grep -vxFf <(echo "$raced") <<<"$packages")
[ "${1:-}" != --raced ] || { echo "$raced"; exit; }
at_once=$((2 * $(nproc)))
tests() { go test -vet=off -p "$at_once" -timeout 45m "$@"; } # scripts/lint.sh vets

# Containers of the service's tests, without the race detector: what actions do is tested by their own packages.
export DISDEL_TEST_PROGRAM="$PWD/.cache/bin/disdel"
CGO_ENABLED=0 go build -o "$DISDEL_TEST_PROGRAM" ./cmd/disdel

# A process with the race detector sleeps a second when it ends, and many tests start several.
export GORACE="atexit_sleep_ms=10"

# What runs beside the packages, and the files of what it says, which is told behind them. Each has a process group of its
# own: where this script is ended, all that it has started ends, too.
others=() said=()
ended() {
  local of
  for of in "${others[@]}"; do kill -- "-$of" 2>/dev/null || true; done
  rm -f "${said[@]}"
}
trap ended EXIT
beside() {
  local to
  to=$(mktemp)
  said+=("$to")
  set -m
  "$@" >"$to" 2>&1 </dev/null &
  set +m
  others+=($!)
}

# The Python client's tests wait for jobs most of the time, one after the other.
beside scripts/test-python.sh "$DISDEL_TEST_PROGRAM"

# A package that fails keeps no other from being tested, here and below.
failed=0
# shellcheck disable=SC2086 # one argument a package
tests -race $raced || failed=1

# Tests that say so themselves are left out above: those that measure memory, which the race detector multiplies, and those that do one thing
# after the other for long.
apart_of=(runtime platform service service/api dataset dataset/dense actions aggregator)
apart=$(awk '/^func Test/ { sub(/\(.*/, "", $2); name = $2 } /race\.Skip(Memory|Sequential)\(/ { print name }' ${apart_of[@]/%//*_test.go} | sort -u | paste -sd'|')
[ -n "$apart" ] || { echo "no test says that it is skipped under the race detector: scripts/test.sh looks for that" >&2; exit 1; }

# The rest beside each other, since internal/cli waits much and alone takes as long as all others.
rest() {
  local failed=0
  tests -race -short ./runtime/engine/native || failed=1
  # The benches and the generators of assembly are modules of their own.
  (cd runtime/engine/native/kernel/gen && tests ./...) || failed=1
  export CGO_ENABLED=0 # as the released program is built
  tests -run "^($apart)\$" "${apart_of[@]/#/./}" || failed=1
  (cd bench && tests ./...) || failed=1
  return "$failed"
}
beside rest
# shellcheck disable=SC2086
CGO_ENABLED=0 tests -parallel "$at_once" $plain || failed=1
for of in "${!others[@]}"; do
  wait "${others[of]}" || failed=1
  cat "${said[of]}"
done
others=()
exit "$failed"
