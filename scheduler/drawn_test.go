package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	goldenfile "github.com/disdel/disdel/internal/test/golden"
)

// oneOf draws one of some values.
func oneOf[T any](draw *rand.Rand, values ...T) T { return values[draw.IntN(len(values))] }

// sameAsBefore compares lines with a transcript of testdata/drawn: who changes a decision sees which ones change.
func sameAsBefore(t *testing.T, name string, lines []string) {
	t.Helper()
	file, got := "testdata/drawn/"+name, strings.Join(lines, "\n")+"\n"
	goldenfile.Same(t, file, got, *update)
}

// someMB draws one of some numbers of MB, and someSec one of some numbers of seconds.
func someMB(draw *rand.Rand, of ...disdel.Bytes) disdel.Bytes { return mega * oneOf(draw, of...) }

func someSec(draw *rand.Rand, of ...disdel.Millis) disdel.Millis { return sec * oneOf(draw, of...) }

const mega, sec = disdel.MB, disdel.Millis(time.Second)

var outcomes = []disdel.Outcome{
	disdel.OutcomeSuccess, disdel.OutcomeSuccess, disdel.OutcomeApplicationError, disdel.OutcomeDeveloperError,
	disdel.OutcomeOutOfMemory, disdel.OutcomeOutOfMemory, disdel.OutcomeOutOfMemory, disdel.OutcomeTimeout,
	disdel.OutcomeTimeout, disdel.OutcomeInternalError, disdel.OutcomeLost, disdel.OutcomePaused,
	disdel.OutcomeStartFailure, disdel.OutcomeThrottled, disdel.OutcomeDiverged, disdel.OutcomeCorrupt,
}

// drawnFailure is an activation that ended in any way. Few values are drawn, so that some are equal.
func drawnFailure(draw *rand.Rand) disdel.Activation {
	a := disdel.Activation{Outcome: oneOf(draw, outcomes...)}
	a.Task = oneOf(draw, disdel.TaskTrain, disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate)
	a.Limits = disdel.Limits{
		Memory:  someMB(draw, 128, 200, 512) - oneOf[disdel.Bytes](draw, 0, 1),
		Timeout: someSec(draw, 10, 60, 300), Device: oneOf(draw, 0, 0, 1024*mega),
	}
	a.Estimate, a.Peak = someMB(draw, 0, 190, 400), someMB(draw, 0, 100, 190, 400)
	a.DevicePeak = oneOf(draw, 0, 1000*mega)
	a.Duration, a.Rows = someSec(draw, 0, 9, 60, 61), oneOf(draw, 0, 50, 100)
	a.Round, a.Member, a.Leg = draw.IntN(2), draw.IntN(2), oneOf(draw, 0, 0, 1)
	a.Suspected = draw.IntN(4) == 0
	if draw.IntN(6) == 0 {
		a.Recovered = disdel.NoRecord
	}
	if a.Outcome != disdel.OutcomeSuccess && draw.IntN(3) > 0 {
		a.Failure = &disdel.Error{
			Kind: oneOf(draw, disdel.Crashed, disdel.Crashed, disdel.Unavailable, disdel.Conflict, disdel.Invalid,
				disdel.Internal),
			Code: oneOf(draw, "", "", disdel.CodeNeverServed, disdel.CodeImageMissing, disdel.CodeInitTimeout,
				disdel.CodeInitDied, disdel.CodeNoDevice, disdel.CodeQuotaMinute, disdel.CodeLostUpdate,
				disdel.CodeLostReference, disdel.CodeDeviceMemory),
		}
	}
	beat, at := disdel.Beat{Resident: 90 * mega, Batches: 10}, disdel.Millis(0)
	for range oneOf(draw, 0, 0, 1, 2, 3) {
		at += someSec(draw, 1, 4, 30)
		beat.At, beat.Batch = at, beat.Batch+oneOf(draw, 0, 1, 3)
		beat.Resident += someMB(draw, 0, 1, 20, -1)
		beat.Peak = max(beat.Peak, beat.Resident)
		a.Beats = append(a.Beats, beat)
	}
	return a
}

