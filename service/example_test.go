package service_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

// digits is a job that takes a second or two.
var digits = []byte(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 64, optimizer: {adam: {learningRate: 0.004}}}
`)

// opened is a service on a home of its own, with a data set, and what ends it.
func opened() (*service.Service, func()) {
	home, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	s, err := service.Open(context.Background(), service.Config{Home: home})
	if err == nil {
		err = s.AddDigits(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	return s, func() {
		s.Close()
		os.RemoveAll(home)
	}
}

// job is digits with other values of some fields.
func job(sets ...string) disdel.Job {
	file, err := jobfile.Parse("digits.yaml", digits, sets)
	if err != nil {
		log.Fatal(err)
	}
	return file.Job
}

// A program whose embedded platform starts it again as its containers serves actions then, and does nothing else.
func ExampleServeActions() {
	served, err := service.ServeActions(context.Background(), os.Args)
	if served {
		log.Fatal(err)
	}
	fmt.Println("started as itself")
	// Output: started as itself
}

// What a Config leaves out is embedded. Here the history and the updates are on servers of their own.
func ExampleOpen() {
	s, err := service.Open(context.Background(), service.Config{
		Home: os.TempDir(), CouchDB: "http://disdel@couchdb:5984", Redis: []string{"redis://redis:6379/0"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println("open: servers are asked when they are needed")
	// Output: open: servers are asked when they are needed
}

func ExampleService_Submit() {
	s, end := opened()
	defer end()
	run, err := s.Submit(context.Background(), service.Request{Job: job()})
	if err != nil {
		log.Fatal(err)
	}
	record, err := run.Wait(context.Background())
	fmt.Println(record.Status, len(record.Rounds), "rounds", err)
	// Output: succeeded 2 rounds <nil>
}

// Whoever looks on reads every event, however late or slow he is.
func ExampleRun_Events() {
	s, end := opened()
	defer end()
	run, err := s.Submit(context.Background(), service.Request{Job: job()})
	if err != nil {
		log.Fatal(err)
	}
	for event := range run.Events() {
		switch what := event.What.(type) {
		case service.Planned:
			fmt.Println("workers:", what.Plan.Workers)
		case service.RoundEnded:
			fmt.Println("round", what.Round.Round+1)
		case service.Finished:
			fmt.Println(what.Status)
		}
	}
	// Output:
	// workers: 2
	// round 1
	// round 2
	// succeeded
}

// A job that was cancelled goes on where its newest checkpoint is.
func ExampleService_Resume() {
	s, end := opened()
	defer end()
	ctx := context.Background()
	run, err := s.Submit(ctx, service.Request{Job: job("training.epochs=100")})
	if err != nil {
		log.Fatal(err)
	}
	run.Cancel(errors.New("somebody needs the machine"))
	record, _ := run.Wait(ctx)
	fmt.Println(record.Status)

	run, err = s.Resume(ctx,
		service.ResumeRequest{Job: string(run.ID()), Sets: []string{"training.earlyStop={metric: loss, target: 10}"}})
	if err != nil {
		log.Fatal(err)
	}
	record, _ = run.Wait(ctx)
	fmt.Println(record.Status)
	// Output:
	// canceled
	// succeeded
}

func ExampleService_Estimate() {
	s, end := opened()
	defer end()
	found, err := s.Estimate(context.Background(), service.Request{Job: job()},
		service.Questions{MaxMemory: 128 * disdel.MB})
	if err != nil {
		log.Fatal(err)
	}
	train, _ := found.Plan.Action(disdel.TaskTrain)
	fmt.Println(found.Plan.Workers, "workers with", train.Limits.Memory, "each; it fits:", found.Fit.Fits())
	// Output: 2 workers with 128 MB each; it fits: true
}

// A job is checked against the data sets there are without anything being run.
func ExampleService_Check() {
	s, end := opened()
	defer end()
	_, err := s.Check(context.Background(),
		service.Request{Job: job("data.source=dataset://letters"), Source: service.Source{Name: "job.yaml"}})
	var faults *disdel.Faults
	fmt.Println(errors.As(err, &faults), faults.Faults[0].Path)
	// Output: true data.source
}

func ExampleService_Infer() {
	s, end := opened()
	defer end()
	ctx := context.Background()
	run, err := s.Submit(ctx, service.Request{Job: job()})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	m, err := s.Trained(ctx, "digits")
	if err != nil {
		log.Fatal(err)
	}
	said, err := s.Infer(ctx, m, [][]float32{make([]float32, m.Graph.Input().Len())})
	fmt.Println(m.Ref(), "answers for", len(said.Classes), "row with", len(said.Probabilities[0]), "probabilities", err)
	// Output: digits:v1 answers for 1 row with 10 probabilities <nil>
}
