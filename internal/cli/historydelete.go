package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
)

// deletedDocument is what `history delete` prints with -o json.
type deletedDocument struct {
	Job disdel.JobID `json:"job"`
}

// HistoryDeleteCommand deletes the record of one job, also one that this version cannot read.
func HistoryDeleteCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "delete the record of an ended job", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last. The model stays. For an unreadable record, " +
			"give\nthe whole id.\n\n   disdel history delete @last",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				id, err := deleteRecord(ctx, at.Records, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(deletedDocument{id}, func(w io.Writer) { fmt.Fprintf(w, "%s: record deleted\n", id) })
			})
		},
	}
}

func deleteRecord(ctx context.Context, records client.Records, job string) (disdel.JobID, error) {
	id := disdel.JobID(job)
	if !id.Valid() { // a whole id needs no record that can be read
		r, err := records.Get(ctx, job)
		if err != nil {
			return "", err
		}
		id = r.ID
	}
	return id, records.Forget(ctx, id)
}
