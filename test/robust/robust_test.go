package robust

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// check is one of the 42 tests of docs/reference/robustness.md.
type check struct {
	id, what string
	note     string // on which scale it is tested, and what it leaves out
	tests    []named
	run      func(*trial)
}

// named is tests of a package that hold a check.
type named struct{ folder, tests string }

// trial is what a check runs with.
type trial struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	tests []named // the check's
}

// TestRobust runs every check that is there. DISDEL_ROBUST_ONLY chooses some by id, with commas between.
func TestRobust(t *testing.T) {
	text := os.Getenv("DISDEL_ROBUST_SEED")
	if text == "" {
		t.Skip("make robust SEED=1 runs these")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DISDEL_ROBUST_SEED: %v", err)
	}
	var only []string
	if text := os.Getenv("DISDEL_ROBUST_ONLY"); text != "" {
		only = strings.Split(text, ",")
	}
	held := 0
	var skipped []string
	for _, c := range checks {
		if only != nil && !slices.Contains(only, c.id) {
			continue
		}
		var inner *testing.T
		parts := 0 // that were skipped
		t.Run(c.id, func(t *testing.T) {
			inner = t
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s (%s) failed; again: make robust SEED=%d ONLY=%s", c.id, c.what, seed, c.id)
				}
			})
			for _, h := range c.tests {
				parts += h.run(t)
			}
			if c.run != nil {
				c.run(&trial{t, seed, rand.New(rand.NewPCG(seed, 0x0b)), c.tests})
			}
		})
		switch {
		case inner.Failed():
			fmt.Printf("robust: %s failed\n", c.id)
		case parts > 0 || inner.Skipped():
			skipped = append(skipped, c.id)
		default:
			held++
			fmt.Printf("robust: %s holds\n", c.id)
		}
	}
	fmt.Printf("figure rows_held %d (of %d checks: those that ran here in full and passed)\n", held, len(checks))
	if len(skipped) > 0 {
		fmt.Printf("robust: this machine skipped a part of %s: these were not shown here\n", strings.Join(skipped, ", "))
	}
}

// run runs a package's tests by name. Every name must pass or be skipped; it returns how many tests, or parts of tests,
// were skipped.
func (h named) run(t *testing.T) (skipped int) {
	t.Helper()
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-timeout", "30m", "-v", "-run", h.tests, "./"+h.folder)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", h.folder, h.tests, err, tail(out))
		return 0
	}
	missing, skips := h.outcome(out)
	for _, name := range missing {
		t.Errorf("%s has no test %s that ran:\n%s", h.folder, name, tail(out))
	}
	for _, name := range skips {
		t.Logf("%s skipped %s", h.folder, name)
	}
	return len(skips)
}

// testLine is what go test -v says of a test that passed or was skipped, or of a part of it.
var testLine = regexp.MustCompile(`(?m)^ *--- (PASS|SKIP): (\S+) \(`)

// outcome reads what go test -v printed: names of h that no test answers to, and tests that were skipped.
func (h named) outcome(out []byte) (missing, skipped []string) {
	var ran []string
	for _, m := range testLine.FindAllSubmatch(out, -1) {
		name := string(m[2])
		ran = append(ran, name)
		if string(m[1]) == "SKIP" {
			skipped = append(skipped, name)
		}
	}
	for want := range strings.SplitSeq(h.tests, "|") {
		form := regexp.MustCompile("^" + want)
		if !slices.ContainsFunc(ran, form.MatchString) {
			missing = append(missing, want)
		}
	}
	return missing, skipped
}

// One test that passes does not stand for others that did not run, and a skipped one is told.
func TestEveryNameNeedsATestThatRan(t *testing.T) {
	h := named{"x", "TestA|TestB/two$|TestC|TestD"}
	missing, skipped := h.outcome([]byte(`=== RUN   TestA
--- PASS: TestA (0.00s)
--- PASS: TestB (0.01s)
    --- PASS: TestB/two (0.00s)
--- SKIP: TestD (0.00s)
    x_test.go:1: no such device
--- PASS: TestNotC (0.00s)
`))
	if !slices.Equal(missing, []string{"TestC"}) || !slices.Equal(skipped, []string{"TestD"}) {
		t.Errorf("missing %v, skipped %v", missing, skipped)
	}
}

func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }

// records is what history -o json printed.
func records(t *testing.T, r ran) []disdel.Record {
	t.Helper()
	var out []disdel.Record
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatalf("no list of records: %v: %v", err, r)
	}
	return out
}

// update has the document's table written anew from the checks.
var update = flag.Bool("update", false, "write the table of docs/reference/robustness.md")

// The document's table is made from the checks.
func TestTheDocumentListsEveryCheck(t *testing.T) {
	const document = "../../docs/reference/robustness.md"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	rows.WriteString("| check | what | scale and limits |\n|---|---|---|\n")
	for _, c := range checks {
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", c.id, c.what, c.note)
	}
	table := rows.String()
	found := regexp.MustCompile(`(?m)^\| check (.*\n\|)*.*\n`).FindString(string(text))
	if found == table {
		return
	}
	if *update {
		err := os.WriteFile(document, []byte(strings.Replace(string(text), found, table, 1)), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("docs/reference/robustness.md has\n%s\nand the checks are\n%s\n-update writes them", found, table)
}
