package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/histories"
	"github.com/disdel/disdel/bench/rig"
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
		home := filepath.Join(b.Home, "history-"+size.name)
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
		times, err := rig.Times(historyRuns, q.ask)
		if err != nil {
			return err
		}
		rig.Figure(fmt.Sprintf("%s_%s_ms", q.what, name), rig.Median(times), "ms")
	}
	return nil
}

func (b *bencher) ask(home string, args ...string) error {
	_, err := rig.Program{Path: b.Path, Home: home}.Run(nil, append(args, "-q")...)
	return err
}
