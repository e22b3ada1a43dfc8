package jobfile

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/scheduler"
)

// anyJob draws a job that obeys every rule.
func anyJob(t *rapid.T) disdel.Job {
	train := rapid.Float64Range(0.001, 1).Draw(t, "train")
	job := disdel.Job{
		APIVersion: disdel.APIVersion,
		Kind:       disdel.JobKind,
		Metadata:   disdel.Metadata{Name: anyName(t), Labels: anyLabels(t)},
		Model:      anyModel(t),
		Data: disdel.Data{
			Source: "dataset://" + anyName(t),
			Split:  disdel.Split{Train: train, Validation: 1 - train, Seed: rapid.Int64().Draw(t, "seed")},
		},
		Training:     anyTraining(t),
		Distribution: anyDistribution(t),
		Resources:    anyResources(t),
		Reliability:  anyReliability(t),
		Output:       disdel.Output{Model: anyName(t), Keep: rapid.IntRange(1, 9).Draw(t, "keep")},
	}
	if a := &job.Distribution.Aggregation; a.Wire != disdel.WireFloat32 && a.OptimizerState == disdel.StateAverage &&
		job.Training.Optimizer.SGD == nil {
		a.OptimizerState = disdel.StateKeep
	}
	if job.Training.Goal != nil && job.Distribution.Sync == disdel.SyncEnd {
		job.Distribution.Sync = disdel.SyncEpoch
	}
	if rapid.Bool().Draw(t, "checked") {
		job.Data.Checksum = "sha256:" + rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "checksum")
	}
	if rapid.Bool().Draw(t, "bounded") {
		job.Reliability.Deadline = job.Resources.Timeout + disdel.Duration(rapid.Int64Range(1, 1e15).Draw(t, "deadline"))
	}
	return job
}

func anyName(t *rapid.T) string {
	return rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`).Draw(t, "name")
}

func anyLabels(t *rapid.T) map[string]string {
	labels := rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9]([-A-Za-z0-9_./]{0,9}[A-Za-z0-9])?`),
		rapid.StringMatching(`[^,=\p{Cc}\p{Cf}\p{Zl}\p{Zp}\x{fffe}\x{ffff}]{0,20}`), 0, 4).Draw(t, "labels")
	if len(labels) == 0 {
		return nil
	}
	return labels
}

func anyModel(t *rapid.T) disdel.Model {
	m := disdel.Model{Init: disdel.Init{
		Seed:   rapid.Int64().Draw(t, "seed"),
		Scheme: rapid.SampledFrom([]string{"glorot", "he"}).Draw(t, "scheme"),
	}}
	if rapid.Bool().Draw(t, "zoo") {
		m.Name = rapid.StringMatching(`[a-z][-a-z0-9]{0,20}`).Draw(t, "network")
		return m
	}
	side := rapid.IntRange(1, 9)
	m.Layers = []disdel.Layer{
		{
			Kind: "conv", Filters: side.Draw(t, "filters"), Kernel: side.Draw(t, "kernel"),
			Padding: rapid.IntRange(0, 3).Draw(t, "padding"),
		},
		{
			Kind: "conv", Name: rapid.StringMatching(`[a-z][-a-z0-9_./]{0,20}`).Draw(t, "layer"), From: []string{"0"},
			Filters:  1,
			KernelHW: uneven2(t), StrideHW: uneven2(t), DilationHW: uneven2(t), PaddingAt: [4]int{side.Draw(t, "top"), 0, 1, 2},
			Bias: new(rapid.Bool().Draw(t, "bias")),
		},
		{Kind: "add", From: []string{"0", "0"}},
		{Kind: "avgPool", From: []string{"2"}, Kernel: side.Draw(t, "pool"), SamePad: true},
		{
			Kind: "batchNorm", Eps: rapid.Float64Range(1e-9, 1).Draw(t, "eps"),
			Momentum: rapid.Float64Range(1e-9, 1).Draw(t, "momentum"), Scale: new(false), Center: new(true),
		},
		{Kind: "concat", From: []string{"1", "3", "4"}},
		{Kind: "relu"},
		{Kind: "embedding", Vocabulary: side.Draw(t, "vocabulary"), Width: side.Draw(t, "width"), Padded: new(true)},
		{Kind: "positions", Learned: new(rapid.Bool().Draw(t, "learned"))},
		{
			Kind: "multiHeadAttention", Heads: side.Draw(t, "heads"), KVHeads: side.Draw(t, "kvHeads"),
			Causal: new(rapid.Bool().Draw(t, "causal")), Rotary: new(true),
			Theta: rapid.Float64Range(1.5, 1e12).Draw(t, "theta"),
		},
		{
			Kind: "windowAttention", Heads: 1, SizeHW: uneven2(t), Shift: side.Draw(t, "shift"),
			Grid: new(rapid.Bool().Draw(t, "grid")), Cosine: new(rapid.Bool().Draw(t, "cosine")),
		},
		{Kind: "windowAttention", Heads: 1, Size: side.Draw(t, "size"), ShiftHW: uneven2(t)},
		{Kind: "transformer", Heads: 1, Hidden: side.Draw(t, "hidden"), NormFirst: new(rapid.Bool().Draw(t, "first"))},
		{Kind: "takePosition", Take: rapid.SampledFrom([]string{"mean", "first", "last"}).Draw(t, "take")},
		{Kind: "dropout", Rate: rapid.Float64Range(1e-9, 0.999).Draw(t, "rate")},
		{
			Kind: "dense", Units: rapid.IntRange(1, math.MaxInt32).Draw(t, "units"),
			Activation: rapid.SampledFrom([]string{"", "relu", "softmax"}).Draw(t, "activation"),
		},
	}
	if m.Layers[1].Name != "" {
		m.Layers[5].From[0] = m.Layers[1].Name
	}
	if rapid.Bool().Draw(t, "chain") {
		m.Layers = m.Layers[rapid.IntRange(6, 8).Draw(t, "from"):]
	}
	return m
}

