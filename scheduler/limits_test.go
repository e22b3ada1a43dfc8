package scheduler

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func train(memory disdel.Bytes, timeout time.Duration, span disdel.TrainRange, beats ...disdel.Beat) disdel.Activation {
	a := disdel.Activation{Beats: beats}
	a.Limits = disdel.Limits{Memory: memory, Timeout: disdel.Millis(timeout)}
	a.Task, a.TrainRange = disdel.TaskTrain, &span
	return a
}

func seconds(s float64) disdel.Millis { return disdel.Millis(s * float64(time.Second)) }

// The limit that will pass comes from what was measured, whichever tells most.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		peak, estimate disdel.Bytes
		beats          []disdel.Beat
		factor         float64
		want           disdel.Bytes
		why            string
	}{
		"the factor": {want: 160 * disdel.MB, why: "128 MB x 1.25"},
		"the job's":  {factor: 2, want: 256 * disdel.MB, why: "128 MB x 2"},
		"the peak": {
			peak: 150 * disdel.MB, want: 165 * disdel.MB,
			why: "measured peak 150 MB x 1.1",
		},
		"a peak that is a lower bound": {peak: 128 * disdel.MB, want: 160 * disdel.MB, why: "128 MB x 1.25"},
		"an estimate above a limit by hand": {
			peak: 128 * disdel.MB, estimate: 200*disdel.MB - 7, want: 200 * disdel.MB,
			why: "the estimate with its margin of 200 MB",
		},
		// 100 MB at batch 10, 120 MB at batch 20 of 60: 200 MB at the end, and a tenth.
		"growth": {
			beats: []disdel.Beat{
				{Batches: 60, Epoch: 1, Resident: disdel.MB},
				{Batch: 10, Batches: 60, Epoch: 1, Resident: 100 * disdel.MB},
				{Batch: 20, Batches: 60, Epoch: 1, Resident: 120 * disdel.MB},
			}, want: 220 * disdel.MB,
			why: "from 100 MB to 120 MB in batches 10 to 20 of 60",
		},
		"the collector": {beats: []disdel.Beat{
			{Batch: 10, Batches: 60, Epoch: 1, Resident: 100 * disdel.MB},
			{Batch: 20, Batches: 60, Epoch: 1, Resident: 90 * disdel.MB},
			{Batch: 30, Batches: 60, Epoch: 1, Resident: 125 * disdel.MB},
		}, want: 160 * disdel.MB, why: "x 1.25"},
		"a leap": {beats: []disdel.Beat{
			{Batch: 1, Batches: 6000, Epoch: 1, Resident: 10 * disdel.MB},
			{Batch: 2, Batches: 6000, Epoch: 1, Resident: 120 * disdel.MB},
		}, want: 256 * disdel.MB, why: "grew"},
	} {
		a := train(128*disdel.MB, time.Minute, disdel.TrainRange{Epochs: 1}, c.beats...)
		a.Peak, a.Estimate = c.peak, c.estimate
		got, why := Memory(a, c.factor)
		if got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v (%s), want %v (%s)", name, got, why, c.want, c.why)
		}
	}
}

// Peaks of earlier jobs that had spoken for half of what an action needs are not asked again: what the plan alone
// expects lets the job pass, not half as much again of too little.
func TestEnoughMemoryAfterALearnedEstimateThatWasTooLow(t *testing.T) {
	a := train(110*disdel.MB, time.Minute, disdel.TrainRange{Epochs: 1})
	for ratio, want := range map[float64]disdel.Bytes{0: 165, 1.1: 165, 0.9: 165, 0.5: 220} {
		r := &disdel.Record{Plan: disdel.Plan{Actions: []disdel.ActionPlan{
			{Task: disdel.TaskTrain, Estimate: disdel.Estimate{Total: 100 * disdel.MB, Ratio: ratio}},
		}}}
		if got, why := EnoughMemory(r, a); got != want*disdel.MB {
			t.Errorf("with a ratio of %v: %v (%s), want %v", ratio, got, why, want*disdel.MB)
		}
	}
}

func TestTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		span   disdel.TrainRange
		beats  []disdel.Beat
		queued float64
		want   float64 // seconds
	}{
		"no heartbeat": {disdel.TrainRange{Epochs: 1}, nil, 0, 120},
		"nearly done": {
			disdel.TrainRange{Epochs: 1},
			[]disdel.Beat{{At: seconds(59), Epoch: 1, Batch: 58, Batches: 60}},
			0,
			120,
		},
		"a sixth, 360 s": {
			disdel.TrainRange{Epochs: 1},
			[]disdel.Beat{{At: seconds(60), Epoch: 1, Batch: 10, Batches: 60}},
			0,
			540,
		},
		"start-up is apart": {
			disdel.TrainRange{Epochs: 1},
			[]disdel.Beat{
				{At: seconds(40), Epoch: 1, Batch: 10, Batches: 60},
				{At: seconds(60), Epoch: 1, Batch: 20, Batches: 60},
			},
			0, 210,
		},
		// The second of the round's epochs 3 and 4 is half done: 90 of 120 batches in 60 s.
		"several epochs": {
			disdel.TrainRange{Epochs: 3, Epoch: 3},
			[]disdel.Beat{{At: seconds(60), Epoch: 5, Batch: 30, Batches: 60}},
			0, 180,
		},
		"part of one": {
			disdel.TrainRange{Epochs: 1, Epoch: 3, Batch: 20, Batches: 20},
			[]disdel.Beat{{At: seconds(60), Epoch: 4, Batch: 30, Batches: 60}},
			0, 180,
		},
		"the first batch": {
			disdel.TrainRange{Epochs: 1},
			[]disdel.Beat{{At: seconds(20), Epoch: 1, Batch: 1, Batches: 313}},
			0,
			120,
		},
		"two early ones": {
			disdel.TrainRange{Epochs: 1},
			[]disdel.Beat{
				{At: seconds(50), Epoch: 1, Batch: 1, Batches: 61},
				{At: seconds(60), Epoch: 1, Batch: 6, Batches: 61},
			},
			0, 255,
		},
		"the queue apart": {
			disdel.TrainRange{Epochs: 1},
			[]disdel.Beat{
				{At: seconds(100), Epoch: 1, Batch: 10, Batches: 60},
				{At: seconds(160), Epoch: 1, Batch: 20, Batches: 60},
			},
			100, 450,
		},
	} {
		a := train(128*disdel.MB, time.Minute, c.span, c.beats...)
		a.WaitTime = seconds(c.queued)
		if got, why := Timeout(a, 0); got != seconds(c.want) {
			t.Errorf("%s: %v (%s), want %v s", name, got, why, c.want)
		}
	}
}

// Whatever was measured, a limit grows: else a sequence of retries need not end.
func TestLimitsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		beat := rapid.Custom(func(t *rapid.T) disdel.Beat {
			return disdel.Beat{
				At:       disdel.Millis(rapid.Int64Range(0, 1e12).Draw(t, "at")),
				Resident: disdel.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "resident")),
				Epoch:    rapid.IntRange(0, 9).Draw(t, "epoch"), Batch: rapid.IntRange(0, 99).Draw(t, "batch"),
				Batches: rapid.IntRange(0, 99).Draw(t, "batches"),
			}
		})
		a := train(disdel.Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "limit")),
			time.Duration(rapid.Int64Range(1, 1e13).Draw(t, "timeout")),
			disdel.TrainRange{
				Epochs: rapid.IntRange(0, 5).Draw(t, "epochs"), Epoch: rapid.IntRange(0, 5).Draw(t, "before"),
				Batch: rapid.IntRange(0, 20).Draw(t, "start"),
			},
			rapid.SliceOfN(beat, 0, 5).Draw(t, "beats")...)
		factor := rapid.Float64Range(0, 4).Draw(t, "factor")
		if m, _ := Memory(a, factor); m <= a.Limits.Memory || m%disdel.MB != 0 {
			t.Errorf("memory %d after %d", m, a.Limits.Memory)
		}
		if d, _ := Timeout(a, factor); d <= a.Limits.Timeout {
			t.Errorf("timeout %d after %d", d, a.Limits.Timeout)
		}
	})
}

