package disdel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// Errors cross the action border as JSON: kind, operation, message, hint and the cause's text survive.
func TestErrorsSurviveJSON(t *testing.T) {
	e := &disdel.Error{
		Kind: disdel.OOM, Op: "train", Job: "job-1", Activation: "a", Msg: "too much", Hint: "less",
		Err: io.ErrUnexpectedEOF,
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var got disdel.Error
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Error() != e.Error() || !errors.Is(&got, disdel.OOM) || got.Hint != e.Hint || got.Job != e.Job ||
		got.Activation != e.Activation {
		t.Errorf("%s became %s", e, &got)
	}
	wrapped := fmt.Errorf("more: %w", e)
	if disdel.KindOf(wrapped) != disdel.OOM || !errors.Is(wrapped, io.ErrUnexpectedEOF) || disdel.AsError(wrapped) != e {
		t.Error("kind or cause is lost under a wrap")
	}
	if disdel.KindOf(io.EOF) != disdel.Internal || disdel.KindOf(nil) != disdel.UnknownKind ||
		disdel.KindOf(&disdel.Faults{}) != disdel.Invalid {
		t.Error("kinds of foreign errors")
	}
}

// Names of kinds, outcomes and states are what records and exit codes rest on: each reads back as itself.
func TestNamesReadBack(t *testing.T) {
	for k := disdel.UnknownKind; k <= disdel.NoSpace; k++ {
		var got disdel.Kind
		text, _ := k.MarshalText()
		if got.UnmarshalText(text); got != k || strings.HasPrefix(string(text), "kind(") { //nolint:errcheck // never fails
			t.Errorf("kind %d: %s", k, text)
		}
	}
	for o := disdel.OutcomeUnknown; o <= disdel.OutcomeCanceled; o++ {
		var got disdel.Outcome
		text, _ := o.MarshalText()
		if got.UnmarshalText(text); got != o { //nolint:errcheck // never fails
			t.Errorf("outcome %d: %s", o, text)
		}
	}
	for s := disdel.StatusUnknown; s <= disdel.StatusCanceled; s++ {
		var got disdel.Status
		text, _ := s.MarshalText()
		if got.UnmarshalText(text); got != s { //nolint:errcheck // never fails
			t.Errorf("status %d: %s", s, text)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]disdel.Bytes{
		"512MB": 512 << 20, "512 Mi": 512 << 20, "1.5GB": 3 << 29, "1Gi": 1 << 30, "64": 64 << 20, "10KB": 10 << 10, "7B": 7,
	} {
		if got, err := disdel.ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MB", "-1MB", "x", "1TB", "NaN", "1e999GB", "12 monkeys"} {
		if _, err := disdel.ParseBytes(text); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %v, want Invalid", text, err)
		}
	}
	for b, want := range map[disdel.Bytes]string{
		0: "0 B", 1023: "1023 B", 1536: "1.50 KB", 92 << 20: "92.0 MB",
		512 << 20: "512 MB", 3 << 29: "1.50 GB",
	} {
		if got := b.String(); got != want {
			t.Errorf("%d prints as %s, want %s", int64(b), got, want)
		}
	}
	if (disdel.MB + 1).MB() != 2 {
		t.Error("megabytes are not rounded up")
	}
}

func TestBytesReadBackFromJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := disdel.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got disdel.Bytes
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Fatalf("%d became %d, %v", want, got, err)
		}
	})
}