// uneven2 draws sides that differ.
func uneven2(t *rapid.T) [2]int {
	a := rapid.IntRange(1, 9).Draw(t, "side")
	return [2]int{a, a + 1}
}

func anyTraining(t *rapid.T) disdel.Training {
	positive := rapid.Float64Range(math.SmallestNonzeroFloat64, math.MaxFloat64)
	share := rapid.Float64Range(1e-300, 0.9999999)
	tr := disdel.Training{
		Epochs: rapid.IntRange(1, math.MaxInt32).Draw(t, "epochs"), BatchSize: rapid.IntRange(1, 1024).Draw(t, "batch"),
		Loss:          rapid.SampledFrom([]string{"crossEntropy", "binaryCrossEntropy", "mse"}).Draw(t, "loss"),
		ValidateEvery: rapid.IntRange(0, 3).Draw(t, "every"),
		Backend:       rapid.SampledFrom([]string{"native", "gorgonia"}).Draw(t, "backend"),
	}
	if tr.Backend == disdel.BackendNative && rapid.Bool().Draw(t, "short") {
		tr.Precision = disdel.PrecisionBF16
	}
	if tr.Backend == disdel.BackendNative {
		tr.Fit = rapid.SampledFrom([]disdel.Fitting{"", disdel.FitNone}).Draw(t, "fit")
		tr.MicroBatch = rapid.IntRange(0, 64).Draw(t, "parts")
		if tr.Precision.Plain() {
			tr.Recompute = rapid.SampledFrom([]disdel.Recompute{"", disdel.RecomputeAuto}).Draw(t, "again")
		}
	}
	decay := rapid.SampledFrom([]float64{0, 1e-9, 0.01, 7}).Draw(t, "decay")
	adam := &disdel.Adam{
		LearningRate: positive.Draw(t, "rate"), Beta1: share.Draw(t, "beta1"),
		Beta2: share.Draw(t, "beta2"), Epsilon: positive.Draw(t, "epsilon"), WeightDecay: decay,
	}
	switch rapid.SampledFrom([]string{"sgd", "adam", "adamw", "lion", "lamb", "rmsprop", "adagrad"}).Draw(t, "optimizer") {
	case "sgd":
		tr.Optimizer.SGD = &disdel.SGD{
			LearningRate: positive.Draw(t, "rate"), Momentum: share.Draw(t, "momentum"),
			WeightDecay: decay, Nesterov: rapid.Bool().Draw(t, "nesterov"),
		}
	case "adam":
		tr.Optimizer.Adam = adam
	case "lion":
		tr.Optimizer.Lion = &disdel.Lion{
			LearningRate: positive.Draw(t, "rate"), Beta1: share.Draw(t, "beta1"), Beta2: share.Draw(t, "beta2"),
			WeightDecay: decay,
		}
	case "lamb":
		tr.Optimizer.LAMB = new(disdel.LAMB(*adam))
	case "rmsprop":
		tr.Optimizer.RMSprop = &disdel.RMSprop{
			LearningRate: positive.Draw(t, "rate"), Alpha: share.Draw(t, "alpha"), Epsilon: positive.Draw(t, "epsilon"),
			Momentum: share.Draw(t, "momentum"), WeightDecay: decay,
		}
	case "adagrad":
		tr.Optimizer.Adagrad = &disdel.Adagrad{
			LearningRate: positive.Draw(t, "rate"), Epsilon: positive.Draw(t, "epsilon"), WeightDecay: decay,
		}
	default:
		tr.Optimizer.AdamW = adam
	}
	rounds := tr.Optimizer.Adagrad == nil && tr.Optimizer.LAMB == nil
	if tr.Backend == disdel.BackendNative && tr.Optimizer.Moments() > 0 && rounds {
		tr.StateFormat = rapid.SampledFrom([]disdel.StateFormat{"", disdel.StateInt8, disdel.StatePaged}).Draw(t, "moments")
	}
	switch rapid.IntRange(0, 2).Draw(t, "schedule") {
	case 1:
		tr.Schedule = &disdel.Schedule{Step: &disdel.StepSchedule{
			Every:  rapid.IntRange(1, 99).Draw(t, "epochs"),
			Factor: positive.Draw(t, "factor"),
		}}
		if rapid.Bool().Draw(t, "milestones") {
			s := tr.Schedule.Step
			s.Milestones, s.Every = []int{s.Every, 2 * s.Every}, 0
		}
	case 2:
		tr.Schedule = &disdel.Schedule{Cosine: &disdel.CosineSchedule{Floor: rapid.SampledFrom([]float64{0, 0.01, 1}).Draw(t,
			"floor")}}
	}
	if rapid.Bool().Draw(t, "clip") {
		tr.ClipNorm = positive.Draw(t, "norm")
	}
	switch rapid.IntRange(0, 4).Draw(t, "stop") {
	case 1:
		tr.EarlyStop = &disdel.EarlyStop{Metric: "loss", Target: new(positive.Draw(t, "target"))}
	case 2:
		tr.EarlyStop = &disdel.EarlyStop{
			Metric:   rapid.SampledFrom([]string{disdel.MetricValLoss, disdel.MetricAccuracy}).Draw(t, "metric"),
			Patience: rapid.IntRange(1, 9).Draw(t, "patience"),
			Keep:     rapid.SampledFrom([]string{disdel.KeepBest, disdel.KeepLast}).Draw(t, "keep"),
			Target:   rapid.SampledFrom([]*float64{nil, new(0.5), new(1.)}).Draw(t, "target"),
		}
	case 3:
		tr.EarlyStop = &disdel.EarlyStop{
			Metric: disdel.MetricR2, Keep: disdel.KeepBest,
			Target: rapid.SampledFrom([]*float64{new(-2.5), new(0.), new(0.5)}).Draw(t, "target"),
		}
	case 4:
		tr.Goal = &disdel.Goal{
			Within: disdel.Duration(rapid.Int64Range(0, 1e15).Draw(t, "within")),
			Cost:   rapid.SampledFrom([]float64{0, 0.5, 1e6}).Draw(t, "cost"),
		}
		if tr.Goal.Loss = rapid.SampledFrom([]float64{0, 0.5, 3}).Draw(t, "loss"); tr.Goal.Loss == 0 {
			tr.Goal.Accuracy = 0.9
		}
		tr.ValidateEvery = max(1, tr.ValidateEvery)
	}
	return tr
}

