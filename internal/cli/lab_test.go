package cli

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service"
)

// labJobs are those of a service that runs at once whatever it is given.
type labJobs struct {
	client.Jobs
	asked []string
	fails string // policy under which a job fails
}

func (j *labJobs) Submit(_ context.Context, req service.Request) (client.Run, error) {
	name := req.Job.Distribution.Policy
	j.asked = append(j.asked, name)
	rec := disdel.Record{
		ID: "job-1", Job: req.Job, Status: disdel.StatusSucceeded, UsedGBs: 3,
		Phases: disdel.Phases{Total: disdel.Millis(time.Duration(len(j.asked)) * time.Second)},
		Stages: []disdel.Stage{
			{Rounds: 2, Epochs: 1, Setting: disdel.Setting{Workers: 2}},
			{First: 1, Rounds: 1, Epochs: 1, Setting: disdel.Setting{Workers: 4}},
		},
		Rounds: []disdel.Round{
			{Round: 0, TrainLoss: 2, Duration: disdel.Millis(time.Second)}, {Round: 1, TrainLoss: 1, Stage: 1},
		},
	}
	if name == j.fails {
		rec.Status, rec.Failure = disdel.StatusFailed, &disdel.Error{Kind: disdel.OOM, Msg: "no room"}
	}
	return labRun{rec}, nil
}

func (j *labJobs) Estimate(_ context.Context, req service.Request, q service.Questions) (*service.Estimation, error) {
	if req.Job.Metadata.Name == "unknown" {
		return nil, &disdel.Error{Kind: disdel.NotFound}
	}
	var l simulate.Lab
	for i, name := range q.Policies {
		l.Trials = append(l.Trials, simulate.Trial{
			Job: disdel.JobID(req.Job.Metadata.Name), Policy: name, Status: disdel.StatusSucceeded,
			Took: disdel.Millis(time.Duration(i+1) * 1100 * time.Millisecond), Time: 1, Cost: 1,
		})
	}
	return &service.Estimation{Policies: &l}, nil
}

type labRun struct{ rec disdel.Record }

func (r labRun) ID() disdel.JobID { return r.rec.ID }
func (r labRun) EventsAfter(context.Context, int) iter.Seq[service.Event] {
	return func(func(service.Event) bool) {}
}
func (r labRun) Cancel(error)                                {}
func (r labRun) Wait(context.Context) (disdel.Record, error) { return r.rec, nil }
func labRequest(name string) (req service.Request)           { req.Job.Metadata.Name = name; return req }

// Every job runs under every policy, static first; the trials say what came of them, and how far their simulation was.
func TestJobsRunUnderEachPolicy(t *testing.T) {
	at := &labJobs{fails: "auto"}
	files := []service.Request{labRequest("a")}
	l, err := simulatePolicies(t.Context(), at, files, []string{"static", "coach"})
	if err != nil || len(l.Trials) != 2 || len(l.Policies) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	told := 0
	trials, err := runUnderPolicies(t.Context(), at, files, []string{"coach", "static", "auto"},
		func(simulate.Trial) { told++ })
	if err != nil || len(trials) != 3 || told != 3 || at.asked[0] != "static" {
		t.Fatalf("%v: %+v, %v", at.asked, trials, err)
	}
	first, failed := trials[0], trials[2]
	if first.CostGBs != 3 || first.Loss != 1 || len(first.Course) != 2 || first.Course[1].Workers != 4 ||
		first.Course[1].At != disdel.Millis(time.Second) || failed.Why != "no room" {
		t.Errorf("%+v\n%+v", first, failed)
	}
	l.Ran(trials)
	if l.SimError < 9 || l.SimError > 11 || l.Run.Policies[1].Time != 2 || l.Run.Policies[2].Succeeded != 0 {
		t.Errorf("%g %%, %+v", l.SimError, l.Run.Policies)
	}
	_, err = simulatePolicies(t.Context(), at, []service.Request{labRequest("unknown")}, nil)
	if !errors.Is(err, disdel.NotFound) {
		t.Error(err)
	}
}
