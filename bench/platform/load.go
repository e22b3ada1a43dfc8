package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

const (
	crowdClients = 200
	calls        = 50 // of each client
	crowdedPool  = "768MB"
	crowdMemory  = 128 // MB of an action: six containers for two hundred clients
	settleWithin = time.Minute
)

// The crowd's task, and how its activations end.
const (
	crowdTask = "crowd"
	endsWell  = "answer"
	endsBadly = "refuse"
	endsDead  = "die"
)

// crowdAction is the action of activation n: one in ten is of another, so that their containers push each other out.
func crowdAction(n int) string { return fmt.Sprintf("crowd%d", min(1, n%10)) }

// crowdEnd is how activation n is to end. A death costs a start, so that they are few.
func crowdEnd(n int) string {
	switch {
	case n%10 == 5:
		return endsBadly
	case n%40 == 3:
		return endsDead
	default:
		return endsWell
	}
}

// crowd takes the figures of a platform whose pool is too small for its clients.
func crowd(program, action string) error {
	s, err := start(program, action, "--pool-memory", crowdedPool)
	if err != nil {
		return err
	}
	return errors.Join(s.crowded(), s.Close())
}

// crowded is what many clients get of a pool that is too small for them: results, records and logs that are lost or
// another's, and what is left when they have gone.
func (s *server) crowded() error {
	c, err := s.client()
	if err != nil {
		return err
	}
	for i := range 2 {
		if err := create(c, crowdAction(i), crowdTask); err != nil {
			return err
		}
	}
	var lost, wrong atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, crowdClients)
	for i := range crowdClients {
		all.Go(func() {
			c, err := s.client()
			for n := 0; n < calls && err == nil; n++ {
				err = s.oneOfACrowd(c, i*calls+n, &lost, &wrong)
			}
			errs[i] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	rig.Figure("crowd_lost", float64(lost.Load()), "activations of 10000")
	rig.Figure("crowd_wrong", float64(wrong.Load()), "activations of 10000")
	return s.leaks()
}

// oneOfACrowd invokes an action with a number of its own and looks for it in the result, the record and the log.
func (s *server) oneOfACrowd(c *whisk.Client, n int, lost, wrong *atomic.Int64) error {
	_, res, err := c.Actions.Invoke(crowdAction(n), map[string]any{"number": n, "end": crowdEnd(n)}, true, false)
	if res == nil {
		return fmt.Errorf("invoke: %w", err)
	}
	record, err := await(c, res.Header.Get("X-Openwhisk-Activation-Id"))
	if err != nil {
		lost.Add(1)
		return nil
	}
	if !isOf(record, n) {
		wrong.Add(1)
		fmt.Fprintf(os.Stderr, "bench: %s %d: %s %v %q\n", crowdEnd(n), n, record.Response.Status, record.Response.Result,
			record.Logs)
	}
	return nil
}

// await reads a record, which a blocking invocation that was not waited for to its end may not have yet.
func await(c *whisk.Client, id string) (*whisk.Activation, error) {
	for end := time.Now().Add(settleWithin); ; time.Sleep(10 * time.Millisecond) {
		record, res, err := c.Activations.Get(id)
		if err == nil {
			return record, nil
		}
		if res == nil || res.StatusCode != http.StatusNotFound || time.Now().After(end) {
			return nil, err
		}
	}
}

// isOf tells whether a record is that of activation n.
func isOf(record *whisk.Activation, n int) bool {
	text, err := json.Marshal(record.Response.Result)
	if err != nil {
		return false
	}
	own := fmt.Sprintf(`"number":%d`, n)
	log := strings.Join(record.Logs, "\n")
	switch crowdEnd(n) {
	case endsWell:
		return record.Response.Success && strings.Contains(string(text), own) && strings.Count(log, "number ") == 1 &&
			strings.HasSuffix(log, fmt.Sprintf("number %d", n))
	case endsBadly:
		return record.Response.Status == "application error" && strings.Contains(string(text), fmt.Sprintf("number %d", n))
	default:
		return record.Response.Status == "action developer error" && strings.Contains(string(text), "exited unexpectedly")
	}
}

// leaks counts what is left once nobody calls any more: activations that still run or wait, and folders, processes and
// memory beside those of the containers that stay warm.
func (s *server) leaks() error {
	folders := filepath.Join(os.TempDir(), fmt.Sprintf("disdel-%d-*", s.PID), "c-*")
	for end := time.Now().Add(settleWithin); ; time.Sleep(100 * time.Millisecond) {
		status, err := s.Status()
		if err != nil {
			return err
		}
		pool := status.Pool
		warm := pool.Ready + pool.Paused
		own, _ := filepath.Glob(folders) // the pattern is well-formed
		left := pool.Running + pool.Queued + max(0, len(own)-warm) + max(0, len(s.children())-warm-guards) +
			max(0, int(pool.UsedBytes/disdel.MB)/crowdMemory-warm)
		if left == 0 || time.Now().After(end) {
			rig.Figure("crowd_leaked", float64(left), "activations, processes, folders")
			return nil
		}
	}
}

// guards are the processes of a platform's own: one that outlives it by a moment.
const guards = 1
