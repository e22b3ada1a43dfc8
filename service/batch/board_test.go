package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// jobs is so many jobs of ten epochs.
func jobs(n int) (out []Job) {
	for i := range n {
		var j Job
		j.Request.Job.Metadata.Name = fmt.Sprintf("job %d", i)
		j.Request.Job.Training.Epochs = 10
		out = append(out, j)
	}
	return out
}

// told tells a board what an ordinary job tells first: it is planned, has its gang, and invokes a worker.
func told(b *board, i int, cancel func(error)) {
	b.submitted(i, disdel.JobID(fmt.Sprintf("job-%d", i)), cancel)
	var rec disdel.Record
	rec.Job.Training.Epochs = 10
	rec.Plan = disdel.Plan{Workers: 2, Rounds: 10, Epochs: 1}
	rec.Plan.Platform.Pool = disdel.GB
	b.see(i, service.Planned{Record: rec})
	b.see(i, service.Admitted{Room: scheduler.Capacity{Memory: 256 * disdel.MB}})
	inv := disdel.Invocation{ID: "round 0/train/0", Task: disdel.TaskTrain}
	inv.Limits.Memory = 128 * disdel.MB
	b.see(i, service.Invoked{Invocation: inv})
	b.see(i, service.Progress{Actions: []disdel.Progress{{Resident: 30 * disdel.MB}, {Resident: 2 * disdel.MB}}})
}

func round(n int, accuracy float64) service.RoundEnded {
	return service.RoundEnded{Round: disdel.Round{Round: n, TrainLoss: 1, Loss: new(1.0), Accuracy: &accuracy}}
}

func finished(status disdel.Status) service.Finished {
	rec := disdel.Record{Status: status, CostGBs: 2, EvaluationGBs: 1}
	if status == disdel.StatusSucceeded {
		rec.Model = &disdel.ModelRef{Name: "m", Version: 1}
	} else {
		rec.Failure = &disdel.Error{Kind: disdel.OOM, Msg: "it was too large"}
	}
	return service.Finished{Record: rec}
}

// What a batch came to is what its jobs told: times, memory over time, costs, and the best first.
func TestASummaryAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := jobs(4)
		b := newBoard(Config{Jobs: list})
		for i := range 3 {
			told(b, i, nil)
		}
		b.refused(3, &disdel.Error{Kind: disdel.OverLimit, Msg: "it would wait for ever"})
		time.Sleep(2 * time.Second)
		for i, accuracy := range []float64{0.5, 0.9, 0.7} {
			b.see(i, round(0, accuracy))
			a := disdel.Activation{Outcome: disdel.OutcomeSuccess, Cold: i == 0, Peak: 40 * disdel.MB}
			a.Invocation.ID = "round 0/train/0"
			b.see(i, service.Ended{Activation: a})
		}
		b.see(0, finished(disdel.StatusSucceeded))
		b.see(1, finished(disdel.StatusSucceeded))
		time.Sleep(time.Second)
		b.see(2, finished(disdel.StatusFailed))
		s := b.summary()
		var order []string
		for _, r := range s.Jobs {
			order = append(order, r.Name)
		}
		if got := strings.Join(order, ", "); got != "job 1, job 0, job 2, job 3" {
			t.Errorf("the best first: %s", got)
		}
		if s.Makespan != disdel.Millis(3*time.Second) || s.CostGBs != 6 || s.Evaluations != 3 || s.Activations != 3 ||
			s.Cold != 1 || s.Counts != (Counts{Succeeded: 2, Failed: 2}) {
			t.Errorf("%+v", s)
		}
		best := s.Jobs[0]
		if p, ok := best.Result(); !ok || *p.Accuracy != 0.9 || p.Epochs != 1 || best.Model != "m:v1" ||
			best.Ran(0) != disdel.Millis(2*time.Second)-best.Started || best.Peak != 40*disdel.MB {
			t.Errorf("%+v", best)
		}
		p := s.Pool
		if p.Bytes != disdel.GB || p.MostReserved != 768*disdel.MB || p.MostResident != 96*disdel.MB {
			t.Errorf("%+v", p)
		}
		// three gangs of 0.25 GB for two seconds and one for another; what is resident is so for two
		if got, want := p.ReservedGBs, 3*0.25*2+0.25; got < want*0.99 || got > want*1.01 {
			t.Errorf("%.3f GB-s reserved, want %.3f", got, want)
		}
		if got, want := p.ResidentGBs, 3*32.0/1024*2; got < want*0.99 || got > want*1.01 {
			t.Errorf("%.3f GB-s resident, want %.3f", got, want)
		}
		if err := s.Err(); !errors.Is(err, disdel.OOM) || !strings.Contains(err.Error(), "2 of 4 jobs failed") {
			t.Error(err)
		}
	})
}

// A job that falls behind is cancelled once, is no failure of the batch, and says why it was stopped.
func TestAJobThatFallsBehindIsStopped(t *testing.T) {
	list := jobs(2)
	b := newBoard(Config{Jobs: list, Halving: Halving{Factor: 2}})
	var canceled []string
	for i := range 2 {
		told(b, i, func(why error) { canceled = append(canceled, fmt.Sprintf("%d: %v", i, why)) })
	}
	b.see(0, round(0, 0.4))
	b.see(1, round(0, 0.6))
	b.see(0, round(1, 0.9)) // it was under way
	if len(canceled) != 1 || !strings.HasPrefix(canceled[0], "0: it fell behind: 1 of 2 jobs were better after 1 epoch") {
		t.Fatalf("%v", canceled)
	}
	stopped := finished(disdel.StatusCanceled)
	b.see(0, stopped)
	b.see(1, finished(disdel.StatusSucceeded))
	s := b.summary()
	if s.Counts != (Counts{Succeeded: 1, Behind: 1}) || s.Err() != nil || s.Jobs[1].Behind == "" {
		t.Errorf("%+v, %v", s.Counts, s.Err())
	}
}

// A stopped job that ended before it could be stopped has succeeded.
func TestAJobMayEndBeforeItIsStopped(t *testing.T) {
	b := newBoard(Config{Jobs: jobs(2), Halving: Halving{Factor: 2}})
	for i := range 2 {
		told(b, i, func(error) {})
		b.see(i, round(0, float64(i)))
	}
	b.see(0, finished(disdel.StatusSucceeded))
	if s := b.summary(); s.Counts != (Counts{Succeeded: 1, Canceled: 1}) {
		t.Errorf("%+v", s.Counts)
	}
}

// The pool over a long time is kept in a bounded number of samples, from the first to the last.
func TestSamplesStayFew(t *testing.T) {
	var r recording
	const n = 20_000
	for i := range n {
		r.add(Sample{At: disdel.Millis(i) * disdel.Millis(time.Second), Resident: disdel.Bytes(i%2) * disdel.GB})
	}
	if len(r.Samples) > mostSamples || len(r.Samples) < mostSamples/4 || r.Samples[0].At != 0 ||
		r.Samples[len(r.Samples)-1].At != disdel.Millis(n-1)*disdel.Millis(time.Second) {
		t.Errorf("%d samples from %v to %v", len(r.Samples), r.Samples[0].At, r.Samples[len(r.Samples)-1].At)
	}
	if r.ResidentGBs < n/2-2 || r.ResidentGBs > n/2+2 {
		t.Errorf("%.0f GB-s, want %d", r.ResidentGBs, n/2)
	}
	for i := range 3 * mostSamples { // many changes in a moment are one sample
		r.add(Sample{At: r.last.At + 1, Running: i})
	}
	if len(r.Samples) > mostSamples {
		t.Errorf("%d samples", len(r.Samples))
	}
}
