package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// What `make build` stamps into the program.
var release, revision string

// versionDocument is what the program knows of itself.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that differ from the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // what the engine computes with on this machine
	Static   bool   `json:"static"`  // built without C
}

// self reads what the build left in the program.
func self() versionDocument {
	d := versionDocument{
		Version: cmp.Or(release, "unknown"), Revision: revision, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: kernelsHere(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return d
	}
	d.Version = cmp.Or(release, info.Main.Version, d.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Revision = cmp.Or(revision, s.Value)
		case "vcs.modified":
			d.Modified = s.Value == "true"
		case "CGO_ENABLED":
			d.Static = s.Value == "0"
		}
	}
	return d
}

func versionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version, what it was built from, and what its engine computes with",
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
	return u.Show(d, func(w io.Writer) {
		fmt.Fprintf(w, "disdel %s\n", d.Version)
		rows := [][]string{
			{"revision", cmp.Or(d.Revision, "unknown")},
			{"go", d.Go + " " + d.Platform},
			{"kernels", d.Kernels},
			{"linked", linking(d)},
		}
		if d.Modified {
			rows[0][1] += ", with changes"
		}
		terminal.Table(w, rows...)
	})
}

func linking(d versionDocument) string {
	if d.Static {
		return "statically"
	}
	return "with the system's C library"
}

// kernelsHere is the path through the engine that jobs on this machine take.
func kernelsHere() string {
	set, err := kernel.Choose()
	if err != nil {
		return err.Error()
	}
	return set.Name
}
