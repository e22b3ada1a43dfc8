// Package service runs training jobs, many at once. A Go program that uses disdel imports it: [Open] opens a [Service],
// [Service.Submit] submits a job, and the [Run] that it returns is used to watch the job, stop it and wait for its end.
//
// This package reads no flag, terminal or global variable. [Open] starts an embedded OpenWhisk, Redis or history for
// each server that [Config] does not name. These speak the protocols of the real servers and end with the Service.
//
//	s, err := service.Open(ctx, service.Config{Home: dir})
//	run, err := s.Submit(ctx, service.Request{Job: job}) // acknowledged: its record is durable
//	for event := range run.Events() { ... }              // typed, numbered, with the job's id
//	record, err := run.Wait(ctx)
//
// Its parts are packages: queue (when a job gets room), lease (which process runs it), tenant (who may use a server)
// and infer (requests to trained models).
//
// A failure of a job is no error of this package: its record says so. Before anything runs, the package refuses a job
// that does not fit (OverLimit), that is running already (Conflict) or for which the disk is full (NoSpace). Invariant:
// an acknowledged job has a record in the history; its end is in the history or, while that does not answer, in Home.
package service
