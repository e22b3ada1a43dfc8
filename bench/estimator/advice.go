package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// failingJobs is how many jobs that fail are drawn.
const failingJobs = 60

// adviceTime is the longest that one command may take.
const adviceTime = 3 * time.Minute

// failing is a drawn job with one limit that is too small for it.
type failing struct {
	kind string // of the limit
	file string
	args []string
}

// failingJob draws the job with a number. All learn the handwritten digits.
func failingJob(seed uint64, number int) failing {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1<<40+uint64(number)))}
	network := fmt.Sprintf("{layers: [{conv: {filters: %d, kernel: 3, activation: relu}}, "+
		"{dense: {units: %d, activation: relu}}, {dense: {units: 10, activation: softmax}}]}",
		g.between(4, 24), g.between(16, 400))
	if g.IntN(3) == 0 {
		network = "{name: digits-cnn}"
	}
	optimizer := g.pickString("{sgd: {learningRate: 0.01}}", "{sgd: {learningRate: 0.01, momentum: 0.9}}",
		"{adam: {learningRate: 0.001}}")
	f := failing{kind: g.kindOf(number), file: fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: advised-%d}
model: %s
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: %d, batchSize: %d, optimizer: %s}
distribution: {workers: %d}
reliability: {retries: {limit: 1, backoff: {initial: 20ms, max: 100ms}}}
`, number, network, g.between(4, 12), g.pickInt(8, 16, 32, 64, 128), optimizer, g.between(1, 3))}
	f.args = g.tooLittle(f.kind)
	return f
}

func (g *generator) kindOf(number int) string {
	return []string{"timeout", "deadline", "memory", "pool", "budget"}[number%5]
}

// tooLittle are the options that leave a job too little of one thing.
func (g *generator) tooLittle(kind string) []string {
	set := func(format string, value int) []string { return []string{"--set", fmt.Sprintf(format, value)} }
	switch kind {
	case "timeout":
		return set("resources.timeout=%dms", g.between(100, 400))
	case "deadline":
		return set("reliability.deadline=%dms", g.between(200, 1200))
	case "memory": // a network whose weights alone need more than the platform's least limit
		return append(set("model={layers: [{dense: {units: %d, activation: relu}}, "+
			"{dense: {units: 10, activation: softmax}}]}", g.between(120_000, 250_000)), "--set", "resources.memory=128MB",
			"--set", "training.epochs=1")
	case "pool":
		return []string{"--pool-memory", fmt.Sprintf("%dMB", g.between(128, 380))}
	default:
		return set("resources.maxCost=0.%03dGB-s", g.between(20, 200))
	}
}

// advised counts what became of the advice.
type advised struct{ tried, none, failed, passed int }

// advicePart has drawn jobs fail in the built program and carries out what their reports advise. -only is how many;
// "" is all.
func advicePart(ctx context.Context, s subject) (err error) {
	home, err := os.MkdirTemp("", "disdel-advice-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	jobs := failingJobs
	if s.only != "" {
		if _, err := fmt.Sscan(s.only, &jobs); err != nil {
			return fmt.Errorf("-only: the part advice takes a number of jobs: %w", err)
		}
	}
	if out, err := command(ctx, s, home, s.program, "dataset", "add", "digits"); err != nil {
		return fmt.Errorf("dataset add: %w\n%s", err, out)
	}
	var count advised
	for i := range jobs {
		if err := count.carryOut(ctx, s, home, failingJob(s.seed, i)); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"advice_tried", count.tried},
		{"advice_none", count.none},
		{"advice_failed", count.failed},
		{"advice_not_needed", count.passed},
	} {
		figure(f.name, float64(f.value), "count")
	}
	return nil
}

// carryOut runs a job that fails, and then the first command of its report. A job that was refused has no record: its
// hint is the advice.
func (c *advised) carryOut(ctx context.Context, s subject, home string, f failing) error {
	path := filepath.Join(home, "job.yaml")
	if err := os.WriteFile(path, []byte(f.file), 0o600); err != nil {
		return err
	}
	out, err := command(ctx, s, home, append([]string{s.program, "submit", path, "-o", "json"}, f.args...)...)
	var record disdel.Record
	known := json.Unmarshal(firstJSON(out), &record) == nil && record.ID != ""
	switch {
	case err == nil:
		c.passed++
		return nil
	case !known:
		return c.refused(ctx, s, home, f, out)
	}
	lines, why, err := adviceOf(ctx, s, home, record.ID)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		c.none++
		fmt.Fprintf(os.Stderr, "%s %q: no command: %s\n", f.kind, f.args, why)
		return nil
	}
	c.tried++
	out, err = command(ctx, s, home, "sh", "-ec", strings.Join(lines, "\n"))
	if err != nil {
		c.failed++
		fmt.Fprintf(os.Stderr, "%s %q: %s\nfailed again: %v\n%s\n", f.kind, f.args, strings.Join(lines, "\n"), err, out)
		return nil
	}
	fmt.Fprintf(os.Stderr, "%s %q: passed: %s\n", f.kind, f.args, why)
	return nil
}

// refused is for a job that was refused before it ran: the hint of its error is the advice.
func (c *advised) refused(ctx context.Context, s subject, home string, f failing, out []byte) error {
	var failure struct {
		Hint string `json:"hint"`
	}
	if err := json.Unmarshal(firstJSON(out), &failure); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", f.kind, f.args, err, out)
	}
	value, found := strings.CutPrefix(failure.Hint, "--set ")
	if !found {
		c.none++
		fmt.Fprintf(os.Stderr, "%s %q: refused: %s\n", f.kind, f.args, failure.Hint)
		return nil
	}
	c.tried++
	value = strings.TrimSuffix(strings.Fields(value)[0], ",")
	args := append([]string{s.program, "submit", filepath.Join(home, "job.yaml"), "-o", "json"}, f.args...)
	if out, err := command(ctx, s, home, append(args, "--set", value)...); err != nil {
		c.failed++
		fmt.Fprintf(os.Stderr, "%s %q: %s\nfailed again: %v\n%s\n", f.kind, f.args, value, err, out)
	}
	return nil
}

// adviceOf is the first command that the report of a job offers, none if it offers none, and why.
func adviceOf(ctx context.Context, s subject, home string, id disdel.JobID) (lines []string, why string, err error) {
	out, err := command(ctx, s, home, s.program, "report", string(id), "-o", "json")
	var report struct {
		Advice struct {
			Why      string `json:"why"`
			Commands []struct {
				Lines []string `json:"lines"`
			} `json:"commands"`
		} `json:"advice"`
	}
	if err == nil {
		err = json.Unmarshal(firstJSON(out), &report)
	}
	if err != nil {
		return nil, "", fmt.Errorf("report of %s: %w\n%s", id, err, out)
	}
	if len(report.Advice.Commands) > 0 {
		lines = report.Advice.Commands[0].Lines
	}
	return lines, report.Advice.Why, nil
}

// firstJSON is output from where its document begins.
func firstJSON(out []byte) []byte {
	if i := strings.IndexByte(string(out), '{'); i >= 0 {
		var one json.RawMessage
		if json.NewDecoder(strings.NewReader(string(out[i:]))).Decode(&one) == nil {
			return one
		}
	}
	return nil
}

// command runs a command with the home and the built program first in the path, and gives all that it prints.
func command(ctx context.Context, s subject, home string, args ...string) ([]byte, error) {
	ctx, end := context.WithTimeout(ctx, adviceTime)
	defer end()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+home, "PATH="+filepath.Dir(s.program)+":"+os.Getenv("PATH"))
	return cmd.CombinedOutput()
}
