package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
)

// HistoryQuery is what the flags of history ask for.
func HistoryQuery(c *cli.Context) (history.Query, error) {
	q := history.Query{Limit: c.Int("limit"), Model: c.String("model"), Dataset: c.String("dataset")}
	if text := c.String("since"); text != "" {
		d, err := ParseAgo(text)
		if err != nil {
			return q, err
		}
		q.Since = time.Now().Add(-d)
	}
	if text := c.String("status"); text != "" {
		if q.Status.UnmarshalText([]byte(text)); q.Status == disdel.StatusUnknown { //nolint:errcheck // the zero value tells
			return q, &disdel.Error{
				Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no state %q", text),
				Hint: "use queued, running, paused, succeeded, failed or canceled",
			}
		}
	}
	if q.Before = disdel.JobID(c.String("before")); q.Before != "" && !q.Before.Valid() {
		return q, &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("--before %.80q is no job's id", c.String("before")),
			Hint: "give it the last id of the list before",
		}
	}
	if q.Limit < 1 {
		return q, &disdel.Error{Kind: disdel.Invalid, Msg: "--limit must be at least 1"}
	}
	return q, nil
}

// Standing says where a job stands. Of one that its record says runs, its lease knows better; in a history that others
// share there may be jobs of versions before leases.
func Standing(ctx context.Context, c *cli.Context, records client.Records) func(*disdel.Record) string {
	return func(r *disdel.Record) string {
		if !r.Status.Unfinished() {
			return r.Status.String()
		}
		who, runs, err := records.Runner(ctx, r.ID)
		if err == nil && !runs && (who.Known || c.String("couchdb") == "") {
			return "stopped (resume)"
		}
		return r.Status.String()
	}
}
