package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// promises lists what disdel promises for users' programs. Below a promise are its tests: the file, the function, and
// the row of the function's table if it has one.
const promises = `
# Replay
weights, moments, generators and position return after a kill
	runtime/engine/python/engine_test.go TestKillsLeaveTheSameBits
	actions/program_test.go TestKilledProgramsComeToTheSameBits
warm and cold workers give the same bits
	runtime/engine/python/engine_test.go TestWarmAndColdGiveTheSameBits
forked workers give the same bits
	runtime/engine/python/fork_test.go TestForkedWorkersKeepThePromises
another server takes a job over with the same bits
	internal/cli/python_takeover_test.go TestAServerTakesOverAJobOfAPythonProgram
an optimiser with another state starts anew
	runtime/engine/python/backend_test.go TestAnOpaqueOptimizerStartsAnew
a program without deterministic algorithms is told
	clients/python/tests/test_worker_describe.py test_a_program_without_deterministic_algorithms_is_warned
nothing is unpickled
	runtime/engine/python/promises_test.go TestNothingIsUnpickled
a model is exported with the digest of its code
	internal/cli/testdata/python.txtar "code":"sha256:
infer and evaluate run the program
	actions/program_test.go TestARoundOfAPython

# Failures
an exception has the user's line
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "exception"
a missing package has its line for requirements.txt
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "import"
a failed allocation is out of memory
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "memory"
MemoryError and bad_alloc are out of memory
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "MemoryError"
a death at the limit is out of memory
	runtime/engine/python/backend_test.go TestADeathNearTheLimitIsOfMemory
a crash has the user's line
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "crash"
a hang has the user's line at the timeout
	runtime/engine/python/failures_test.go TestAHangEndsAtTheDeadline
prints have worker and step, and a bound
	runtime/engine/python/failures_test.go TestPrintsAreBounded
a loss that is not finite is divergence
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "not finite"
weights that are not finite at the end of a round are divergence
	runtime/engine/python/failures_test.go TestWeightsThatAreNotFiniteEndTheRound
arrays that change are refused
	clients/python/tests/test_worker_arrays.py test_arrays_that_change_their_shape_are_refused
outputs of another shape are refused
	service/program/describe_test.go TestABadProgramIsRefusedWithItsLine "outputs"
a data set without a length is refused
	internal/cli/testdata/python.txtar returned a generator without a length
steps are tried before a job starts
	service/program/describe_test.go TestABadProgramIsRefusedWithItsLine "user"

# Bad input
no Python
	service/program/environment_test.go TestAMachineWithoutPythonIsToldSo
an old Python
	service/program/environment_test.go TestAnInterpreterIsExamined "old"
no PyTorch
	service/program/environment_test.go TestAPythonWithoutTorchIsRefused
another version of PyTorch than the requirements name
	service/program/environment_test.go TestRequirementsThatCannotBeInstalledAreNamed
a file that does not compile
	service/program/describe_test.go TestABadProgramIsRefusedWithItsLine "syntax"
an import that takes long
	service/program/describe_test.go TestABadProgramIsRefusedWithItsLine "endless"
a class with other arguments
	service/program/describe_test.go TestABadProgramIsRefusedWithItsLine "arguments"
a model without parameters
	service/program/describe_test.go TestABadProgramIsRefusedWithItsLine "parameters"
parameters that layers share
	clients/python/tests/test_worker_describe.py test_tied_weights_are_listed_once_and_whole_numbers_apart
shapes that depend on data
	clients/python/tests/test_worker_describe.py test_what_depends_on_values_is_guessed_and_told_with_its_line "nonzero"
a data set that raises in the middle
	internal/cli/testdata/python.txtar ValueError: the file is torn
a step that starts threads and forks
	clients/python/tests/test_worker_faults.py test_threads_and_forks_leave_nothing_behind
a step that starts more threads than its memory allows
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "threads"
a step that leaves processes
	runtime/engine/python/failures_test.go TestAProgramIsConfinedAndLeavesNothing
a step that prints 100 MB
	runtime/engine/python/failures_test.go TestPrintsAreBounded 10**6
a step that writes to the control socket
	runtime/engine/python/failures_test.go TestPrintsAreBounded os.write(3
a step that calls sys.exit
	runtime/engine/python/failures_test.go TestFailuresHaveTheirClassAndTheUsersLine "exit"
a step that leaks memory
	runtime/engine/python/failures_test.go TestALeakEndsAtTheUsersLine
a step that never returns
	runtime/engine/python/failures_test.go TestAHangEndsAtTheDeadline "loop"
`

// Every promise has a test: a test that is renamed or deleted leaves its promise bare.
func TestEveryPromiseHasATest(t *testing.T) {
	promise, tests := "", 1
	for line := range strings.Lines(promises + "# end") {
		test, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
		switch {
		case test == "":
		case indented:
			tests++
			file, test, _ := strings.Cut(test, " ")
			text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
			if err != nil {
				t.Errorf("%s: %v", promise, err)
			} else if missing := missingFrom(string(text), file, test); missing != "" {
				t.Errorf("%s: %s has no %s", promise, file, missing)
			}
		default:
			if tests == 0 {
				t.Errorf("%s: no test", promise)
			}
			if promise, tests = test, 0; strings.HasPrefix(test, "# ") {
				tests = 1
			}
		}
	}
}

// missingFrom is the part of a test's name that its file lacks, "" if the file has the test.
func missingFrom(text, file, test string) string {
	keyword := map[string]string{".go": "func ", ".py": "def "}[filepath.Ext(file)]
	if keyword == "" { // a script has lines, not functions
		if !strings.Contains(text, test) {
			return test
		}
		return ""
	}
	function, row, _ := strings.Cut(test, " ")
	if !strings.Contains(text, keyword+function+"(") {
		return function
	}
	if row != "" && !strings.Contains(text, row) {
		return row
	}
	return ""
}

// What a store or a program hands over is never unpickled: reading a pickle runs code that its writer chose.
func TestNothingIsUnpickled(t *testing.T) {
	files, err := filepath.Glob("../../../clients/python/src/disdel/*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("the package has %d files (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, reads := range []string{"pickle.load", "Unpickler", "torch.load(", "joblib", "allow_pickle=True"} {
			if strings.Contains(string(text), reads) {
				t.Errorf("%s has %s", filepath.Base(file), reads)
			}
		}
	}
}
