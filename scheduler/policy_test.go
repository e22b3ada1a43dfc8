package scheduler

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

var update = flag.Bool("update", false, "write the transcripts of testdata anew")

// Every file of testdata/policies is a script: observations in, decisions under each as "-> ...". A policy is pure, so
// a transcript is the whole of its behaviour.
func TestPoliciesFollowTheirScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/policies/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range PolicyNames() {
		if file := "testdata/policies/" + name + ".txt"; !slices.Contains(files, file) {
			t.Errorf("policy %s has no %s: write its lines; go test ./scheduler -update adds the decisions", name, file)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playPolicy(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := gocmp.Diff(string(want), got); diff != "" && !*update {
				t.Errorf("transcript (-want +got); if that is meant, go test ./scheduler -update:\n%s", diff)
			}
		})
	}
}

// scriptWords are the lines of a script and what each may say: a policy begins, with so many epochs left and goals; an
// epoch of an earlier job took so many seconds; the job starts; an epoch or a round in the middle of one has taken so
// many seconds, of which so many were computing; an activation has failed and its remedy asks for something.
var scriptWords = map[string][]string{
	"policy":  {"workers", "least", "most", "processors", "epochs", "deadline", "cost", "memory"},
	"past":    {"workers", "rows", "cold", "memory"},
	"start":   {},
	"epoch":   {"rows", "loss", "cold", "retried", "compute", "cost", "left"},
	"round":   {"rows", "loss", "cold", "retried", "compute", "cost"},
	"failure": {"workers", "batch"},
}

// playPolicy reads "policy NAME workers=N ...", "epoch SECONDS ...", "round SECONDS ..." and "failure ...", with more
// of scriptWords, and writes each decision below its line.
func playPolicy(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	var p Policy
	var in Input
	lines := bufio.NewScanner(strings.NewReader(script))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-> ") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		o := numbers(t, words)
		if words[0] == "policy" {
			var job disdel.Job
			job.Distribution.Policy = words[1]
			var err error
			if p, err = PolicyOf(job); err != nil {
				t.Fatal(err)
			}
			in = Input{Now: disdel.Setting{Workers: int(o["workers"]), Memory: disdel.Bytes(o["memory"]) * disdel.MB}}
			in.Bounds = Bounds{Least: max(1, int(o["least"])), Most: 64, MostReason: "one batch a worker", Batches: 64}
			if most := int(o["most"]); most > 0 {
				in.Bounds.Most, in.Bounds.MostReason = most, "distribution.maxWorkers"
			}
			in.Bounds.Processors = int(o["processors"])
			in.Goal = Goal{Epochs: o["epochs"], Deadline: disdel.Millis(o["deadline"] * 1e9), Cost: o["cost"]}
			continue
		}
		if words[0] == "past" {
			in.Past = append(in.Past, disdel.Observation{
				Setting:  disdel.Setting{Workers: int(o["workers"]), Memory: disdel.Bytes(o["memory"]) * disdel.MB},
				Rows:     cmp.Or(int(o["rows"]), 1000),
				Duration: scriptSeconds(t, words), Epoch: float64(len(in.Past) + 1), Cold: disdel.Millis(o["cold"] * 1e9),
			})
			continue
		}
		in = told(t, in, words, o)
		d := DecideInBounds(p, in)
		fmt.Fprintln(&out, "-> "+decided(d))
		in.Now = d.Next
	}
	return out.String()
}

func numbers(t *testing.T, words []string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	known, ok := scriptWords[words[0]]
	if !ok {
		t.Fatalf("%q: a line begins with one of %v", words[0], slices.Sorted(maps.Keys(scriptWords)))
	}
	for i, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		switch {
		case !ok && i == 0 && words[0] != "failure":
			continue // the policy's name, or seconds
		case !slices.Contains(known, k):
			t.Fatalf("%s: %q is not one of %v", words[0], w, known)
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		out[k] = f
	}
	return out
}

