package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
)

// What a job took of GPUs is told, with its share and the whole; a job that took nothing of any tells nothing.
func TestAReportTellsOfGPUs(t *testing.T) {
	r := load(t, "succeeded")
	if text := report.GPUText(r); text != "" {
		t.Errorf("a job of the processor: %s", text)
	}
	r.Plan.Platform.MaxDevice = 16 * disdel.GB
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == disdel.TaskTrain {
			a.Limits.Device, a.DevicePeak = 2*disdel.GB, disdel.GB+disdel.Bytes(i)
		}
	}
	var text bytes.Buffer
	made := report.New(r, now)
	if err := made.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"a train action has 2.00 GB of a GPU of 16.0 GB", "1.00 GB at most"} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), words) {
			t.Errorf("%q is missing:\n%s", words, text.String())
		}
	}
	if a := made.Actions[0]; a.Task == disdel.TaskTrain && (a.DeviceLimit != 2*disdel.GB || a.DevicePeak < disdel.GB) {
		t.Errorf("%+v", a)
	}
}
