// Package service runs jobs: many at once, each with a handle of its own to watch it, stop it and wait for its end.
//
// It is the one place that wires the house together, and what a Go program imports. The command line is a caller like
// any other: no flag, no terminal and no global is read here. What a Config leaves out is embedded: an OpenWhisk, a
// Redis and a history that speak the protocols of the real ones and live as long as the Service.
//
//	s, err := service.Open(ctx, service.Config{Home: dir})
//	run, err := s.Submit(ctx, service.Request{Job: job}) // acknowledged: its record is durable
//	for event := range run.Events() { ... }              // typed, numbered, with the job's id
//	record, err := run.Wait(ctx)
//
// Who runs a job is kept with its record, as a lease: it is renewed while the job runs, and another process, wherever
// it is, may take the job up once it has expired, or at once where the owner was a process of this machine that is no
// more.
//
// A job that failed is no error of this package: its record says so. It refuses what does not fit (OverLimit), what is
// run already (Conflict) and what has no room (NoSpace), before anything runs. Invariant: an acknowledged job has a
// record in the history, and its end is in the history or, where that is away, in Home until it is back.
package service