// told is the input after one line of a script.
func told(t *testing.T, in Input, words []string, o map[string]float64) Input {
	t.Helper()
	in.Failure = nil
	if words[0] == "failure" {
		in.Boundary = disdel.BoundaryFailure
		r := Remedy{Retry: true, Workers: int(o["workers"]), BatchSize: int(o["batch"]), Why: "memory is at its ceiling"}
		in.Failure = &Failure{Remedy: r}
		return in
	}
	if words[0] == "start" {
		in.Boundary = disdel.BoundaryStart
		return in
	}
	before := 0.0
	if n := len(in.Seen); n > 0 {
		before = in.Seen[n-1].Epoch
	}
	seen := disdel.Observation{
		Round: len(in.Seen), Setting: in.Now, Rows: 1000, Duration: scriptSeconds(t, words),
		Compute: disdel.Millis(o["compute"] * 1e9), Cost: o["cost"], Cold: disdel.Millis(o["cold"] * 1e9),
		Retried: int(o["retried"]), Left: int(o["left"]), Epoch: float64(int(before) + 1),
		Loss: o["loss"],
	}
	if rows := int(o["rows"]); rows > 0 {
		seen.Rows = rows
	}
	in.Boundary = disdel.BoundaryEpoch
	if words[0] == "round" {
		in.Boundary, seen.Epoch = disdel.BoundaryRound, before+0.25
	}
	if words[0] == "epoch" {
		in.Goal.Epochs = max(0, in.Goal.Epochs-1)
	}
	if in.Goal.Cost > 0 {
		in.Goal.Cost = max(0, in.Goal.Cost-o["cost"])
	}
	if in.Goal.Deadline > 0 {
		in.Goal.Deadline = max(0, in.Goal.Deadline-seen.Duration)
	}
	in.Seen = append(in.Seen, seen)
	return in
}

// scriptSeconds is the second word of a line.
func scriptSeconds(t *testing.T, words []string) disdel.Millis {
	t.Helper()
	seconds, err := strconv.ParseFloat(words[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return disdel.Millis(seconds * 1e9)
}

func decided(d disdel.Decision) string {
	var s strings.Builder
	s.WriteString(workersText(d.Next.Workers))
	if d.Next.Memory > 0 {
		s.WriteString(fmt.Sprintf(" of %v", d.Next.Memory))
	}
	if d.BatchSize > 0 {
		s.WriteString(fmt.Sprintf(", batch %d", d.BatchSize))
	}
	if d.Expect != nil {
		s.WriteString(fmt.Sprintf(", expects %v", d.Expect.PerThousand))
	}
	if d.Why != "" {
		s.WriteString(": " + d.Why)
	}
	for _, r := range d.Reasons {
		s.WriteString("; " + r)
	}
	return s.String()
}

func TestAPolicyThatNobodyHasIsRefused(t *testing.T) {
	var job disdel.Job
	job.Distribution.Policy = "guess"
	if _, err := PolicyOf(job); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("a policy that nobody has: %v", err)
	}
}

// answer is a policy that says what it is told to.
type answer disdel.Decision

func (answer) Name() string                   { return "answer" }
func (answer) Meaning() string                { return "says what it is told to" }
func (a answer) Decide(Input) disdel.Decision { return disdel.Decision(a) }

// Whatever a policy says: what comes of it is within the bounds, in the middle of an epoch nothing changes, and
// whatever was changed of the answer has its reason.
func TestDecisionsAreWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		least := number("least", 1, 5)
		in := Input{
			Boundary: rapid.SampledFrom([]disdel.Boundary{"start", "round", "epoch", "failure"}).Draw(t, "boundary"),
			Bounds: Bounds{
				Least: least, Most: least + number("span", 0, 5), Batches: 16, LeastMemory: 128 * disdel.MB,
				HighestMemory: disdel.GB,
			},
			Now: disdel.Setting{Workers: least, AverageEvery: number("k", 0, 1) * 8},
		}
		said := disdel.Decision{BatchSize: number("batch", -1, 8), Next: disdel.Setting{
			Workers: number("workers", -9, 30), Memory: disdel.Bytes(number("memory", 0, 2048)) * disdel.MB,
			FanIn: number("fanIn", -1, 4), AverageEvery: number("every", -1, 9),
		}}
		d := DecideInBounds(answer(said), in)
		most := in.Bounds.Most
		if in.Boundary == disdel.BoundaryFailure {
			least, most = 1, in.Bounds.Batches
		}
		switch n := d.Next; {
		case n.Workers < least || n.Workers > most:
			t.Fatalf("%d workers of %d to %d", n.Workers, least, most)
		case n.Memory != 0 && (n.Memory < in.Bounds.LeastMemory || n.Memory > in.Bounds.HighestMemory):
			t.Fatalf("memory %v", n.Memory)
		case n.FanIn < 0 || n.FanIn == 1 || n.AverageEvery < 0 || d.BatchSize < 0:
			t.Fatalf("%+v", d)
		case in.Boundary == disdel.BoundaryRound && n != in.Now:
			t.Fatalf("in the middle of an epoch: %+v became %+v", in.Now, n)
		case in.Boundary != disdel.BoundaryFailure && d.BatchSize != 0:
			t.Fatalf("batch %d without a failure", d.BatchSize)
		case (n != said.Next || d.BatchSize != said.BatchSize) && len(d.Reasons) == 0:
			t.Fatalf("%+v became %+v without a reason", said, d)
		}
	})
}