// What a job had reached is the smallest limit above its kills that the same task passed with. If none passed, it is
// what the last kill was advised to ask for.
func TestReachedLimitsAreTheTasksOwn(t *testing.T) {
	end := func(task disdel.Task, outcome disdel.Outcome, memory disdel.Bytes, round int) (a disdel.Activation) {
		a.Task, a.Outcome, a.Round = task, outcome, round
		a.Limits = disdel.Limits{Memory: memory * disdel.MB, Timeout: disdel.Millis(time.Minute)}
		return a
	}
	const train, killed, passed = disdel.TaskTrain, disdel.OutcomeOutOfMemory, disdel.OutcomeSuccess
	last := end(train, killed, 256, 1)
	advised, _ := EnoughMemory(&disdel.Record{}, last)
	for name, c := range map[string]struct {
		then []disdel.Activation
		want disdel.Bytes
	}{
		"the smallest that passed": {
			[]disdel.Activation{end(train, passed, 512, 2), end(train, passed, 384, 3), end(train, passed, 400, 4)},
			384 * disdel.MB,
		},
		"not what another task passed with": {[]disdel.Activation{end(disdel.TaskAggregate, passed, 512, 2)}, advised},
		"not what failed otherwise":         {[]disdel.Activation{end(train, disdel.OutcomeTimeout, 512, 2)}, advised},
		"not what passed with less":         {[]disdel.Activation{end(train, passed, 256, 2)}, advised},
	} {
		r := disdel.Record{Activations: append([]disdel.Activation{end(train, killed, 128, 0), last}, c.then...)}
		if got := LimitsReached(&r, train).Memory; got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// A retry that trained a part of the rows passed in a part of the time: the whole needs as many times as long as its
// rows are of the most. Memory does not grow with the rows, and work without rows needs what it took.
func TestAPartOfTheRowsIsAPartOfTheTime(t *testing.T) {
	end := func(task disdel.Task, outcome disdel.Outcome, member, rows int, took time.Duration) (a disdel.Activation) {
		a.Task, a.Outcome, a.Member, a.Rows, a.Duration = task, outcome, member, rows, disdel.Millis(took)
		a.Peak, a.Limits = 100*disdel.MB, disdel.Limits{Memory: 50 * disdel.MB, Timeout: disdel.Millis(time.Second)}
		return a
	}
	paced := func(took time.Duration) int64 {
		return int64(ceilSecond(times(disdel.Millis(took), disdel.PacedMargin)))
	}
	const train, evaluate = disdel.TaskTrain, disdel.TaskEvaluate
	r := disdel.Record{Activations: []disdel.Activation{
		end(train, disdel.OutcomeTimeout, 0, 0, time.Second), end(train, disdel.OutcomeOutOfMemory, 1, 0, time.Second),
		end(evaluate, disdel.OutcomeTimeout, 0, 0, time.Second),
		end(train, disdel.OutcomeSuccess, 0, 25, 20*time.Second), end(train, disdel.OutcomeSuccess, 1, 100, 30*time.Second),
		end(evaluate, disdel.OutcomeSuccess, 0, 0, 40*time.Second), end(evaluate, disdel.OutcomeSuccess, 1, 9, time.Second),
	}}
	for what, c := range map[string]struct {
		got  []lack
		want int64
	}{
		"time to train":    {timeLimit().lacks(&r, train), 4 * paced(20*time.Second)},
		"time to evaluate": {timeLimit().lacks(&r, evaluate), paced(40 * time.Second)},
		"memory to train":  {memoryLimit().lacks(&r, train), wholeMB(scaled(100*disdel.MB, peakMargin))},
	} {
		if len(c.got) != 1 || c.got[0].needed != c.want {
			t.Errorf("%s: %+v, not %d", what, c.got, c.want)
		}
	}
	if need, _ := timeLimit().needOf(&r, train); need != 4*paced(20*time.Second) {
		t.Errorf("a job needs %d", need)
	}
}

// An earlier job tells of this one's memory only if network, engine and the optimiser's moments are all the same.
func TestMemoryIsLearntFromTheSameNetworkOnly(t *testing.T) {
	b := planBuilder{PlanInput: planInput(t)}
	for name, change := range map[string]func(*disdel.Job){
		"another engine":    func(j *disdel.Job) { j.Training.Backend = "other" },
		"another optimiser": func(j *disdel.Job) { j.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{}} },
		"another network":   func(j *disdel.Job) { j.Model.Name = "other" },
	} {
		r := disdel.Record{Job: b.Job}
		if !b.sameNetwork(&r) {
			t.Fatal("the job is not like itself")
		}
		if change(&r.Job); b.sameNetwork(&r) {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}