func anyDistribution(t *rapid.T) disdel.Distribution {
	upkeep := rapid.SampledFrom([]disdel.StatePolicy{disdel.StateAverage, disdel.StateReset, disdel.StateKeep})
	every := rapid.IntRange(1, math.MaxInt32).Draw(t, "batches")
	sync := rapid.SampledFrom([]disdel.Sync{disdel.SyncEpoch, disdel.SyncEnd, disdel.SyncEvery(every)}).Draw(t, "sync")
	policies := scheduler.PolicyNames()
	if sync == disdel.SyncEnd {
		policies = policies[:1] // static
	}
	return disdel.Distribution{
		Workers: rapid.SampledFrom([]int{0, 5, 9}).Draw(t, "workers"), Policy: rapid.SampledFrom(policies).Draw(t, "policy"),
		MinWorkers: rapid.IntRange(0, 5).Draw(t, "minWorkers"),
		MaxWorkers: rapid.SampledFrom([]int{0, 9, 99}).Draw(t, "maxWorkers"),
		Sync:       sync,
		Aggregation: disdel.Aggregation{
			FanIn:          rapid.SampledFrom([]int{0, 2, 3, 1000}).Draw(t, "fanIn"),
			Wire:           rapid.SampledFrom(disdel.Wires()).Draw(t, "wire"),
			Threshold:      float64(rapid.IntRange(0, 1000).Draw(t, "threshold")) / 100,
			OptimizerState: upkeep.Draw(t, "moments"), Statistics: upkeep.Draw(t, "statistics"),
		},
		Missing: disdel.Missing{
			Policy: rapid.SampledFrom([]disdel.MissingPolicy{
				disdel.MissingRetry, disdel.MissingWait,
				disdel.MissingProceed,
			}).Draw(t, "missing"),
			After: disdel.Duration(rapid.Int64Range(1, 1e15).Draw(t, "after")),
		},
	}
}

