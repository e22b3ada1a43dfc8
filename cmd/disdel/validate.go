package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func validateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check job files without running anything", ArgsUsage: "FILE...",
		Description: "   disdel validate examples/*.yaml\n   disdel validate job.yaml -o json    # a list of problems, " +
			"each with its file, line and column",
		Flags: []cli.Flag{setFlag, actionFlag},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return commandline.Operands(c, 1, 1)
			}
			return withService(c, u, storage,
				func(ctx context.Context, s *service.Service) error { return validateAll(ctx, u, c, s) })
		},
	}
}

// problem is one thing wrong with one file. Line and column are 0 where it has no place in the file.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// validateAll checks every file, whatever is wrong with one. Its error is of the first that is not valid.
func validateAll(ctx context.Context, u *ui, c *cli.Context, s *service.Service) error {
	list, first := []problem{}, error(nil)
	for _, name := range c.Args().Slice() {
		err := validate(ctx, u, c, s, name)
		switch {
		case u.Format != "table":
			list = append(list, problemsOf(name, err)...)
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
		first = &disdel.Error{Kind: disdel.KindOf(first), Op: "validate", Msg: terminal.Problems(len(list))}
	}
	if u.Format != "table" {
		return errors.Join(u.Show(list, func(io.Writer) {}), first)
	}
	if first != nil {
		return terminal.Reported(first)
	}
	return nil
}

func validate(ctx context.Context, u *ui, c *cli.Context, s *service.Service, name string) error {
	src, err := readJob(c, u, name)
	if err != nil {
		return err
	}
	req := src.request(c)
	req.Preparing = jobtext.NewFollower(u).Follow
	_, err = s.Check(ctx, req)
	return src.told(u, err)
}

// problemsOf lists what is wrong with a file.
func problemsOf(name string, err error) []problem {
	var faults *disdel.Faults
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &faults):
		e := disdel.AsError(err)
		message := terminal.Headline(e)
		if e.Err != nil {
			message = fmt.Sprintf("%s: %v", message, e.Err)
		}
		return []problem{{File: name, Message: terminal.Clean(message), Hint: terminal.Clean(e.Hint)}}
	}
	out := make([]problem, len(faults.Faults))
	for i, f := range faults.Faults {
		out[i] = problem{name, f.Line, f.Column, f.Path, f.Msg, f.Hint}
	}
	return out
}

func explainCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "explain a field of the job file, or find it by what it means",
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
