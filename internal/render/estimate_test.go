package render

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

func timedCell(batch, workers int, seconds, cost float64) scheduler.Cell {
	ms := func(f float64) disdel.Millis { return disdel.Millis(f * seconds * float64(time.Second)) }
	return scheduler.Cell{
		Workers: workers, BatchSize: batch, Limit: 256 * disdel.MB, Parallel: workers,
		Memory: disdel.Interval[disdel.Bytes]{Low: 168 * disdel.MB, Likely: 190 * disdel.MB, High: 231 * disdel.MB},
		Forecast: &disdel.Forecast{
			Duration: disdel.Interval[disdel.Millis]{Low: ms(0.8), Likely: ms(1), High: ms(1.25)},
			Cost:     disdel.Interval[float64]{Low: 0.9 * cost, Likely: cost, High: 1.2 * cost}, Source: "history", Samples: 12,
		},
	}
}

// compared is a grid of which one cell does not fit, with times.
func compared() *service.Estimation {
	own := timedCell(64, 2, 75, 9.5)
	own.InFile, own.Pareto, own.Forecast.Measured, own.Forecast.Jobs = true, true, true, 3
	fast := timedCell(64, 4, 48, 10.1)
	fast.Pareto = true
	return &service.Estimation{
		Job: disdel.Job{Metadata: disdel.Metadata{Name: "mnist-mlp"}},
		WhatIf: &service.WhatIf{
			Against: scheduler.AgainstCost, Ceiling: 512 * disdel.MB, Whose: "the platform's maximum",
			Cells: []scheduler.Cell{
				timedCell(64, 1, 130, 10.4), own, fast,
				{
					Workers: 1, BatchSize: 512, Memory: disdel.Interval[disdel.Bytes]{Likely: 612 * disdel.MB},
					Note: "train needs 612 MB, above 512 MB",
				},
			},
		},
	}
}

func TestWhatIfTable(t *testing.T) {
	var b bytes.Buffer
	printWhatIf(&b, whatIf{compared().WhatIf}, "job.yaml")
	want := `
WORKERS  BATCH  MEMORY MB    LIMIT  TIME s       COST GB-S   BASIS
1        64     168/190/231  256    104/130/162  9.4/10/12   extrapolated
2        64     168/190/231  256    60/75/94     8.6/9.5/11  measured      <- in file, front
4        64     168/190/231  256    38/48/60     9.1/10/12   extrapolated  front
1        512    -/612/-      needs 612 MB, above 512 MB
note   low/likely/high: nine of ten cases are between low and high; memory is
       the peak of one train action
       front: no other line is both faster and of less cost
       basis: measured where a job of just these workers and batch ran; else
       extrapolated from others, or a probe's rate
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The fields are those that scripts read.
func TestWhatIfJSON(t *testing.T) {
	v := *compared().WhatIf
	v.Cells = v.Cells[1:2]
	got, err := json.Marshal(v)
	want := `{"against":"cost","ceilingBytes":536870912,"whose":"the platform's ` +
		`maximum","cells":[{"workers":2,"batchSize":64,` +
		`"memoryBytes":{"low":176160768,"likely":199229440,"high":242221056},"limitBytes":268435456,"parallel":2,` +
		`"forecast":{"durationMs":{"low":60000,"likely":75000,"high":93750},"costGBs":{"low":8.55,"likely":9.5,"high":11.4},"source":"history","samples":12,"jobs":3,"measured":true},` +
		`"inFile":true,"pareto":true}]}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// With times the plot holds them against cost or memory; without, it shows memory.
func TestPlotsOfWhatIf(t *testing.T) {
	e := compared()
	for name, c := range map[string]struct {
		against scheduler.Objective
		timed   bool
		want    []string
	}{
		"cost": {
			scheduler.AgainstCost, true,
			[]string{
				"cost of the job (GB-s)", "time of the job (s)", "Pareto front", "job file", "batch 64",
				"mnist-mlp: time against cost, points labelled by workers",
			},
		},
		"memory": {
			scheduler.AgainstMemory, true,
			[]string{"likely peak memory of a train action (MB)", "time of the job (s)"},
		},
		"none": {
			scheduler.AgainstCost, false,
			[]string{"workers", "peak memory (MB)", "batch 512", "the platform&#39;s maximum, 512 MB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, v := *e, *e.WhatIf
			v.Against, v.Cells = c.against, append([]scheduler.Cell(nil), v.Cells...)
			for i := range v.Cells {
				if !c.timed {
					v.Cells[i].Forecast, v.Cells[i].Pareto = nil, false
				}
			}
			e.WhatIf = &v
			name := filepath.Join(t.TempDir(), "a.svg")
			if err := WriteEstimatePlot(&e, name, plot.SVG); err != nil {
				t.Fatal(err)
			}
			svg, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.want {
				if !bytes.Contains(svg, []byte(">"+text+"</text>")) {
					t.Errorf("no %q", text)
				}
			}
		})
	}
}

// No line of a paragraph is wider than the terminal, unless it is one word, and none of its words is lost.
func TestParagraphsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zé]{1,20}`), 1, 40).Draw(t, "words")
		var b strings.Builder
		paragraph(&b, "note", "%s", strings.Join(words, " "))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > textWidth {
				t.Fatalf("%d columns: %q", n, line)
			}
		}
		if diff := cmp.Diff(append([]string{"note"}, words...), strings.Fields(b.String())); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What a shell would take apart is quoted.
