package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const code = `package small

import "errors"

func Half(n int) (int, error) {
	err := errors.New("odd")
	if n%2 != 0 {
		return 0, err
	}
	return n / 2, nil
}
`

// Every kind of change is made, where it is meant.
func TestMutants(t *testing.T) {
	found, err := mutants("small/small.go", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range found {
		all = append(all, m.String())
		if got := string(m.apply([]byte(code))); !strings.Contains(got, m.new) || got == code {
			t.Errorf("%s gives\n%s", m, got)
		}
	}
	want := `small/small.go:7: n%2 != 0 -> !(n%2 != 0)
small/small.go:7: != -> ==
small/small.go:8: err -> nil
small/small.go:10: / -> *`
	if got := strings.Join(all, "\n"); got != want {
		t.Errorf("found\n%s\nnot\n%s", got, want)
	}
}

// What a slice or a map is given to grow changes no result: it is not drawn. A slice's length is.
func TestCapacitiesAreNotChanged(t *testing.T) {
	found, err := mutants("small/small.go", []byte(`package small

func Sizes(n int) (int, int) {
	list, table := make([]int, 0, n+1), make(map[int]int, n*2)
	return len(append(list, len(table))), len(make([]int, n-1))
}
`))
	if err != nil || len(found) != 1 || found[0].String() != "small/small.go:5: - -> +" {
		t.Errorf("%v, %v", found, err)
	}
}

// Every change in equal.txt has a reason, and the code still has the change: no entry outlives its line.
func TestTheListOfEqualChangesIsOfThisCode(t *testing.T) {
	equal, left := equalChanges(), map[string]bool{}
	if n := strings.Count(strings.TrimSpace(equalText), "\n\n") + 1; n != len(equal) {
		t.Errorf("%d entries, but %d that differ and have a file, a line, a change and a reason", n, len(equal))
	}
	for key := range equal {
		left[key] = true
	}
	files := map[string]bool{}
	for key := range equal {
		file, _, _ := strings.Cut(key, "\n")
		files[file] = true
	}
	for file := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		found, err := mutants(file, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			delete(left, m.key())
		}
	}
	for key := range left {
		t.Errorf("equal.txt lists a change that the code does not have: remove it.\n%s", key)
	}
}

// The changes of some lines are tried by name, and a line without any is told with an example.
func TestNamedLinesAreTried(t *testing.T) {
	root := module(t, `
	if n, err := Half(4); n != 2 || err != nil {
		t.Fatal(n, err)
	}
`)
	if err := start(root, nil, "small/small.go:7,small/small.go:10", 0, 0, 1); err != nil {
		t.Error(err)
	}
	err := start(root, nil, "small/small.go:1", 0, 0, 1)
	if err == nil || !strings.Contains(err.Error(), "small/small.go:1 has nothing to change") {
		t.Error(err)
	}
}

// module writes the module of the code with a test, and returns its folder.
func module(t *testing.T, body string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module small.test\n\ngo 1.26\n", "small/small.go": code,
		"small/small_test.go": "package small\n\nimport \"testing\"\n\nfunc TestHalf(t *testing.T) {" + body + "}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A change that a test fails on is noticed, others survive or do not compile; and the file stays as it was.
func TestASurvivorIsToldFromANoticedChange(t *testing.T) {
	root := module(t, `
	if n, err := Half(4); n != 2 || err != nil {
		t.Fatal(n, err)
	}
`)
	all, err := candidates(root, []string{"small"})
	if err != nil {
		t.Fatal(err)
	}
	tests, err := reach(root, t.TempDir(), "small")
	if err != nil {
		t.Fatal(err)
	}
	// the third one leaves err unused; nothing tests an odd number, so only a change of even ones is noticed
	for i, want := range []result{noticed, noticed, invalid, noticed} {
		if got, err := test(root, t.TempDir(), all[i], tests); got != want || err != nil {
			t.Errorf("%s: %v, %v, not %v", all[i], got, err, want)
		}
	}
	at := strings.Index(code, "odd")
	m := mutant{file: "small/small.go", start: at, end: at + len("odd"), new: "even"}
	if got, err := test(root, t.TempDir(), m, tests); got != survived || err != nil {
		t.Errorf("%s: %v, %v", m, got, err)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "small/small.go")); string(text) != code {
		t.Error("the file was changed")
	}
}

