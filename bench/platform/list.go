package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// list is the last 30 of many stored activations. The store is filled by firing a trigger whose rule leads to an action
// that is gone: each leaves a record, and no container runs.
func (s *server) list(activations int) error {
	if !s.hasTriggers() {
		fmt.Fprintln(os.Stderr, "bench: list_ms is missing: this platform has no triggers to fill its store with")
		return nil
	}
	if err := s.fill(activations); err != nil {
		return err
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	times, err := rig.Times(51, func() error {
		got, _, err := c.Activations.List(&whisk.ActivationListOptions{Limit: 30})
		if err != nil || len(got) != 30 {
			return fmt.Errorf("listed %d of 30: %v", len(got), err)
		}
		return nil
	})
	if err == nil {
		rig.Figure("list_ms", rig.Median(times), "ms")
	}
	return err
}

func (s *server) hasTriggers() bool {
	status, err := s.Send(context.Background(), http.DefaultClient, http.MethodPut, "triggers/fill", "{}")
	return err == nil && status == http.StatusOK
}

func (s *server) fill(n int) error {
	for _, step := range [][3]string{
		{http.MethodPut, "actions/gone", `{"exec":{"kind":"` + disdel.RuntimeKind + `","code":"x","main":"noop"}}`},
		{http.MethodPut, "rules/filling", `{"trigger":"/_/fill","action":"/_/gone"}`},
		{http.MethodDelete, "actions/gone", ""},
	} {
		status, err := s.Send(context.Background(), http.DefaultClient, step[0], step[1], step[2])
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("%s %s: %d, %v", step[0], step[1], status, err)
		}
	}
	var all sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		all.Go(func() { errs[i] = s.fire(n / clients) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *server) fire(times int) error {
	c := &http.Client{Transport: &http.Transport{}}
	for range times {
		status, err := s.Send(context.Background(), c, http.MethodPost, "triggers/fill", "{}")
		if err != nil || status != http.StatusAccepted {
			return fmt.Errorf("fire: %d, %v", status, err)
		}
	}
	return nil
}