func TestSetArgumentsAreQuoted(t *testing.T) {
	got := setArguments([]string{"training.batchSize=3", "training.optimizer={sgd: {learningRate: 0.01}}"})
	if want := "--set training.batchSize=3 --set 'training.optimizer={sgd: {learningRate: 0.01}}'"; got != want {
		t.Errorf("%s", got)
	}
}

// What lies on a GPU is told by category, with its share and what that counts as; a plan of the processor says nothing.
func TestWhatLiesOnAGPUIsTold(t *testing.T) {
	p := disdel.Plan{Platform: disdel.PlatformLimits{MaxDevice: 16 * disdel.GB, Devices: 2}}
	p.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: disdel.GB}}}
	var b bytes.Buffer
	if printDevice(&b, p); b.Len() > 0 {
		t.Errorf("a plan of the processor: %s", b.String())
	}
	p.Actions[0].Limits.Device = 6 * disdel.GB
	p.Actions[0].Estimate.Device = 5 * disdel.GB
	p.Actions[0].Estimate.DeviceParts = []disdel.MemoryPart{
		{Name: "weights", Bytes: disdel.GB}, {Name: "activations", Bytes: 4 * disdel.GB},
	}
	printDevice(&b, p)
	got := strings.Join(strings.Fields(b.String()), " ")
	want := "gpu train: 5.00 GB of a GPU's memory (weights 1.00 GB, activations 4.00 GB); limit 6.00 GB, which " +
		"counts as 8.00 GB of 2 x 16.0 GB"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b.Reset()
	whatIf{&service.WhatIf{Cells: []scheduler.Cell{
		{BatchSize: 64, Device: disdel.GB},
		{BatchSize: 64, Workers: 2, Device: disdel.GB},
		{BatchSize: 128, Device: 2 * disdel.GB},
	}}}.printDevices(&b)
	got = strings.Join(strings.Fields(b.String()), " ")
	if !strings.Contains(got, "1024 MB with batches of 64, 2048 MB") {
		t.Errorf("%q", got)
	}
}

// Estimate says which number of workers pays, what an epoch takes with it, with the plan's and with the largest
// measured number, and how much of that is exchange.
func TestScalingSaysWhichNumberPays(t *testing.T) {
	of := func(workers int, seconds, exchange float64, measured bool) scheduler.ScaledEpoch {
		ms := func(s float64) disdel.Millis { return disdel.Millis(s * float64(time.Second)) }
		return scheduler.ScaledEpoch{
			Workers: workers, Duration: ms(seconds), Exchange: ms(exchange), Fixed: ms(0.1), Measured: measured,
		}
	}
	var b bytes.Buffer
	printScaling(&b, nil, 2)
	printScaling(&b, &scheduler.Scaling{
		Workers: 1, Deviation: 0.04,
		Epochs: []scheduler.ScaledEpoch{
			of(1, 0.7, 0, false), of(2, 4.2, 3, false), of(6, 9.9, 9.1, true), of(8, 12, 11, false),
		},
	}, 2)
	want := `pays   1 worker pays: times of single epochs vary by 4 %
       1 worker: 0.7 s an epoch, of which 0.0 s is exchange and 0.1 s is fixed
       (from the law of the measured times)
       2 workers: 4.2 s an epoch, of which 3.0 s is exchange and 0.1 s is fixed
       (from the law of the measured times)
       6 workers: 9.9 s an epoch, of which 9.1 s is exchange and 0.1 s is fixed
       (measured)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
