package main

import (
	"context"
	"fmt"
	"os"

	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
)

// violation is what axe-core finds wrong with a page.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Where  string `json:"where"`
}

// examine has axe-core look at the page. DevTools put its script in, whatever the page's policy says.
const examine = `axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations.map((v) =>
	({ id: v.id, impact: v.impact, help: v.help, where: v.nodes[0].html.slice(0, 120) })))`

// accessible counts what axe-core finds on all pages, on a screen and on a phone: everything, and what is serious or
// critical.
func accessible(ctx context.Context, t *tools) error {
	script, err := os.ReadFile(t.axe)
	if err != nil {
		return err
	}
	var ids []string
	return browse(ctx, t, func(records *history.Store) error {
		for i, status := range []disdel.Status{disdel.StatusSucceeded, disdel.StatusFailed, disdel.StatusPaused} {
			r := record(i, 5)
			if r.Status = status; status == disdel.StatusFailed {
				r.Failure = &disdel.Error{Kind: disdel.OOM, Op: "train", Msg: "too much", Hint: "disdel retry @last"}
				last := &r.Activations[len(r.Activations)-1]
				last.Outcome, last.Failure, last.Logs = disdel.OutcomeOutOfMemory, r.Failure, []string{"a line"}
			}
			ids = append(ids, string(r.ID))
			if err := records.Save(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}, func(s *server, b *browser) error {
		if err := s.own.AddDigits(ctx); err != nil {
			return err
		}
		all, serious := 0, 0
		for _, path := range views(ids) {
			for _, width := range []int64{1280, 400} {
				found, bad, err := b.examine(path, width, string(script))
				if err != nil {
					return err
				}
				all, serious = all+found, serious+bad
			}
		}
		rig.Figure("axe_findings", float64(all), "findings")
		rig.Figure("axe_serious", float64(serious), "findings")
		return nil
	})
}

func (b *browser) examine(path string, width int64, script string) (all, serious int, err error) {
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 900)); err != nil {
		return 0, 0, err
	}
	if _, err := b.show(path); err != nil {
		return 0, 0, err
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script+"; true")); err != nil {
		return 0, 0, err
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]violation](examine, chromedp.EvalAwaitPromise))
	for _, v := range found {
		fmt.Fprintf(os.Stderr, "%s at %d pixels: %s (%s): %s %s\n", path, width, v.ID, v.Impact, v.Help, v.Where)
		if v.Impact == "serious" || v.Impact == "critical" {
			serious++
		}
	}
	return len(found), serious, err
}
