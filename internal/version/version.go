// Package version tells what a program was built from, and what its engine computes with on this machine.
//
// It reads what the build left in the program. What it does not find is unknown; nothing is an error.
package version

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// Document is what the program knows of itself.
type Document struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that differ from the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // what the engine computes with on this machine
	Static   bool   `json:"static"`  // built without C
}

// Of reads what the build left in the program; release and revision are what `make build` stamps into it, "" for
// nothing.
func Of(release, revision string) Document {
	d := Document{
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

// Print writes the document for people.
func (d Document) Print(w io.Writer) {
	fmt.Fprintf(w, "disdel %s\n", d.Version)
	rows := [][]string{
		{"revision", cmp.Or(d.Revision, "unknown")},
		{"go", d.Go + " " + d.Platform},
		{"kernels", d.Kernels},
		{"linked", d.linking()},
	}
	if d.Modified {
		rows[0][1] += ", with changes"
	}
	terminal.Table(w, rows...)
}

func (d Document) linking() string {
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
