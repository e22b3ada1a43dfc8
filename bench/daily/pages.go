package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/disdel/disdel/history"
)

// again is how often a page is shown for a median.
const again = 7

// pages shows a list of 1,000 jobs.
func pages(ctx context.Context, t *tools) error {
	const jobs = 1000
	return browse(ctx, t, func(records *history.Store) error {
		for i := range jobs {
			if err := records.Save(ctx, record(i, 10)); err != nil {
				return err
			}
		}
		return nil
	}, func(_ *server, b *browser) error {
		if err := b.shows(fmt.Sprintf("/ui/jobs?limit=%d", jobs), "page_1000", again); err != nil {
			return err
		}
		return b.has(fmt.Sprintf(`document.querySelectorAll("#jobs tbody tr").length === %d`, jobs))
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