func anyReliability(t *rapid.T) disdel.Reliability {
	count, factor := rapid.IntRange(0, math.MaxInt32), rapid.Float64Range(1.0000001, math.MaxFloat64)
	initial := disdel.Duration(rapid.Int64Range(1, 1e15).Draw(t, "initial"))
	return disdel.Reliability{
		CheckpointEvery: count.Draw(t, "checkpoints"),
		Retries: disdel.Retries{
			Limit: count.Draw(t, "limit"), PerWorker: count.Draw(t, "each"),
			Backoff: disdel.Backoff{Initial: initial, Max: initial +
				disdel.Duration(rapid.Int64Range(0, 1e15).Draw(t, "more"))},
			MemoryFactor: factor.Draw(t, "memory"), TimeoutFactor: factor.Draw(t, "time"),
		},
	}
}

func anyResources(t *rapid.T) disdel.Resources {
	r := disdel.Resources{
		Risk:    rapid.Float64Range(1e-300, 0.05).Draw(t, "risk"),
		Memory:  disdel.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "memory")),
		Timeout: disdel.Duration(rapid.Int64Range(0, int64(300*time.Hour)).Draw(t, "timeout")),
		MaxCost: rapid.Float64Range(0, 1e12).Draw(t, "cost"), Price: rapid.Float64Range(0, 1e3).Draw(t, "price"),
	}
	if rapid.Bool().Draw(t, "ceiling") {
		r.MaxMemory = r.Memory + disdel.Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "more"))
	}
	return r
}

func TestPrintAndParseAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := anyJob(t)
		text, err := Print(job)
		if err != nil {
			t.Fatal(err)
		}
		file, err := Parse("job.yaml", text, nil)
		if diff := cmp.Diff(job, file.Job); diff != "" || err != nil {
			t.Fatalf("%v\n%s\n%s", err, diff, text)
		}
	})
}

// Whatever a person does to a good file, the faults point into it, in order, and can be shown.
func TestEveryDamageIsReportedInsideTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(smallest)
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			n := rapid.IntRange(0, min(12, len(text)-i)).Draw(t, "cut")
			in := rapid.SampledFrom([]string{
				"", " ", "\n", ": ", "- ", "{", "}", "[", "'", "*a", "&a ", "0", "\x1b", "\xff",
				"é", "\t", "---\n", "!!int ", "auto",
			}).Draw(t, "put")
			text = append(append(append([]byte{}, text[:i]...), in...), text[i+n:]...)
			if len(text) == 0 {
				return
			}
		}
		checkParse(t, text)
	})
}

// fataler is what testing.T and rapid.T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkParse holds the promises of the package comment against any text.
func checkParse(t fataler, text []byte, sets ...string) {
	t.Helper()
	file, err := Parse("job.yaml", text, sets)
	var faults *disdel.Faults
	if err == nil {
		checkRoundTrip(t, file.Job)
		return
	}
	if !errors.As(err, &faults) || len(faults.Faults) == 0 {
		t.Fatalf("%q: %v is not Faults", text, err)
	}
	lines, before := len(terminal.SourceLines(text))+1, disdel.Fault{}
	for _, f := range faults.Faults {
		if f.Line < before.Line || f.Line == before.Line && f.Column < before.Column {
			t.Fatalf("%q: %+v comes after %+v", text, f, before)
		}
		if f.Line > lines || f.Line == 0 && len(sets) == 0 || f.Msg == "" {
			t.Fatalf("%q: %+v is nowhere", text, f)
		}
		before = f
	}
	var out bytes.Buffer
	terminal.PrintFaults(faults, text, &out)
	if i := strings.IndexFunc(out.String(), func(c rune) bool { return c != '\n' && terminal.IsControl(c) }); i >= 0 ||
		!utf8.Valid(out.Bytes()) {
		t.Fatalf("%q: rendered as %q", text, out.String())
	}
}

func checkRoundTrip(t fataler, job disdel.Job) {
	t.Helper()
	text, err := Print(job)
	if err != nil {
		t.Fatalf("print %+v: %v", job, err)
	}
	again, err := Parse("job.yaml", text, nil)
	if diff := cmp.Diff(job, again.Job); diff != "" || err != nil {
		t.Fatalf("%v\n%s\n%s", err, diff, text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest), "training.epochs=5")
	f.Add([]byte("{a: &a [*a], ? [b] : {}}"), "a[0].b={}")
	f.Add([]byte(strings.Replace(smallest, "name: lenet5",
		"layers: [{conv: {filters: 8, kernel: 3}}, {relu: }, {dense: {units: 10}}]", 1)), "")
	f.Add([]byte("<<: {a: b}\n--- |\n x\n"), "metadata.labels.x.y='\\e'")
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		checkParse(t, text)
		checkParse(t, text, set)
	})
}