func TestLayersAndTimesReadBackFromJSON(t *testing.T) {
	type all struct {
		L []disdel.Layer
		D disdel.Duration
		M disdel.Millis
	}
	want := all{
		[]disdel.Layer{{Kind: "conv", Filters: 3, Kernel: 5, Activation: "relu"}, {Kind: "flatten"}},
		disdel.Duration(90 * time.Second), disdel.Millis(1500 * time.Millisecond),
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(data); !strings.Contains(s, `{"conv":{"filters":3,"kernel":5,"activation":"relu"}}`) ||
		!strings.Contains(s, `"1m30s"`) || !strings.Contains(s, "1500") {
		t.Errorf("%s", s)
	}
	var got all
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{`{"a":{},"b":{}}`, `{}`, `3`} {
		var l disdel.Layer
		if json.Unmarshal([]byte(bad), &l) == nil {
			t.Errorf("%s is a layer", bad)
		}
	}
}

// What records promise to programs that read them.
func TestRecordsHaveTheDocumentedNames(t *testing.T) {
	data, err := json.Marshal(disdel.Record{Activations: []disdel.Activation{{Peak: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"accuracy", "loss", "phases", "actions", "estimateBytes", "limitBytes", "peakBytes",
		"timeoutMs", "durationMs", "totalMs",
	} {
		if !strings.Contains(string(data), `"`+name+`"`) {
			t.Errorf("no %q in %s", name, data)
		}
	}
}

// job.go and interface.md: a step schedule multiplies at every so many epochs; a cosine falls by Loshchilov and
// Hutter's eq. 5 (2017), floor + (1 - floor) (1 + cos(pi e/E)) / 2, whose cosine is 1, 1/sqrt 2, 0, -1/sqrt 2 at e = 0
// to 3 of 4.
func TestSchedulesChangeTheRateByTheirFormulas(t *testing.T) {
	half := math.Sqrt2 / 2
	step := &disdel.Schedule{Step: &disdel.StepSchedule{Every: 2, Factor: 0.5}}
	for _, c := range []struct {
		name   string
		s      *disdel.Schedule
		epochs int
		want   []float64
	}{
		{"none", nil, 3, []float64{1, 1, 1}},
		{"of nothing", &disdel.Schedule{}, 2, []float64{1, 1}},
		{"step", step, 7, []float64{1, 1, 0.5, 0.5, 0.25, 0.25, 0.125}},
		{"step to nothing", &disdel.Schedule{Step: &disdel.StepSchedule{Every: 1}}, 3, []float64{1, 0, 0}},
		{"cosine", &disdel.Schedule{Cosine: &disdel.CosineSchedule{}}, 4, []float64{1, (1 + half) / 2, 0.5, (1 - half) / 2}},
		{
			"cosine with floor", &disdel.Schedule{Cosine: &disdel.CosineSchedule{Floor: 0.2}}, 4,
			[]float64{1, 0.2 + 0.4*(1+half), 0.6, 0.2 + 0.4*(1-half)},
		},
		{"cosine of one epoch", &disdel.Schedule{Cosine: &disdel.CosineSchedule{}}, 1, []float64{1}},
		{"cosine that stays", &disdel.Schedule{Cosine: &disdel.CosineSchedule{Floor: 1}}, 3, []float64{1, 1, 1}},
	} {
		for epoch, want := range c.want {
			if got := c.s.Factor(epoch, c.epochs); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s, epoch %d of %d: %g, want %g", c.name, epoch, c.epochs, got, want)
			}
		}
	}
}

// A schedule goes to the actions as JSON.
func TestSchedulesReadBackFromJSON(t *testing.T) {
	for _, want := range []disdel.Schedule{
		{Step: &disdel.StepSchedule{Every: 3, Factor: 0.1}},
		{Cosine: &disdel.CosineSchedule{Floor: 0.01}},
		{Cosine: &disdel.CosineSchedule{}},
	} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got disdel.Schedule
		if err := json.Unmarshal(data, &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s became %+v, %v", data, got, err)
		}
	}
}

// What is too much by a little does not read as just enough.
func TestEverySizePrints(t *testing.T) {
	for size, want := range map[disdel.Bytes]string{
		math.MinInt64: "-8589934592 GB", math.MaxInt64: "8589934592 GB", -disdel.MB: "-1.00 MB", 0: "0 B",
	} {
		if got := size.String(); got != want {
			t.Errorf("%d prints %q, want %q", int64(size), got, want)
		}
	}
}

func TestSizesAreToldApart(t *testing.T) {
	for _, c := range []struct {
		b, other disdel.Bytes
		want     string
	}{
		{135*disdel.MB + 53*disdel.KB, 135 * disdel.MB, "135.1 MB"},
		{135 * disdel.MB, 135*disdel.MB + 53*disdel.KB, "135.0 MB"},
		{135*disdel.MB + 1, 135 * disdel.MB, "135.000001 MB"},
		{200 * disdel.MB, 135 * disdel.MB, "200 MB"},
		{135 * disdel.MB, 135 * disdel.MB, "135 MB"},
	} {
		if got := c.b.Beside(c.other); got != c.want {
			t.Errorf("%d beside %d: %s, want %s", c.b, c.other, got, c.want)
		}
	}
}

// A store's first address is apart from the others in JSON, as requests have had it from the start.
func TestAStoreIsWrittenAsItAlwaysWas(t *testing.T) {
	for text, want := range map[string]disdel.Store{
		`{"url":"redis://a","prefix":"p"}`: {URLs: []string{"redis://a"}, Prefix: "p"},
		`{"url":"redis://a","more":["redis://b"],"prefix":"","ca":"PEM"}`: {
			URLs: []string{"redis://a", "redis://b"},
			CA:   "PEM",
		},
		`{"url":"","prefix":""}`: {},
	} {
		var s disdel.Store
		if err := json.Unmarshal([]byte(text), &s); err != nil || !cmp.Equal(want, s) {
			t.Errorf("%s is read as %+v, %v", text, s, err)
		}
		if data, err := json.Marshal(s); err != nil || string(data) != text {
			t.Errorf("%+v is written as %s, %v", s, data, err)
		}
	}
}