func ExampleDecideInBounds() {
	in := Input{
		Boundary: disdel.BoundaryEpoch, Now: disdel.Setting{Workers: 4},
		Seen: []disdel.Observation{{
			Setting: disdel.Setting{Workers: 4}, Rows: 1000, Epoch: 1,
			Duration: disdel.Millis(12 * time.Second),
		}},
		Bounds: Bounds{Least: 1, Most: 4, MostReason: "distribution.maxWorkers", Batches: 16},
	}
	d := DecideInBounds(KubeML{}, in)
	fmt.Println(d.Next.Workers, d.Why)
	fmt.Println(d.Reasons)
	// Output:
	// 4 the first epoch took 12.0 s: one worker more
	// [workers: 4 instead of 5, by distribution.maxWorkers]
}

// MLLess' Fig. 4b: its reference curve is recovered from losses with noise of 2 %, and 200 steps on what it foretells
// is within 1.5 % of it (Fig. 4c).
func TestPaperFigure4(t *testing.T) {
	paper := func(x float64) float64 { return 1/(0.05*math.Pow(x, 1.58)+0.58) + 0.49 }
	lot := rand.New(rand.NewPCG(4, 2))
	var losses []float64
	for x := range 100 {
		losses = append(losses, paper(float64(x+1))*math.Exp(0.02*lot.NormFloat64()))
	}
	at := reference(losses)
	for _, x := range []float64{20, 100, 300} {
		if off := math.Abs(at(x)/paper(x) - 1); off > 0.015 {
			t.Errorf("after %g steps %.4f, and the curve has %.4f", x, at(x), paper(x))
		}
	}
}

// What the law is fitted to is found again, whatever terms it has, and two numbers of workers say no more than two
// terms.
func TestSpeedLawsAreFoundAgain(t *testing.T) {
	for _, want := range []speedLaw{{5, 100, 1}, {0, 100, 1}, {20, 60, 0}, {0, 80, 0}, {7, 0, 0}} {
		var at []timed
		for _, w := range []int{1, 2, 4, 7} {
			at = append(at, timed{w, want.at(w, speedConditions{})})
		}
		got, ok := fitSpeed(at, speedConditions{})
		for _, w := range []int{1, 3, 8, 16} {
			here, there := got.at(w, speedConditions{}), want.at(w, speedConditions{})
			if off := math.Abs(here/there - 1); !ok || off > 1e-6 {
				t.Errorf("%+v: %+v, and %d workers take %.3f, not %.3f", want, got, w, here, there)
			}
		}
	}
	if _, ok := fitSpeed([]timed{{2, 10}, {2, 11}}, speedConditions{}); ok {
		t.Error("one number of workers made a law")
	}
	if l, ok := fitSpeed([]timed{{2, 52}, {4, 29}}, speedConditions{}); !ok || l.fixed != 0 || math.Abs(l.each-1) > 1e-9 {
		t.Errorf("two numbers: %+v", l)
	}
	two := speedConditions{Processors: 2}
	l, ok := fitSpeed([]timed{{1, 100}, {2, 60}}, two) // 20 + 80 / min(w, 2), and a third of the 20 for two more
	if got := l.at(4, two); !ok || l.each != 0 || math.Abs(got-(60+20/3.0)) > 1e-9 {
		t.Errorf("two processors: %+v, and four workers take %g", l, got)
	}
	if l, ok = fitSpeed([]timed{{1, 100}, {2, 60}, {4, 90}}, two); !ok || l.at(8, two) < 120 {
		t.Errorf("four workers took half as long again as two: %+v, and eight take %g", l, l.at(8, two))
	}
}

// Rounds of some batches are fewer with more workers, on however few processors.
func TestMoreWorkersThanProcessorsSaveRounds(t *testing.T) {
	two := speedConditions{Processors: 2, Rounds: true}
	want := speedLaw{fixed: 90, work: 40, each: 5}
	var at []timed
	for _, w := range []int{1, 2, 4} {
		at = append(at, timed{w, want.at(w, two)})
	}
	if got := want.at(2, two); got != 45+20+5 {
		t.Errorf("two workers take %g", got)
	}
	l, ok := fitSpeed(at, two)
	if got := l.at(8, two); !ok || math.Abs(got-want.at(8, two)) > 1e-6 {
		t.Errorf("%+v, and eight workers take %g, not %g", l, got, want.at(8, two))
	}
	if l, ok = fitSpeed(at[:2], two); !ok || l.at(4, two) >= at[1].time || l.at(4, two) <= at[1].time/2 {
		t.Errorf("one and two: %+v, and four take %g", l, l.at(4, two))
	}
	slower := []timed{{2, 60}, {4, 70}}
	if l, ok = fitSpeed(slower, two); !ok || l.at(8, two) < 60 {
		t.Errorf("four are slower than two: %+v, and eight take %g", l, l.at(8, two))
	}
}
