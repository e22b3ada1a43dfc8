package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/examples"
	"github.com/disdel/disdel/internal/terminal"
)

func exampleCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "example", Usage: "list example job files, or print one", ArgsUsage: "[NAME]",
		Description: "Each example names in its first lines the commands that run it.\n\n" +
			"   disdel example\n" +
			"   disdel example lenet-fashion > job.yaml\n   disdel submit job.yaml",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 1); err != nil {
				return err
			}
			if c.NArg() == 0 {
				return u.Show(examples.List(), printExamples)
			}
			e, err := examples.Get(c.Args().First())
			if err != nil {
				return err
			}
			return u.ShowFile(e, func(w io.Writer) { fmt.Fprint(w, e.File) })
		},
	}
}

func printExamples(w io.Writer) {
	rows := [][]string{{"NAME", "WHAT IT DOES"}}
	for _, e := range examples.List() {
		rows = append(rows, []string{e.Name, e.Title})
	}
	terminal.Table(w, rows...)
}
