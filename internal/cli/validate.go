package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

func validateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check job files without running anything", ArgsUsage: "FILE...",
		Description: "   disdel validate jobs/*.yaml\n   disdel validate job.yaml -o json    # a list of problems, " +
			"each with its file, line and column",
		Flags: slices.Concat([]cli.Flag{setFlag, actionFlag}, programFlags),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return checkOperands(c, 1, 1)
			}
			return withClient(c, u, storage,
				func(ctx context.Context, at client.Client) error { return validateAll(ctx, u, c, at.Jobs) })
		},
	}
}

// validateAll checks every file. Its error is that of the first invalid file.
func validateAll(ctx context.Context, u *ui, c *cli.Context, jobs client.Jobs) error {
	list, first := []render.Problem{}, error(nil)
	for _, name := range c.Args().Slice() {
		err := validate(ctx, u, c, jobs, name)
		switch {
		case u.Format != "table":
			list = append(list, render.Problems(name, err)...)
		case err == nil:
			u.Say("%s: valid", terminal.Clean(name))
		default:
			u.Fail(err)
		}
		if first == nil {
			first = err
		}
	}
	if first != nil {
		first = &disdel.Error{Kind: disdel.KindOf(first), Op: "validate", Msg: disdel.Counted(len(list), "problem")}
	}
	if u.Format != "table" {
		return errors.Join(u.Show(list, func(io.Writer) {}), first)
	}
	if first != nil {
		return terminal.Reported(first)
	}
	return nil
}

func validate(ctx context.Context, u *ui, c *cli.Context, jobs client.Jobs, name string) error {
	src, err := readJob(c, u, name)
	if err != nil {
		return err
	}
	req := src.request(c)
	req.Preparing = render.NewFollower(u).Follow
	return src.showFaults(u, jobs.Check(ctx, req))
}

func explainCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "explain a field of the job file, or find a field by words",
		ArgsUsage: "[PATH | WORDS...]",
		Description: "   disdel explain training.batchSize\n   disdel explain model.layers.conv\n   disdel explain " +
			"federated averaging\n" +
			"   disdel explain -o json > schema.json    # for editors",
		Action: func(c *cli.Context) error {
			path := strings.Join(c.Args().Slice(), " ")
			text, err := jobfile.Explain(path)
			if err != nil {
				return err
			}
			schema, err := jobfile.ExplainSchema(path)
			if err != nil {
				return err
			}
			return u.Show(schema, func(w io.Writer) { io.WriteString(w, text) }) //nolint:errcheck // the page remembers
		},
	}
}
