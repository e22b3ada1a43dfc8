package main

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/version"
)

// What `make build` stamps into the program.
var release, revision string

// self reads what the build left in the program.
func self() version.Document { return version.Of(release, revision) }

func versionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version, the build and the kernels of the engine",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			return showVersion(u)
		},
	}
}

func showVersion(u *ui) error {
	d := self()
	return u.Show(d, d.Print)
}
