package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
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
	var times []float64
	for range 51 {
		begin := time.Now()
		got, _, err := c.Activations.List(&whisk.ActivationListOptions{Limit: 30})
		if err != nil || len(got) != 30 {
			return fmt.Errorf("listed %d of 30: %v", len(got), err)
		}
		times = append(times, ms(begin))
	}
	figure("list_ms", quantile(times, 0.5), "ms")
	return nil
}

func (s *server) hasTriggers() bool {
	status, err := s.send(http.DefaultClient, http.MethodPut, "triggers/fill", "{}")
	return err == nil && status == http.StatusOK
}

func (s *server) fill(n int) error {
	for _, step := range [][3]string{
		{http.MethodPut, "actions/gone", `{"exec":{"kind":"` + disdel.RuntimeKind + `","code":"x","main":"noop"}}`},
		{http.MethodPut, "rules/filling", `{"trigger":"/_/fill","action":"/_/gone"}`},
		{http.MethodDelete, "actions/gone", ""},
	} {
		if status, err := s.send(http.DefaultClient, step[0], step[1], step[2]); err != nil || status != http.StatusOK {
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
		if status, err := s.send(c, http.MethodPost, "triggers/fill", "{}"); err != nil || status != http.StatusAccepted {
			return fmt.Errorf("fire: %d, %v", status, err)
		}
	}
	return nil
}

// send is a request whose answer does not matter.
func (s *server) send(c *http.Client, method, path, body string) (int, error) {
	req, err := http.NewRequest(method, s.host+"/api/v1/namespaces/_/"+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	user, key, _ := strings.Cut(s.key, ":")
	req.SetBasicAuth(user, key)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, drain(res.Body)
}

// drain reads an answer to its end, so that its connection serves again.
func drain(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}
