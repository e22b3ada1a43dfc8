package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
)

const (
	// failingJobs is how many jobs that fail are drawn.
	failingJobs = 60
	// drawsOfEach is how many draws one failure may take: a job may pass with what it has.
	drawsOfEach = 4
	// adviceTime is the longest that one command may take.
	adviceTime = 5 * time.Minute
)

// advised counts what became of the advice. Every failure counts once in failures, and every change or command that was
// carried out once in tried.
type advised struct {
	// held while a job runs, so that jobs do not disturb each other's times, and for the fields below. A job that only
	// waits for its dead store gives it up: that takes minutes.
	turn                                     sync.Mutex
	failures, notNeeded, tried, none, failed int
	kinds                                    map[string]int // failures by kind
}

// advicePart has drawn jobs fail in the built program and carries out everything that their errors and reports advise.
// -only is how many failures; "" is failingJobs.
func advicePart(ctx context.Context, s subject) error {
	jobs := failingJobs
	if s.only != "" {
		if _, err := fmt.Sscan(s.only, &jobs); err != nil {
			return fmt.Errorf("-only: the part advice takes a number of jobs: %w", err)
		}
	}
	count := advised{kinds: map[string]int{}}
	for number := 0; count.failures < jobs; {
		if number >= drawsOfEach*jobs {
			return fmt.Errorf("%d of %d drawn jobs failed, and %d were to", count.failures, number, jobs)
		}
		until := number + jobs - count.failures
		if err := count.carryOutAll(ctx, s, number, until); err != nil {
			return err
		}
		number = until
	}
	count.print()
	return nil
}

// carryOutAll carries out the drawn jobs with the numbers from first on, before end.
func (c *advised) carryOutAll(ctx context.Context, s subject, first, end int) error {
	group, ctx := errgroup.WithContext(ctx)
	for number := first; number < end; number++ {
		carryOut := func() error {
			c.turn.Lock()
			defer c.turn.Unlock()
			return c.carryOut(ctx, s, failingJob(s.seed, number))
		}
		if failureKinds[number%len(failureKinds)] == "store" {
			group.Go(carryOut)
		} else if err := carryOut(); err != nil {
			return errors.Join(err, group.Wait())
		}
	}
	return group.Wait()
}

func (c *advised) print() {
	for _, kind := range failureKinds {
		figure("advice_failures_"+kind, float64(c.kinds[kind]), "count")
	}
	figure("advice_failures", float64(c.failures), "count")
	figure("advice_not_needed", float64(c.notNeeded), "count")
	figure("advice_none", float64(c.none), "count")
	figure("advice_tried", float64(c.tried), "count")
	figure("advice_failed", float64(c.failed), "count")
}

