package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/histories"
)

// historySizes are how many records a history has when it is measured.
var historySizes = []struct {
	name    string
	records int
}{{"10", 10}, {"10k", 10_000}, {"100k", 100_000}}

// historyRuns is how often each question is asked.
const historyRuns = 5

// histories measures the embedded history with copies of a record: a list of 20, a report, what a plan asks for, and a
// save.
func (b *bencher) histories(like disdel.Record, most int) error {
	for _, size := range historySizes {
		if size.records > most {
			continue
		}
		home := filepath.Join(b.home, "history-"+size.name)
		if err := b.historyOf(home, size.name, size.records, like); err != nil {
			return err
		}
		if err := os.RemoveAll(home); err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) historyOf(home, name string, n int, like disdel.Record) error {
	ctx := context.Background()
	h, err := histories.Embedded(ctx, home)
	if err != nil {
		return err
	}
	defer h.Close()
	first := time.Now().Add(-time.Duration(n) * time.Minute)
	copied := func(i int) disdel.Record { // a minute apart, and until now
		r := like
		r.Created = first.Add(time.Duration(i) * time.Minute)
		r.ID = histories.NewID(r.Created)
		return r
	}
	if err := h.Fill(n, copied); err != nil {
		return err
	}
	questions := []struct {
		what string
		ask  func() error
	}{
		{"history", func() error { return b.ask(home, "history") }},
		{"report", func() error { return b.ask(home, "report", "@last") }},
		{"plan", func() error {
			_, err := h.Similar(ctx, like.Job)
			if err == nil {
				_, err = h.Recent(ctx, 200)
			}
			return err
		}},
		{"save", func() error {
			like.ID = histories.NewID(time.Now())
			return h.Save(ctx, &like)
		}},
	}
	for _, q := range questions {
		var times []float64
		for range historyRuns {
			start := time.Now()
			if err := q.ask(); err != nil {
				return err
			}
			times = append(times, float64(time.Since(start).Microseconds())/1000)
		}
		figure(fmt.Sprintf("%s_%s_ms", q.what, name), median(times), "ms")
	}
	return nil
}

func (b *bencher) ask(home string, args ...string) error {
	cmd := exec.Command(b.program, append(args, "-q", "--home", home)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}
