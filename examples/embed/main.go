// Command embed trains two models at once in one process, and prints what happens to either job.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

//go:embed job.yaml
var job []byte

func main() {
	ctx := context.Background()
	// The embedded platform starts this very program as its containers.
	if served, err := service.ServeActions(ctx, os.Args); served {
		log.Fatal(err)
	}
	home, err := os.MkdirTemp("", "embed-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if err := s.AddDigits(ctx); err != nil {
		log.Fatal(err)
	}
	var jobs sync.WaitGroup
	for _, seed := range []string{"1", "2"} {
		jobs.Go(func() { train(ctx, s, "model.init.seed="+seed) })
	}
	jobs.Wait()
}

// train runs a job to its end.
func train(ctx context.Context, s *service.Service, set string) {
	file, err := jobfile.Parse("job.yaml", job, []string{set})
	if err != nil {
		log.Fatal(err)
	}
	run, err := s.Submit(ctx, service.Request{Job: file.Job})
	if err != nil {
		log.Fatal(err)
	}
	for event := range run.Events() {
		fmt.Println(event)
	}
}
