package batch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
)

var digits = []byte(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: digits-cnn}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 2, batchSize: 64}
matrix: {training.optimizer.adam.learningRate: [0.00001, 0.004]}
`)

func ExampleStart() {
	home, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	ctx := context.Background()
	s, err := service.Open(ctx, service.Config{Home: home})
	if err == nil {
		err = s.AddDigits(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	jobs, faults := batch.Read([]batch.File{{Name: "digits.yaml", Text: digits}}, nil, service.Request{})
	if wrong := batch.Check(ctx, batch.In(s), jobs, faults...); len(wrong) > 0 {
		log.Fatal(wrong)
	}
	sum, err := batch.Start(ctx, batch.In(s), batch.Config{Jobs: jobs, By: batch.ByLoss})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Succeeded, "of", len(sum.Jobs), "succeeded; the best:", sum.Jobs[0].Choices[0].Value)
	for _, r := range sum.Jobs {
		_, known := r.Result()
		fmt.Println(r.Name, r.Model, r.Waited(r.Ended) >= 0, r.Ran(r.Ended) > 0, known)
	}
	fmt.Println(sum.ColdShare() > 0, sum.Err())
	// Output:
	// 2 of 2 succeeded; the best: 0.004
	// digits-2 digits-2:v1 true true true
	// digits-1 digits-1:v1 true true true
	// true <nil>
}

// Of a job that was evaluated the best round counts if its model is of that one.
func ExampleGroup() {
	jobs := make([]batch.Job, 2)
	jobs[1].Request.Job.Metadata.Labels = map[string]string{disdel.BatchLabel: "rates", "team": "vision"}
	id := batch.Group(jobs)
	fmt.Println(jobs[0].Request.Job.Metadata.Labels[disdel.BatchLabel] == id, len(id))
	fmt.Println(jobs[1].Request.Job.Metadata.Labels)
	// Output:
	// true 14
	// map[batch:rates team:vision]
}

func ExampleRow_Result() {
	r := batch.Row{Curve: []batch.Point{
		{Epochs: 1, TrainLoss: 0.5, Accuracy: new(0.8)}, {Epochs: 2, TrainLoss: 0.4, Accuracy: new(0.7)},
	}}
	p, ok := r.Result()
	fmt.Println(*p.Accuracy, p.Epochs, ok)
	r.Kept = &disdel.Best{Round: 0, Accuracy: 0.8}
	p, ok = r.Result()
	fmt.Println(*p.Accuracy, p.Epochs, ok)
	// Output:
	// 0.7 2 true
	// 0.8 1 true
}

func ExampleSummary_Err() {
	s := batch.Summary{Counts: batch.Counts{Succeeded: 1, Failed: 1}, Jobs: []batch.Row{
		{Name: "good", Status: disdel.StatusSucceeded},
		{Name: "large", Status: disdel.StatusFailed, Failure: &disdel.Error{Kind: disdel.OOM, Msg: "it was too large"}},
	}}
	err := s.Err()
	fmt.Println(err, errors.Is(err, disdel.OOM))
	// Output: run batch: 1 of 2 jobs failed; large: it was too large true
}

func ExampleParseConfig() {
	cfg, err := batch.ParseConfig("loss", 3, 0)
	fmt.Println(cfg.By, cfg.Halving.Factor, err)
	_, err = batch.ParseConfig("luck", 0, 0)
	fmt.Println(err)
	_, err = batch.ParseConfig("", 1, 0)
	fmt.Println(err)
	// Output:
	// loss 3 <nil>
	// jobs are not compared by "luck"
	// halving with a factor of 1 from epoch 0 on is none
}

// A measure has a metric, which knows its direction.
func ExampleMeasure_Metric() {
	of := batch.Measure("rmse").Metric()
	low, high := 12.5, 40.0
	fmt.Println(of.Text(low), of.Rank(&low) < of.Rank(&high))
	p := batch.Point{Loss: &low}
	fmt.Println(*batch.ByLoss.Metric().Value(p.Figures()))
	// Output:
	// RMSE 12.5 true
	// 12.5
}
