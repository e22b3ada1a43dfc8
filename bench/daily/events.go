package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service"
)

// rounds is how many rounds the job has that is looked at, and how often a list changes.
const rounds = 60

// many is a job of many short rounds.
const many = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: many}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: %d, batchSize: 64, optimizer: {adam: {learningRate: 0.001}}}
distribution: {workers: 1}
`

// watched notes when the page shows how many rounds: the first chart has a point for each. Frames are asked for with
// every change, and a moment is that of the frame behind the one that draws it.
const watched = `(() => {
	window.seen = [];
	const points = () => {
		const line = document.querySelector("figure path.line");
		return line ? line.getAttribute("d").split(/[ML]/).length - 1 : 0;
	};
	new MutationObserver(() => {
		const count = points();
		requestAnimationFrame(() => requestAnimationFrame(() => window.seen.push([count, Date.now()])));
	}).observe(document.getElementById("main"), { subtree: true, childList: true, attributes: true, characterData: true });
	return true;
})()`

// events measures the time from a round's end to its picture, and from a change of another process's job to the list.
func events(ctx context.Context, t *tools) error {
	other := record(0, 3) // nobody is to go on with it
	return browse(ctx, t, func(records *history.Store) error {
		return records.Save(ctx, other)
	}, func(s *server, b *browser) error {
		if err := s.own.AddDigits(ctx); err != nil {
			return err
		}
		job, err := b.follow(ctx, s)
		if err != nil {
			return err
		}
		list, err := b.list(ctx, s, other)
		if err != nil {
			return err
		}
		rig.Figure("event_to_pixel_ms_p95", rig.Percentile(job, 0.95), "ms")
		rig.Figure("event_to_pixel_ms_p50", rig.Median(job), "ms")
		rig.Figure("event_to_list_ms_p95", rig.Percentile(list, 0.95), "ms")
		return nil
	})
}

// follow runs a job and looks at its page.
func (b *browser) follow(ctx context.Context, s *server) ([]float64, error) {
	at, err := client.Remote(client.Server{URL: s.url, Token: s.token})
	if err != nil {
		return nil, err
	}
	file, err := jobfile.Parse("many.yaml", fmt.Appendf(nil, many, rounds), nil)
	if err != nil {
		return nil, err
	}
	run, err := at.Jobs.Submit(ctx, service.Request{Job: file.Job, Source: service.Source{Name: "many.yaml"}})
	if err != nil {
		return nil, err
	}
	if _, err := b.show("/ui/jobs/" + string(run.ID())); err != nil {
		return nil, err
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](watched)); err != nil {
		return nil, err
	}
	began := time.Now()
	ended := map[int]time.Time{} // by the number of rounds that are over
	for e := range run.EventsAfter(ctx, 0) {
		if r, ok := e.What.(service.RoundEnded); ok {
			ended[r.Round.Round+1] = time.Now()
		}
	}
	if _, err := run.Wait(ctx); err != nil {
		return nil, err
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
		"new Promise((done) => setTimeout(() => done(true), 1000))", chromedp.EvalAwaitPromise)); err != nil {
		return nil, err
	}
	seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[[][2]float64]("window.seen"))
	if err != nil {
		return nil, err
	}
	var out []float64
	for n, at := range ended {
		if at.Before(began.Add(time.Second)) { // the page was just opened
			continue
		}
		for _, v := range seen {
			if int(v[0]) >= n {
				out = append(out, max(0, v[1]-float64(at.UnixNano())/1e6))
				break
			}
		}
	}
	if len(out) < rounds/3 {
		return nil, fmt.Errorf("the page showed %d of %d rounds", len(out), rounds)
	}
	return out, nil
}

// list changes a job of another process and looks at the list.
func (b *browser) list(ctx context.Context, s *server, r *disdel.Record) (out []float64, err error) {
	if _, err := b.show("/ui/jobs"); err != nil {
		return nil, err
	}
	wait := `new Promise((done) => { const look = () => {
		const row = document.querySelector('tr[data-key=%q]');
		const there = row && row.cells[7].textContent === "%d";
		requestAnimationFrame(there ? () => done(Date.now()) : look);
	}; look(); })`
	for i := range rounds {
		next := r.Rounds[len(r.Rounds)-1]
		next.Round++
		r.Rounds = append(r.Rounds, next)
		if err := s.records.Save(ctx, r); err != nil {
			return nil, err
		}
		saved := time.Now()
		at, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](fmt.Sprintf(wait, string(r.ID), len(r.Rounds)),
			chromedp.EvalAwaitPromise))
		if err != nil {
			return nil, err
		}
		out = append(out, max(0, at-float64(saved.UnixNano())/1e6))
		time.Sleep(time.Duration(i*37%200) * time.Millisecond) // at any moment of those between two looks
	}
	return out, nil
}
