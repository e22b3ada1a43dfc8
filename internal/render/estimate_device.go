package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// printDevice writes what each action takes of a GPU's memory, by category, and how many fit one.
func printDevice(w io.Writer, p disdel.Plan) {
	label := "gpu"
	for _, a := range p.Actions {
		if a.Limits.Device == 0 {
			continue
		}
		var parts []string
		for _, part := range a.Estimate.DeviceParts {
			parts = append(parts, fmt.Sprintf("%s %v", part.Name, part.Bytes))
		}
		text := fmt.Sprintf("%s: %v of a GPU's memory", a.Task, a.Estimate.Device)
		if len(parts) > 0 {
			text += fmt.Sprintf(" (%s)", strings.Join(parts, ", "))
		}
		if whole := p.Platform.MaxDevice; whole > 0 {
			text += fmt.Sprintf("; limit %v, which counts as %v of %d x %v", a.Limits.Device,
				scheduler.DeviceShare(whole, a.Limits.Device), p.Platform.Accelerators(), whole)
		}
		paragraph(w, label, "%s", text)
		label = ""
	}
}
