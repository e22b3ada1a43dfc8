package history_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

// opened is a history on an embedded server of its own, and what ends both.
func opened() (*history.Store, func()) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	server, err := couchlite.Open(filepath.Join(dir, "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	s, err := history.Open(context.Background(), history.Config{URL: server.URL()})
	if err != nil {
		log.Fatal(err)
	}
	return s, func() {
		s.Close()
		server.Close()
		os.RemoveAll(dir)
	}
}

// finished is the record of a job that trained a network; ids sort by time.
func finished(id disdel.JobID, name, network string, accuracy float64) *disdel.Record {
	r := &disdel.Record{APIVersion: disdel.APIVersion, ID: id, Status: disdel.StatusSucceeded, Accuracy: accuracy}
	r.Job.Metadata.Name, r.Job.Model.Name = name, network
	r.Job.Data.Source, r.Job.Training.BatchSize = "dataset://digits", 64
	return r
}

const (
	older        = disdel.JobID("job-01m801z0gz7e93d9pd3eb6phwc")
	otherVersion = disdel.JobID("job-01m8023ty7x3v98e0et01v9bxt")
)

// Records are saved as a job goes on, and read by whoever asks later.
func ExampleStore() {
	s, end := opened()
	defer end()
	ctx := context.Background()
	for _, r := range []*disdel.Record{
		finished(older, "first", "digits-cnn", 0.95), finished(otherVersion, "second", "lenet5", 0.97),
	} {
		if err := s.Save(ctx, r); err != nil {
			log.Fatal(err)
		}
	}
	list, err := s.List(ctx, history.Query{Model: "lenet5"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(list), list[0].Job.Metadata.Name)

	id, err := s.Resolve(ctx, "first") // by its name
	if err != nil {
		log.Fatal(err)
	}
	r, err := s.Get(ctx, id)
	fmt.Println(r.Accuracy, err)

	recent, err := s.Recent(ctx, 10) // of any kind
	fmt.Println(len(recent), err)
	similar, err := s.Similar(ctx, r.Job) // same network, data, batch and backend
	fmt.Println(len(similar), err)

	fmt.Println(s.Delete(ctx, id))
	_, err = s.Get(ctx, id)
	fmt.Println(errors.Is(err, disdel.NotFound))
	// Output:
	// 1 second
	// 0.95 <nil>
	// 2 <nil>
	// 1 <nil>
	// <nil>
	// true
}

// A lease says who runs a job. Whoever takes it must have read what he replaces, so that one of two gets it.
func ExampleLease() {
	s, end := opened()
	defer end()
	ctx := context.Background()
	soon := time.Now().Add(30 * time.Second)
	mine, err := s.Take(ctx, history.Lease{Job: older, Owner: history.Owner{Host: "here", Token: "a"}, Expires: soon})
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Take(ctx, history.Lease{Job: older, Owner: history.Owner{Host: "there", Token: "b"}, Expires: soon})
	fmt.Println("another is refused:", errors.Is(err, disdel.Conflict))

	mine.Expires = soon.Add(30 * time.Second)
	if mine, err = s.Take(ctx, mine); err != nil { // renewed
		log.Fatal(err)
	}
	who, err := s.Lease(ctx, older)
	fmt.Println(who.Owner.Host, err)

	fmt.Println(s.Release(ctx, mine))
	all, err := s.Leases(ctx)
	fmt.Println(len(all), err)
	// Output:
	// another is refused: true
	// here <nil>
	// <nil>
	// 0 <nil>
}

// Without a database of its own name, records are in Database. An address that is none is refused at once.
func ExampleOpen() {
	_, err := history.Open(context.Background(), history.Config{URL: "couchdb:5984"})
	fmt.Println(errors.Is(err, disdel.Invalid), history.Database)
	// Output: true disdel_history
}

func ExampleFilter() {
	filter, err := history.ParseFilter("accuracy > 0.9 and tag:lenet and not state:failed")
	if err != nil {
		log.Fatal(err)
	}
	good, bad := 0.95, 0.7
	for _, accuracy := range []*float64{&good, &bad} {
		facts := history.FactsOf(&disdel.Record{
			Status: disdel.StatusSucceeded, Rounds: []disdel.Round{{Accuracy: accuracy}},
		})
		fmt.Println(*accuracy, filter.Matches(&facts, []string{"lenet"}, time.Now()))
	}
	_, err = history.ParseFilter("acuracy > 0.9")
	fmt.Println(err)
	// Output:
	// 0.95 true
	// 0.7 false
	// read filter: character 1: there is no field "acuracy"; did you mean accuracy?
}

func ExampleFields() {
	for _, field := range history.Fields()[12:14] {
		fmt.Printf("%s (%s): %s\n", field.Name, field.Kind, field.Meaning)
	}
	// Output:
	// accuracy (number): held-out accuracy of the model, from 0 to 1 or in %
	// best (number): highest accuracy of a round
}

func ExampleJobFacts() {
	r := disdel.Record{Status: disdel.StatusRunning}
	r.Job.Training.BatchSize = 32
	facts := history.FactsOf(&r)
	state, _ := facts.Text("state")
	batch, _ := facts.Number("training.batchSize")
	_, evaluated := facts.Number("accuracy")
	fmt.Println(state, batch, evaluated)
	// Output: running 32 false
}