// Of 500 drawn failures each finds the remedy that it found in earlier versions, with the same reasons.
func TestDrawnFailuresKeepTheirRemedies(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 20261129))
	var lines []string
	planned := planInput(t)
	for n := range 500 {
		in := RemedyInput{Activation: drawnFailure(draw), Patient: draw.IntN(8) == 0}
		for !in.Activation.Outcome.Failed() {
			in.Activation = drawnFailure(draw)
		}
		in.Attempts = Attempts{
			Job: draw.IntN(4), Worker: draw.IntN(3), Platform: oneOf(draw, 0, 0, 1, 2, 3, 5, 6, 10), Crashes: draw.IntN(4),
		}
		in.Passed = someSec(draw, 0, 10, 59)
		in.Job.Training = planned.Job.Training
		in.Job.Training.BatchSize = oneOf(draw, 1, 2, 64)
		in.Job.Reliability.Retries = oneOf(draw, disdel.Retries{}, disdel.Retries{Limit: 3, PerWorker: 2},
			disdel.Retries{
				Limit: 2, PerWorker: 1, MemoryFactor: 1.2, TimeoutFactor: 3,
				Backoff: disdel.Backoff{Initial: disdel.Duration(time.Second), Max: disdel.Duration(3 * time.Second)},
			})
		in.Job.Distribution.Workers, in.Job.Distribution.MaxWorkers = oneOf(draw, 0, 0, 2), oneOf(draw, 0, 3)
		in.Job.Resources.Memory = someMB(draw, 0, 0, 512)
		in.Job.Resources.Timeout = oneOf(draw, 0, 0, disdel.Duration(time.Minute), disdel.Duration(5*time.Minute))
		in.Plan = disdel.Plan{
			Platform: disdel.PlatformLimits{
				MaxMemory: someMB(draw, 200, 512, 2048), MaxTimeout: someSec(draw, 60, 300), Pool: 2048 * mega,
				MaxDevice: oneOf(draw, 0, 4096*mega),
			},
			Workers: oneOf(draw, 1, 2), Shards: Shards(1000, 2),
			Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain, Estimate: disdel.Estimate{
				Shard: someMB(draw, 10, 100), Activations: someMB(draw, 10, 50), Total: 400 * mega,
			}}},
		}
		r := FindRemedy(in)
		lines = append(lines, fmt.Sprintf("%d %v %v: %v %v %v %v, batch %d, %d workers, %v: %s", n, in.Activation.Task,
			in.Activation.Outcome, r.Retry, r.Limits.Memory, r.Limits.Timeout, r.Limits.Device, r.BatchSize, r.Workers,
			r.After, r.Why))
	}
	sameAsBefore(t, "remedies.txt", lines)
}

// Of 80 drawn jobs workers leave at the steps at which they left in earlier versions. Some losses are noisy, some rise
// again, and steps are slower while workers start.
func TestDrawnStepsLetTheSameWorkersGo(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 20261130))
	var lines []string
	for n := range 80 {
		s := ScaleIn{
			Workers: 2 + draw.IntN(23), Least: oneOf(draw, 0, 1, 3), Every: oneOf(draw, 0, 7, 20),
			Target: oneOf(draw, 0, 0.25, 0.31, 0.4),
		}
		own, others, slow := oneOf(draw, 0, 0.2, 1), oneOf(draw, 0, 0.05, 0.3, 2), oneOf(draw, 0, 3.0)
		noise, rises, holds := oneOf(draw, 0, 0.01, 0.05, 0.2), oneOf(draw, 0, 0, 1e-4, 1e-3), draw.IntN(8) == 0
		line := fmt.Sprintf("%d: %d workers of at least %d, every %d, to %g:", n, s.Workers, s.Least, s.Every, s.Target)
		progress, changed := 0.0, 0
		for step := range 400 {
			seen := StepSeen{Loss: 0.3 + 1/(0.02*progress+0.5), Own: own, Others: others * float64(s.Workers-1)}
			seen.Loss += noise*(draw.Float64()-0.5) + rises*max(0, float64(step)-200)
			if step-changed < 6 {
				seen.Own += slow
			}
			progress += float64(s.Workers)
			if was := s.Workers; s.Step(seen) < was {
				changed, line = step, fmt.Sprintf("%s %d at %d,", line, s.Workers, step+1)
			}
			switch {
			case step == 150:
				s.Holds = holds
			case step == 300 && n%4 == 0:
				s.Now(12)
			}
		}
		lines = append(lines, strings.TrimRight(line, ",:"))
	}
	sameAsBefore(t, "scalein.txt", lines)
}

// What 200 drawn records teach of limits is what they taught in earlier versions, with the same reasons.
func TestDrawnRecordsTeachTheSameLimits(t *testing.T) {
	draw := rand.New(rand.NewPCG(2, 20261129))
	var lines []string
	for n := range 200 {
		var r disdel.Record
		r.Job.Reliability.Retries.MemoryFactor = oneOf(draw, 0, 0, 1.2, 2)
		r.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain, Estimate: disdel.Estimate{
			Total: 180 * mega, Ratio: oneOf(draw, 0, 0.5, 0.9, 1),
		}}}
		for range 2 + draw.IntN(8) {
			r.Activations = append(r.Activations, drawnFailure(draw))
		}
		a := r.Activations[draw.IntN(len(r.Activations))]
		memory, why := EnoughMemory(&r, a)
		device, deviceWhy := DeviceMemory(a, r.Job.Reliability.Retries.MemoryFactor)
		timeout, timeoutWhy, known := EnoughTime(&r, a)
		lines = append(lines, fmt.Sprintf("%d memory %v: %s; device %v: %s; timeout %v (%t): %s", n, memory, why, device,
			deviceWhy, timeout, known, timeoutWhy))
		for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
			lines = append(lines, fmt.Sprintf("%d %v: reached %+v; memory %+v, device %+v, time %+v", n, task,
				LimitsReached(&r, task), memoryLimit().lacks(&r, task), deviceLimit().lacks(&r, task),
				timeLimit().lacks(&r, task)))
		}
	}
	sameAsBefore(t, "limits.txt", lines)
}

