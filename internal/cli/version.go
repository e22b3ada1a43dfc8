package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/service"
)

// versionDocument says what the program was built from, and which kernels its engine uses on this machine.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that differ from the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // what the engine computes with on this machine
	Static   bool   `json:"static"`  // built without C
}

// release and revision are stamped by `make build`.
var release, revision string

// self describes this program.
func self() versionDocument { return readBuild(release, revision) }

// readBuild reads what the build stamped into the program. Unknown values are no error.
func readBuild(release, revision string) versionDocument {
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

// Print writes the document for people.
func (d versionDocument) Print(w io.Writer) {
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

func (d versionDocument) linking() string {
	if d.Static {
		return "statically"
	}
	return "with the system's C library"
}

// kernelsHere is the set of kernels that the engine uses on this machine.
func kernelsHere() string {
	set, err := kernel.Choose()
	if err != nil {
		return err.Error()
	}
	return set.Name
}

func versionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version, the build and the kernels of the engine",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
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

func runtimeCommand(*ui) *cli.Command {
	return &cli.Command{
		Name: "runtime", Usage: "serve actions inside a container (the image's entry point)", Hidden: true,
		Flags: []cli.Flag{&cli.StringFlag{
			Name: "listen", Value: serve.DefaultAddress,
			Usage: "`ADDRESS`: :PORT, tcp:HOST:PORT or unix:/PATH",
		}},
		Action: withoutOperands(func(c *cli.Context) error {
			return service.ServeAt(c.Context, c.String("listen"))
		}),
	}
}
