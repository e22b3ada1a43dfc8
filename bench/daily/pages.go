package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
)

// again is how often a page is shown for a median.
const again = 7

// pages shows a list of 1,000 jobs.
func pages(ctx context.Context, t *tools) error {
	const jobs = 1000
	return browse(ctx, t, saved(ctx, jobs), func(_ *server, b *browser) error {
		if err := b.shows(fmt.Sprintf("/ui/jobs?limit=%d", jobs), "page_1000", again); err != nil {
			return err
		}
		return b.has(fmt.Sprintf(`document.querySelectorAll("#jobs tbody tr").length === %d`, jobs))
	})
}

// saved saves jobs of ten rounds.
func saved(ctx context.Context, jobs int) func(records *history.Store) error {
	return func(records *history.Store) error {
		for i := range jobs {
			if err := records.Save(ctx, record(i, 10)); err != nil {
				return err
			}
		}
		return nil
	}
}

// scrolled scrolls from the top of a page to its end in five seconds, and tells how many ms each frame took. The first
// frames are left out, in which the page is still being loaded and laid out.
const scrolled = `new Promise((done) => {
	const took = [];
	let began = 0, last = 0, warm = 90;
	const frame = (now) => {
		if (warm-- > 0) { began = last = now; requestAnimationFrame(frame); return; }
		took.push(now - last);
		last = now;
		scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * Math.min(1, (now - began) / 5000));
		if (now - began < 5000) requestAnimationFrame(frame); else done(took);
	};
	requestAnimationFrame(frame);
})`

// scrolling scrolls through a history of 10,000 jobs: through the longest list that the page shows of them.
func scrolling(ctx context.Context, t *tools) error {
	const jobs, listed = 10_000, 1000
	return browse(ctx, t, saved(ctx, jobs), func(_ *server, b *browser) error {
		if _, err := b.show(fmt.Sprintf("/ui/jobs?limit=%d", jobs)); err != nil {
			return err
		}
		if err := b.has(fmt.Sprintf(`document.querySelectorAll("#jobs tbody tr").length === %d`, listed)); err != nil {
			return err
		}
		took, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](scrolled, chromedp.EvalAwaitPromise))
		if err != nil {
			return err
		}
		total := 0.0
		for _, ms := range took {
			total += ms
		}
		rig.Figure("page_scroll_fps", 1000*float64(len(took))/total, "frames/s")
		rig.Figure("page_scroll_frame_ms_p95", rig.Percentile(took, 0.95), "ms")
		return b.has("scrollY > 0.99 * (document.documentElement.scrollHeight - innerHeight)")
	})
}

// curves lays the curves of 100 jobs of 10,000 rounds over each other.
func curves(ctx context.Context, t *tools) error {
	const jobs, rounds = 100, 10_000
	query := url.Values{}
	return browse(ctx, t, func(records *history.Store) error {
		for i := range jobs {
			r := record(i, rounds)
			query.Add("job", string(r.ID))
			if err := records.Save(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}, func(_ *server, b *browser) error {
		if err := b.shows("/ui/compare?"+query.Encode(), "curves_100", again); err != nil {
			return err
		}
		return b.has(fmt.Sprintf(`document.querySelectorAll("figure path.line").length >= %d`, 3*jobs))
	})
}

// views are all kinds of pages.
func views(ids []string) []string {
	out := []string{
		"/ui/", "/ui/jobs", "/ui/models", "/ui/datasets", "/ui/pool",
		"/ui/compare?job=" + strings.Join(ids, "&job="),
	}
	for _, id := range ids {
		out = append(out, "/ui/jobs/"+id)
		for _, section := range []string{"curves", "memory", "timeline", "logs", "report", "files"} {
			out = append(out, "/ui/jobs/"+id+"?section="+section)
		}
	}
	return out
}