// drawnDemand is one of few jobs of few tenants.
func drawnDemand(draw *rand.Rand, now disdel.Millis) Demand {
	n := draw.IntN(6)
	each := Capacity{Memory: mega, Millicores: oneOf(draw, 0, 500)}
	return Demand{
		Job: disdel.JobID(fmt.Sprint("job-", n)), Tenant: oneOf(draw, "", "ann", "ben"), Priority: oneOf(draw, 0, 0, 1, -1),
		Arrived: now - someSec(draw, 0, 1, 2), Shares: draw.IntN(3) == 0, Began: draw.IntN(4) == 0,
		Gang: Gang{
			{Task: disdel.TaskTrain, Count: 1 + draw.IntN(4), Each: each},
			{Task: disdel.TaskAggregate, Count: draw.IntN(2), Each: each},
		},
		Keep: oneOf(draw, KeepLife, KeepRound),
		Takes: oneOf(draw, disdel.Interval[disdel.Millis]{},
			disdel.Interval[disdel.Millis]{Low: sec, Likely: 2 * sec, High: someSec(draw, 2, 3, 10)}),
		Cost:  oneOf(draw, 0, 1, 2.0),
		Quota: oneOf(draw, Quota{}, Quota{Jobs: 2}, Quota{Memory: 4 * mega, Weight: 2}, Quota{Cost: 6, Spent: 1}),
	}
}

// 50 drawn worlds of jobs that come, begin, end and expire are admitted as in earlier versions, by every order.
func TestDrawnJobsAreAdmittedAsBefore(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 20261129))
	var lines []string
	for n := range 50 {
		by := oneOf[Allocator](draw, Gangs{}, Gangs{Unused: 3 * sec, Reserve: 1, Look: 2}, FIFO{Unused: 3 * sec},
			Sharing{By: Gangs{Unused: 3 * sec}}, Greedy{Seed: 1})
		whole := func() Capacity {
			return Capacity{
				Memory: disdel.Bytes(4+draw.IntN(4)) * mega, Millicores: oneOf(draw, 3000, Unbounded),
				Concurrent: oneOf(draw, 6, Unbounded), PerMinute: Unbounded,
			}
		}
		a, now, said := NewAdmission(by, whole()), 100*sec, map[disdel.JobID]string{}
		line := func(format string, args ...any) {
			lines = append(lines, fmt.Sprintf("%d %d ", n, now/sec)+fmt.Sprintf(format, args...))
		}
		for range 30 {
			now += someSec(draw, 0, 1, 2)
			d := drawnDemand(draw, now)
			switch draw.IntN(9) {
			case 0, 1, 2, 3:
				line("enqueue %s: %v", d.Job, a.Enqueue(d))
			case 4:
				a.Use(d.Job)
				line("use %s", d.Job)
			case 5:
				a.Return(d.Job, oneOf(draw, 0, 1, 3.0))
				line("return %s", d.Job)
			case 6:
				line("expired: %v", a.Expire(now))
			case 7:
				a.Resize(whole())
				a.SetOthers(Capacity{Memory: someMB(draw, 0, 1)})
				line("never fit: %v", a.NeverFit())
			default:
				line("change %s: %q", d.Job, a.Change(now, d))
			}
			for _, g := range a.Decide(now) {
				text := fmt.Sprintf("  %s: %d of %v, %d to %d, expires %d, reserved %t: %s", g.Job, g.Gang.Size(), g.Room.Memory,
					g.From/sec, g.Until/sec, g.Expires/sec, g.Reserved, g.Why)
				if said[g.Job] != text {
					line("%s", text)
				}
				said[g.Job] = text
			}
			line("  %v free, %d hold, waiting %v", a.Free().Memory, a.Holding(), a.Queue())
		}
		for _, d := range a.State().Jobs {
			line("%s of %q began %t, holds %t", d.Job, d.Tenant, d.Began, d.Held != nil)
		}
		line("spent %v, %v free", a.State().Spent, a.Free())
	}
	sameAsBefore(t, "admission.txt", lines)
}
