package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/histories"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
)

// asked is how often each question is asked; the median counts.
const asked = 21

// server is where a history is measured.
type server struct {
	name string // what its figures have in theirs
	open func(ctx context.Context, folder string) (*histories.History, error)
}

// ask measures what plans and lists wait for in histories of n records, jobs of a hundred kinds: on a server of
// CouchDB's protocol that others wrote, where pouchdb names it, and on the embedded one.
func ask(ctx context.Context, n int, pouchdb string) error {
	servers := []server{{"embedded_", histories.Embedded}}
	if pouchdb != "" {
		servers = append(servers, server{"", func(ctx context.Context, folder string) (*histories.History, error) {
			return histories.PouchDB(ctx, pouchdb, folder)
		}})
	}
	if n == 0 {
		return nil
	}
	for _, s := range servers {
		if err := rig.Folder(func(folder string) error { return s.ask(ctx, n, folder) }); err != nil {
			return err
		}
	}
	return nil
}

func (s server) ask(ctx context.Context, n int, folder string) (err error) {
	h, err := s.open(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if _, err := h.Similar(ctx, record(0).Job); err != nil { // makes the view
		return err
	}
	if err := h.Fill(n, record); err != nil {
		return err
	}
	begun := time.Now()
	if err := h.Settle(ctx); err != nil {
		return err
	}
	rig.Figure(fmt.Sprintf("view_%s%dk_s", s.name, n/1000), time.Since(begun).Seconds(), "s")
	for _, q := range questions(ctx, h) {
		times, err := rig.Times(asked, q.ask)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		rig.Figure(fmt.Sprintf("%s_%s%dk_ms", q.name, s.name, n/1000), rig.Median(times), "ms")
	}
	return nil
}

type question struct {
	name string
	ask  func() error
}

// questions are what plans and lists ask. Each is answered by some records.
func questions(ctx context.Context, h *histories.History) []question {
	some := func(found []disdel.Record, err error) error {
		if err == nil && len(found) == 0 {
			err = errors.New("no record was found")
		}
		return err
	}
	like := record(0)
	list := func(q history.Query) func() error {
		return func() error { return some(h.List(ctx, q)) }
	}
	return []question{
		{"similar", func() error { return some(h.Similar(ctx, like.Job)) }},
		{"recent", func() error { return some(h.Recent(ctx, 200)) }},
		{"list", list(history.Query{})},
		{"list_failed", list(history.Query{Status: disdel.StatusFailed})},
		{"list_model", list(history.Query{Model: like.Job.Model.Name, Dataset: like.Data.Name})},
	}
}

// The shape of a record: that of a job of ten rounds and two workers, some ten KB.
const (
	kinds  = 100
	rounds = 10
	failed = 20 // one job in so many
)

// record is the i-th one, a minute after the one before it.
func record(i int) disdel.Record {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
	loss, accuracy := 0.25, 0.95
	r := disdel.Record{
		APIVersion: disdel.APIVersion, ID: histories.NewID(at), Status: disdel.StatusSucceeded, Created: at,
		Ended: at.Add(10 * time.Second), Accuracy: accuracy, Loss: loss, CostGBs: 4,
	}
	if i%failed == failed-1 {
		r.Status = disdel.StatusFailed
	}
	r.Job.Metadata.Name, r.Job.Model.Name = "job", "digits-cnn"
	r.Job.Data.Source, r.Data.Name = "dataset://digits", "digits"
	r.Job.Training.BatchSize, r.Job.Training.Epochs = 16+i%kinds, rounds
	for n := range rounds {
		r.Rounds = append(r.Rounds, disdel.Round{
			TrainLoss: loss, Loss: &loss, Accuracy: &accuracy, Duration: disdel.Millis(time.Second),
		})
		for member := range 2 {
			r.Activations = append(r.Activations, activation(at, n, member))
		}
	}
	return r
}

func activation(at time.Time, round, member int) disdel.Activation {
	beats := []disdel.Beat{{
		At: disdel.Millis(300 * time.Millisecond), Resident: 40 * disdel.MB, Peak: 41 * disdel.MB, Batch: 20, Batches: 45,
	}}
	start := at.Add(time.Duration(round) * time.Second)
	return disdel.Activation{
		ID: "0123456789abcdef0123456789abcdef", Outcome: disdel.OutcomeSuccess, Start: start, End: start.Add(time.Second),
		Duration: disdel.Millis(time.Second), Peak: 41 * disdel.MB, Rows: 718, Beats: beats,
		Phases: map[string]disdel.Millis{"load": 1e6, "fetch": 2e6, "compute": 9e8, "push": 3e6},
		Invocation: disdel.Invocation{
			ID: fmt.Sprintf("round %d/train/%d", round, member), Task: disdel.TaskTrain, Action: "disdel-job/train",
			Round: round, Member: member, Attempt: 1, Estimate: 50 * disdel.MB, Likely: 42 * disdel.MB,
			Limits: disdel.Limits{Memory: 128 * disdel.MB, Timeout: disdel.Millis(time.Minute)},
		},
	}
}
