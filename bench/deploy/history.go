package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

// asked is how often each question is asked; the median counts.
const asked = 11

// ask measures what plans and lists wait for in an embedded history of n records: jobs of a hundred kinds.
func ask(ctx context.Context, n int) (err error) {
	folder, err := os.MkdirTemp("", "bench-deploy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	server, err := couchlite.Open(filepath.Join(folder, "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	h, err := history.Open(ctx, history.Config{URL: server.URL(), Logger: logrus.New()})
	if err != nil {
		return err
	}
	defer h.Close()
	if err := fill(server.URL(), n); err != nil {
		return err
	}
	like := record(0)
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"similar", func() error {
			found, err := h.Similar(ctx, like.Job)
			if err == nil && len(found) == 0 {
				err = errors.New("no similar job was found")
			}
			return err
		}},
		{"list", func() error { _, err := h.List(ctx, history.Query{}); return err }},
		{"list_failed", func() error { _, err := h.List(ctx, history.Query{Status: disdel.StatusFailed}); return err }},
	} {
		var times []float64
		for range asked {
			begun := time.Now()
			if err := q.ask(); err != nil {
				return err
			}
			times = append(times, time.Since(begun).Seconds()*1e3)
		}
		slices.Sort(times)
		figure(fmt.Sprintf("%s_%dk_ms", q.name, n/1000), times[asked/2], "ms")
	}
	return nil
}

// fillAtOnce is how many records go in one request.
const fillAtOnce = 500

func fill(address string, n int) error {
	for from := 0; from < n; from += fillAtOnce {
		var docs []any
		for i := from; i < min(from+fillAtOnce, n); i++ {
			r := record(i)
			docs = append(docs, struct {
				Key disdel.JobID `json:"_id"`
				disdel.Record
			}{r.ID, r})
		}
		body, err := json.Marshal(map[string]any{"docs": docs})
		if err != nil {
			return err
		}
		res, err := http.Post(address+"/"+history.Database+"/_bulk_docs", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			return errors.New("writing records: " + res.Status)
		}
	}
	return nil
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
	id := strings.ToLower(ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String())
	loss, accuracy := 0.25, 0.95
	r := disdel.Record{
		APIVersion: disdel.APIVersion, ID: disdel.JobID("job-" + id), Status: disdel.StatusSucceeded, Created: at,
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