// Each package gets its share of the changes, and a package that is not tested well is told by its own share.
func TestEachPackageIsMeasured(t *testing.T) {
	root := module(t, `
	if n, err := Half(4); n != 2 || err != nil {
		t.Fatal(n, err)
	}
`)
	got, err := measure(root, t.TempDir(), "small", 10, 1)
	if want := (tally{places: 4, tried: 3, killed: 3}); got != want || err != nil {
		t.Errorf("%+v, %v, not %+v", got, err, want)
	}
}

// Tests that fail anyway would notice every change: they are told, and nothing is counted.
func TestFailingTestsMeasureNothing(t *testing.T) {
	root := module(t, `t.Fatal("it is always odd")`)
	err := run(root, []string{"small"}, 1, 1, 1)
	if err == nil || !strings.Contains(err.Error(), "TestHalf of small fails without any change") ||
		!strings.Contains(err.Error(), "it is always odd") {
		t.Error(err)
	}
}

// A server that a test leaves running ends with the test, and so do its files.
func TestNothingIsLeftOfATest(t *testing.T) {
	root, scratch := module(t, `
	if err := exec.Command("sleep", "600").Start(); err != nil {
		t.Fatal(err)
	}
	os.MkdirTemp("", "left")
`), t.TempDir()
	path := filepath.Join(root, "small/small_test.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), `"testing"`, "(\"os\"; \"os/exec\"; \"testing\")", 1))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []topTest{{name: "TestHalf"}}
	if got, err := test(root, scratch, mutant{file: "small/small.go"}, tests); got != survived || err != nil {
		t.Fatal(got, err)
	}
	if left, err := filepath.Glob(filepath.Join(scratch, "*", "left*")); len(left) > 0 || err != nil {
		t.Error(left, err)
	}
}

// A change is tried with the tests that reach it, and no others: of a block its tests, of a case those of its function,
// of a constant all.
func TestAChangeIsTriedWithTheTestsThatReachIt(t *testing.T) {
	root, text := module(t, `Sign(1)`), `package small

const one = 2 - 1

func Sign(n int) int {
	switch {
	case n > 0:
		return n / n
	case n < -9:
		return n * 2
	}
	return 0 * n
}
`
	for name, text := range map[string]string{"small.go": text, "more_test.go": `package small

import "testing"

func TestMore(t *testing.T) { Sign(0) }

func TestNothing(t *testing.T) {}
`} {
		if err := os.WriteFile(filepath.Join(root, "small", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests, err := reach(root, t.TempDir(), "small")
	if err != nil || len(tests) != 3 {
		t.Fatal(tests, err)
	}
	found, err := mutants("small/small.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		var names []string
		for _, test := range m.reaching(tests) {
			names = append(names, test.name)
		}
		slices.Sort(names)
		want := map[int]string{
			3: "TestHalf TestMore TestNothing", 7: "TestHalf TestMore", 8: "TestHalf", 9: "TestHalf TestMore", 12: "TestMore",
		}[m.line]
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s is reached by %q, not %q", m, got, want)
		}
	}
}

// Slow tests run after fast ones, in processes of their own. No test is left out.
func TestSlowTestsRunLast(t *testing.T) {
	var tests []topTest
	for _, took := range []time.Duration{1, 400, 500, 900, 1500, 9000, 9000} {
		tests = append(tests, topTest{took: took * time.Millisecond})
	}
	var sizes []int
	for _, group := range groups(tests) {
		sizes = append(sizes, len(group))
	}
	if want := []int{3, 2, 1, 1}; !slices.Equal(sizes, want) {
		t.Errorf("%v, not %v", sizes, want)
	}
}
