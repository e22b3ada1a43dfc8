package gpus

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	rows := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	engine := "none in this program"
	if r.Engine {
		engine = "cuda"
	}
	fmt.Fprintf(rows, "engine\t%s\n", engine)
	fmt.Fprintf(rows, "driver\t%s\n", cmp.Or(r.Driver, "none"))
	fmt.Fprintf(rows, "library\t%s\n", cmp.Or(r.Library, "none"))
	if len(r.Cards) == 0 {
		fmt.Fprintln(rows, "cards\tnone")
	}
	for _, c := range r.Cards {
		fmt.Fprintf(rows, "card\t%s at %s\n", cmp.Or(c.Model, "unknown"), c.Bus)
	}
	if r.Visible != nil {
		fmt.Fprintf(rows, "visible\tCUDA_VISIBLE_DEVICES=%s\n", *r.Visible)
	}
	for _, d := range r.Devices {
		fmt.Fprintf(rows, "device %d\t%s, %v, compute capability %s\n", d.Index, d.Name, d.Memory, d.Capability)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(rows, "missing\t%s\n", m)
	}
	_ = rows.Flush() // what w refuses, whoever made it hears of
	if len(r.Missing) == 0 {
		fmt.Fprintln(w, "jobs with resources.device: gpu can run here")
	}
}
