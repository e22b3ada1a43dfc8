package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/report"
)

var update = flag.Bool("update", false, "rewrite the expected reports in testdata")

// now is 40 s after the records of testdata were made.
var now = time.Date(2026, 3, 2, 9, 15, 40, 0, time.UTC)

var names = []string{
	"succeeded", "missing", "oom", "timeout", "deadline", "crashed", "diverged", "canceled", "running",
	"old", "hostile",
}

func load(t *testing.T, name string) *disdel.Record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r disdel.Record
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func text(t *testing.T, r *disdel.Record) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.New(r, now).Text(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func markdown(t *testing.T, r *disdel.Record) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.New(r, now).Markdown(&out, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func html(t *testing.T, r *disdel.Record) string {
	t.Helper()
	spec, err := jobfile.Print(r.Job)
	if err != nil {
		spec = nil
	}
	var out bytes.Buffer
	if err := report.New(r, now).HTML(&out, spec); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestText(t *testing.T) {
	for _, name := range names {
		golden(t, name+".txt", text(t, load(t, name)))
	}
}

func TestMarkdown(t *testing.T) {
	for _, name := range []string{"succeeded", "oom", "hostile"} {
		golden(t, name+".md", markdown(t, load(t, name)))
	}
}

// Only commands, checksums and lines of a log may be wider than a terminal.
// A job whose workers changed on the way says so in every form: each stage, and why it began.
func TestStagesAreTold(t *testing.T) {
	r := load(t, "succeeded")
	first := r.Plan.AsStage(r.Job)
	second := first
	second.First, second.Workers = 2, first.Workers+1
	second.Decision = &disdel.Decision{Why: "an epoch took less"}
	for want, stages := range map[bool][]disdel.Stage{false: {first}, true: {first, second}} {
		r.Stages = stages
		line := fmt.Sprintf("round 3 on: %d workers, batch %d; an epoch took less", second.Workers, second.BatchSize)
		for form, got := range map[string]string{"text": text(t, r), "markdown": markdown(t, r), "page": html(t, r)} {
			if strings.Contains(strings.Join(strings.Fields(got), " "), line) != want {
				t.Errorf("%s: %q is in it: %v, want %v", form, line, !want, want)
			}
		}
	}
}

func TestTextFitsEightyColumns(t *testing.T) {
	for _, name := range names {
		log := strings.Join(logLines(load(t, name)), "\n")
		for line := range strings.Lines(text(t, load(t, name))) {
			line = strings.TrimRight(line, "\n")
			body := strings.TrimSpace(line)
			long := strings.Contains(line, "sha256:") || strings.Contains(line, "disdel ") ||
				strings.Contains(log, strings.TrimSpace(strings.TrimPrefix(body, "log")))
			if len([]rune(line)) > 80 && !long {
				t.Errorf("%s: %d columns: %s", name, len([]rune(line)), line)
			}
		}
	}
}

func logLines(r *disdel.Record) []string {
	var out []string
	for _, a := range r.Activations {
		out = append(out, a.Logs...)
	}
	return out
}

// A record may be of any age: nothing of what came later may be missed.
func TestAnEmptyRecordIsReported(t *testing.T) {
	for _, status := range []disdel.Status{
		disdel.StatusUnknown, disdel.StatusRunning, disdel.StatusSucceeded,
		disdel.StatusFailed, disdel.StatusCanceled,
	} {
		r := &disdel.Record{
			ID: "job-x", Status: status,
			Activations: []disdel.Activation{{Outcome: disdel.OutcomeOutOfMemory}, {Outcome: disdel.OutcomeTimeout}},
		}
		for _, out := range []string{text(t, r), markdown(t, r), html(t, r)} {
			if !strings.Contains(out, status.String()) || strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
				t.Errorf("%v:\n%s", status, out)
			}
		}
	}
}

// Records from before losses were counted have them in their activations.
func TestLossesAreCountedWhereTheRecordDoesNot(t *testing.T) {
	r := load(t, "oom")
	kept := r.Losses
	r.Losses = disdel.Losses{}
	got := report.New(r, now).Troubles.Losses
	// 6.2 s at 496 MB and 6.6 s at 512 MB
	if got.Attempts != 2 || got.Duration != disdel.Millis(12800*time.Millisecond) || got.Cost < 6.303 || got.Cost > 6.304 {
		t.Errorf("%+v, the record had %+v", got, kept)
	}
	if r.Activations[0].Outcome = disdel.OutcomePaused; report.New(r, now).Troubles.Attempts != 2 {
		t.Error("a leg that was paused is no failed attempt")
	}
}

func TestJSONHasWhatTheTextSays(t *testing.T) {
	data, err := json.Marshal(report.New(load(t, "oom"), now))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		APIVersion, ID, Status string
		Failure                struct {
			Kind, Cause string
			PeakBytes   disdel.Bytes
			LastBeatAge int64 `json:"lastBeatAgeMs"`
			LastBeat    disdel.Beat
			Evidence    []string
			LimitBytes  disdel.Bytes
		}
		Advice   report.Advice
		Troubles struct {
			Attempts    int
			CostGBs     float64
			Adjustments []disdel.Adjustment
		}
		Actions []struct{ ErrorPct *float64 }
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	f := doc.Failure
	if doc.APIVersion != disdel.APIVersion || doc.Status != "failed" || f.Kind != "outOfMemory" ||
		f.PeakBytes != 512*disdel.MB || f.LimitBytes != 512*disdel.MB ||
		f.LastBeatAge != 768 || f.LastBeat.Batch != 28 || len(f.Evidence) != 2 {
		t.Errorf("%+v", f)
	}
	if doc.Troubles.Attempts != 2 || len(doc.Troubles.Adjustments) != 1 || len(doc.Actions) != 4 ||
		doc.Actions[0].ErrorPct == nil {
		t.Errorf("%+v %+v", doc.Troubles, doc.Actions)
	}
}

// Everyone reads a time with its sign: a job that took longer than was likely took longer.
func TestAForecastIsComparedInWords(t *testing.T) {
	r := load(t, "succeeded")
	low, likely, high := 4*time.Second, 25*time.Second, 166*time.Second
	r.Plan.Forecast = &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{
			Low: disdel.Millis(low), Likely: disdel.Millis(likely),
			High: disdel.Millis(high),
		},
		Cost: disdel.Interval[float64]{Low: 1, Likely: 2, High: 3},
	}
	for took, want := range map[time.Duration]string{
		45 * time.Second:  "80 % longer than likely, within the interval",
		60 * time.Second:  "2.4 times the likely, within the interval",
		200 * time.Second: "8.0 times the likely, above the interval",
		20 * time.Second:  "20 % shorter than likely, within the interval",
		time.Second:       "96 % shorter than likely, below the interval",
		25 * time.Second:  "as likely",
	} {
		r.Phases.Total = disdel.Millis(took)
		if got := strings.Join(strings.Fields(text(t, r)), " "); !strings.Contains(got, want) {
			t.Errorf("%v: no %q in %s", took, want, got)
		}
	}
}

// A report says of a success what there is against it.
func TestAReportSaysWhatIsAgainstASuccess(t *testing.T) {
	r := load(t, "succeeded")
	r.Learned, r.Warnings, r.EvaluationGBs = new(false), []string{"did not learn: it guessed"}, 0.25
	r.Best = &disdel.Best{Round: 0, Accuracy: 0.1234}
	for format, got := range map[string]string{
		"text":     strings.Join(strings.Fields(text(t, r)), " "),
		"markdown": markdown(t, r), "html": html(t, r),
	} {
		for _, want := range []string{"did not learn: it guessed", "0.1234", "0.25 for evaluations"} {
			if !strings.Contains(got, want) && !strings.Contains(got, strings.ReplaceAll(want, ".", "\\.")) {
				t.Errorf("%s lacks %q", format, want)
			}
		}
	}
	if got := strings.Join(strings.Fields(text(t, r)), " "); !strings.Contains(got, ", did not learn") ||
		!strings.Contains(got, "kept from round 1") {
		t.Error(got)
	}
}
