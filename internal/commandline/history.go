package commandline

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
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
	if q.Limit < 1 {
		return q, &disdel.Error{Kind: disdel.Invalid, Msg: "--limit must be at least 1"}
	}
	return q, nil
}
