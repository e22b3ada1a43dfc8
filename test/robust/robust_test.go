package robust

import (
	"bytes"
	"encoding/json"
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

// check is one of the 42 tests of docs/robustness.md.
type check struct {
	id, what string
	state    state
	note     string // what is left, or which part of the project it belongs to
	tests    []named
	run      func(*trial)
}

// state is how far a check goes.
type state int

const (
	holds state = iota // what it asks for is tested, perhaps on a smaller scale
	part               // some of it is
	later              // what it tests is not there yet
)

var states = [...]string{holds: "holds", part: "part", later: "later"}

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
	count := map[state]int{}
	for _, c := range checks {
		count[c.state]++
		t.Run(c.id, func(t *testing.T) {
			switch {
			case only != nil && !slices.Contains(only, c.id):
				t.Skip("not chosen")
			case c.state == later:
				t.Skipf("later: %s", c.note)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s (%s) failed; again: make robust SEED=%d ONLY=%s", c.id, c.what, seed, c.id)
				}
			})
			for _, h := range c.tests {
				h.run(t)
			}
			if c.run != nil {
				c.run(&trial{t, seed, rand.New(rand.NewPCG(seed, 0x0b)), c.tests})
			}
		})
	}
	fmt.Printf("robust: of %d checks %d hold, %d in part, %d belong to later parts\n", len(checks), count[holds],
		count[part], count[later])
}

// noTests is what go test says of an expression that no test's name matches.
var noTests = regexp.MustCompile(`(?m)^(testing: warning: no tests to run|ok .*\[no tests to run\])$`)

// run runs a package's tests by name, and wants them to be there.
func (h named) run(t *testing.T) {
	t.Helper()
	cmd := exec.Command("go", "test", "-count=1", "-v", "-run", h.tests, "./"+h.folder)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%s %s: %v\n%s", h.folder, h.tests, err, tail(out))
	case noTests.Match(out) || !bytes.Contains(out, []byte("--- PASS: ")):
		t.Errorf("%s has no test %s that ran:\n%s", h.folder, h.tests, tail(out))
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

// The document lists the same checks in the same states.
func TestTheDocumentListsEveryCheck(t *testing.T) {
	text, err := os.ReadFile("../../docs/robustness.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ([RS]\d+) \| ([^|]+) \| (holds|part|later) \|`)
	var got, want []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1]+" "+strings.TrimSpace(m[2])+" "+m[3])
	}
	for _, c := range checks {
		want = append(want, c.id+" "+c.what+" "+states[c.state])
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/robustness.md has\n%s\nand the checks are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