// carryOut runs a job in its own home; the caller has the turn. If the job fails, carryOut tries every advised way,
// each in the home as the failure left it.
func (c *advised) carryOut(ctx context.Context, s subject, f failing) (err error) {
	place, err := newPlace(ctx, s, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	if err := place.prepare(ctx); err != nil {
		return err
	}
	done, err := place.failingRun(ctx, &c.turn)
	if err != nil {
		return err
	}
	if done.err == nil {
		c.notNeeded++
		fmt.Fprintf(os.Stderr, "%s %q: passed\n", f.kind, f.args)
		return nil
	}
	c.failures++
	c.kinds[f.kind]++
	told, err := place.advice(ctx, done)
	if err != nil {
		return fmt.Errorf("%s %q: %w", f.kind, f.args, err)
	}
	if len(told.ways) == 0 {
		c.none++
		if problem := told.unhelpful(); problem != "" {
			c.failed++
			fmt.Fprintf(os.Stderr, "%s %q: %s: %q\n", f.kind, f.args, problem, told.text)
		}
		return nil
	}
	if err := place.keep(ctx); err != nil {
		return err
	}
	for _, way := range told.ways {
		if err := place.restore(ctx); err != nil {
			return err
		}
		c.tried++
		again := place.run(ctx, "sh", "-ec", strings.Join(way, "\n"))
		if again.err != nil {
			c.failed++
			fmt.Fprintf(os.Stderr, "%s %q\n%s%s: %s\nfailed again: %v\n%s\n", f.kind, f.args, f.file, told.text,
				strings.Join(way, "\n"), again.err, again.stderr)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: passed: %s\n", f.kind, strings.Join(way, "; "))
	}
	return nil
}

// counsel is what is advised after a failure.
type counsel struct {
	ways [][]string // lines for a shell, each way alone is enough
	text string     // why
}

// unhelpful says what is wrong with a counsel that offers nothing: its text has to say that nothing would help, or what
// has to change that is no field of the job. "" is nothing.
func (c counsel) unhelpful() string {
	if strings.Contains(c.text, "--set") {
		return "the text names a change that is not offered as one"
	}
	for _, words := range []string{"no field", "no limit", "no batch", "smaller network", "no change"} {
		if strings.Contains(c.text, words) {
			return ""
		}
	}
	return "nothing is advised, and the text does not say that nothing would help"
}

// advice is what the report of the failed job says, or the error of one that was refused before it had a record.
func (p *place) advice(ctx context.Context, failed outcome) (counsel, error) {
	var record disdel.Record
	if json.Unmarshal(failed.stdout, &record) == nil && record.ID != "" {
		return p.reported(ctx, record.ID)
	}
	return p.refused(failed)
}

// refusal is the last line that a command with -o json writes to standard error.
type refusal struct {
	Hint    string     `json:"hint"`
	Changes [][]string `json:"changes"`
}

func readRefusal(stderr []byte) (refusal, error) {
	lines := bytes.Split(bytes.TrimSpace(stderr), []byte("\n"))
	var out refusal
	if err := json.Unmarshal(lines[len(lines)-1], &out); err != nil {
		return out, fmt.Errorf("the last line of stderr is no error: %w\n%s", err, stderr)
	}
	return out, nil
}

// refused is for a job that was refused before it ran: each of the error's changes is a way.
func (p *place) refused(failed outcome) (counsel, error) {
	r, err := readRefusal(failed.stderr)
	out := counsel{text: r.Hint}
	for _, change := range r.Changes {
		words := append([]string{}, p.submit...)
		for _, set := range change {
			words = append(words, "--set", set)
		}
		out.ways = append(out.ways, []string{quoted(words)})
	}
	return out, err
}

// quoted is words as a shell reads them.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}

// reported is all that the report of a job advises.
func (p *place) reported(ctx context.Context, id disdel.JobID) (counsel, error) {
	ran := p.run(ctx, p.program, "report", string(id), "-o", "json")
	if ran.err != nil {
		return counsel{}, fmt.Errorf("report of %s: %w\n%s", id, ran.err, ran.stderr)
	}
	return readReport(ran.stdout)
}

func readReport(stdout []byte) (out counsel, err error) {
	var report struct {
		Advice struct {
			Why      string `json:"why"`
			Commands []struct {
				Lines []string `json:"lines"`
			} `json:"commands"`
		} `json:"advice"`
	}
	if err := json.Unmarshal(stdout, &report); err != nil {
		return out, fmt.Errorf("report: %w\n%s", err, stdout)
	}
	out.text = report.Advice.Why
	for _, c := range report.Advice.Commands {
		out.ways = append(out.ways, c.Lines)
	}
	return out, nil
}

// outcome is what a command printed, and how it ended.
type outcome struct {
	stdout, stderr []byte
	err            error
}

// command is one with the place's home and the built program first in the path.
func (p *place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.work
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+p.home, "PATH="+filepath.Dir(p.program)+":"+os.Getenv("PATH"))
	return cmd
}

// run runs a command to its end.
func (p *place) run(ctx context.Context, args ...string) outcome {
	ctx, end := context.WithTimeout(ctx, adviceTime)
	defer end()
	var stdout, stderr bytes.Buffer
	cmd := p.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return outcome{stdout.Bytes(), stderr.Bytes(), err}
}
