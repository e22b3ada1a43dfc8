package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
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
	server, err := couchlite.Open(filepath.Join(home, "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return err
	}
	defer server.Close()
	ctx := context.Background()
	h, err := history.Open(ctx, history.Config{URL: server.URL(), Logger: logrus.New()})
	if err != nil {
		return err
	}
	defer h.Close()
	if err := fill(server.URL(), n, like); err != nil {
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
			like.ID = newID(time.Now())
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

func newID(at time.Time) disdel.JobID {
	id := ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy())
	return disdel.JobID("job-" + string(bytes.ToLower([]byte(id.String()))))
}

// fillAtOnce is how many records go in one request.
const fillAtOnce = 200

// fill writes copies of a record, a minute apart and until now.
func fill(address string, n int, like disdel.Record) error {
	first := time.Now().Add(-time.Duration(n) * time.Minute)
	for from := 0; from < n; from += fillAtOnce {
		var docs []any
		for i := from; i < min(from+fillAtOnce, n); i++ {
			like.Created = first.Add(time.Duration(i) * time.Minute)
			like.ID = newID(like.Created)
			docs = append(docs, struct {
				Key disdel.JobID `json:"_id"`
				disdel.Record
			}{like.ID, like})
		}
		body, err := json.Marshal(map[string]any{"docs": docs})
		if err != nil {
			return err
		}
		res, err := http.Post(address+"/disdel_history/_bulk_docs", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			return fmt.Errorf("writing records: %s", res.Status)
		}
	}
	return nil
}
