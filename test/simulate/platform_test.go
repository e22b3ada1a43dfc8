package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

var errKilled = errors.New("the process was killed")

// platform is an OpenWhisk whose containers are goroutines of this process.
type platform struct {
	world *world

	mu         sync.Mutex
	actions    map[string]deployed
	packages   map[string]bool
	records    map[string][]byte // by activation
	idle       map[string][]*container
	all        []*container
	started    int            // activations so far
	containers map[string]int // so far, by the activation that they started for
	running    sync.WaitGroup
	busy       int
	tidy       bool // no activation ran when the job's package was removed, nor has one since
	tidied     time.Time
	disturbed  bool // activations ran when a package was removed: they may write behind the sweep
}

// deployed is an action.
type deployed struct {
	task    disdel.Task
	timeout time.Duration
}

// container is a process that serves an action.
type container struct {
	*process
	host *actions.Host
}

func newPlatform(w *world) *platform {
	return &platform{
		world: w, actions: map[string]deployed{}, packages: map[string]bool{}, records: map[string][]byte{},
		idle:       map[string][]*container{},
		containers: map[string]int{},
	}
}

// caller is the connection of a process to a server of requests: the platform, or the history.
type caller struct {
	from   *process
	answer func(r *http.Request, body []byte) (int, string)
	late   time.Duration                // most of a late request
	kind   func(r *http.Request) string // see process.call

	instant func(r *http.Request) bool // nil: no request takes no time
}

// RoundTrip implements http.RoundTripper.
func (c caller) RoundTrip(r *http.Request) (*http.Response, error) {
	w, name := c.from.world.weather, c.from.name
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	// each request has rolls of its own, whichever of several at once comes first
	name = fmt.Sprintf("%s, %s %s %s", name, r.Method, r.URL.Path, c.from.world.digest(body))
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	delay := w.between(200*time.Microsecond, 3*time.Millisecond, "call "+name)
	if w.strikes(callLate, name) {
		delay = w.between(10*time.Millisecond, c.late, "late "+name)
	}
	done := c.from.call(c.kind(r))
	instant := c.instant != nil && c.instant(r)
	if !instant && !sleep(r.Context(), delay) {
		return nil, r.Context().Err()
	}
	if !c.from.alive() || w.strikes(callLost, name) {
		return nil, reset
	}
	status, answer := http.StatusServiceUnavailable, `{"error":"the controller is busy"}`
	if !w.strikes(callBusy, name) {
		if w.strikes(callTwice, name) {
			c.answer(r, body)
		}
		status, answer = c.answer(r, body)
	}
	done()
	if !instant && !sleep(r.Context(), w.between(200*time.Microsecond, 3*time.Millisecond, "back "+name)) {
		return nil, r.Context().Err()
	}
	if !c.from.alive() || w.strikes(answerLost, name) {
		return nil, reset
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(answer))), Request: r,
	}, nil
}

const missing = `{"error":"The requested resource does not exist.","code":"x"}`

// answer does what a request asks for.
func (p *platform) answer(r *http.Request, body []byte) (int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/_/")
	kind, name, _ := strings.Cut(path, "/")
	switch {
	case kind == "activations":
		if rec, ok := p.records[name]; ok {
			return 200, string(rec)
		}
		return 404, missing
	case kind == "actions" && r.Method == http.MethodPut:
		var a struct {
			Exec   struct{ Main string }
			Limits struct{ Timeout int }
		}
		if err := json.Unmarshal(body, &a); err != nil {
			return 400, `{"error":"bad"}`
		}
		p.actions[name] = deployed{disdel.Task(a.Exec.Main), time.Duration(a.Limits.Timeout) * time.Millisecond}
		return 200, `{}`
	case kind == "actions" && r.Method == http.MethodDelete:
		delete(p.actions, name)
		return 200, `{}`
	case kind == "actions" && r.Method == http.MethodPost:
		return p.invoke(name, body)
	case kind == "packages" && r.Method == http.MethodPut:
		p.packages[name] = true
	case kind == "packages" && r.Method == http.MethodDelete:
		delete(p.packages, name)
		p.tidy, p.tidied = p.busy == 0, time.Now()
		p.disturbed = p.disturbed || p.busy > 0
	case kind == "packages" && r.Method == http.MethodGet:
		return 200, p.listed(name)
	}
	return 200, `{}`
}

// listed is a package with its actions.
func (p *platform) listed(pkg string) string {
	type named struct {
		Name string `json:"name"`
	}
	out := struct {
		Name    string  `json:"name"`
		Actions []named `json:"actions"`
	}{Name: pkg}
	for _, name := range slices.Sorted(maps.Keys(p.actions)) {
		if own, ok := strings.CutPrefix(name, pkg+"/"); ok {
			out.Actions = append(out.Actions, named{own})
		}
	}
	text, _ := json.Marshal(out)
	return string(text)
}

// invoke accepts an activation.
func (p *platform) invoke(action string, params []byte) (int, string) {
	a, ok := p.actions[action]
	if !ok {
		return 404, missing
	}
	p.started++
	id := fmt.Sprintf("%032x", p.started)
	w, what := p.world.weather, action+" "+p.world.digest(params)
	w.note("%s: activation %d accepted", what, p.started)
	if !w.strikes(neverRuns, what) {
		p.run(id, action, a, params, !w.strikes(recordLost, what))
		if w.strikes(runsTwice, what) {
			p.run(id, action, a, params, false)
		}
	}
	return 202, fmt.Sprintf(`{"activationId":%q}`, id)
}

// run starts an activation. The caller holds the lock.
func (p *platform) run(id, action string, a deployed, params []byte, recorded bool) {
	p.busy++
	p.tidy = false
	p.running.Go(func() {
		rec := p.serve(id, action, a, params)
		if recorded {
			w, what := p.world.weather, action+" "+p.world.digest(params)
			delay := w.between(time.Millisecond, 20*time.Millisecond, "record "+what)
			if w.strikes(recordLate, what) {
				delay = w.between(20*time.Millisecond, 10*time.Second, "late "+what)
			}
			time.Sleep(delay)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy--
		if recorded {
			p.records[id] = rec
		}
	})
}

// serve runs an activation in a container and returns its record.
func (p *platform) serve(id, action string, a deployed, params []byte) []byte {
	w, invoked, what := p.world.weather, time.Now(), action+" "+p.world.digest(params)
	time.Sleep(w.between(time.Millisecond, 30*time.Millisecond, "queue "+what))
	c, cold := p.container(action, what)
	r := outcome{id: id, start: time.Now(), queued: time.Since(invoked), cold: cold}
	if w.strikes(startFails, what) {
		c.kill()
		r.fails("action developer error", "The action did not initialize and exited unexpectedly.")
		return r.json()
	}
	ctx, stop := context.WithDeadlineCause(c.ctx, r.start.Add(a.timeout), errKilled)
	defer stop()
	done := make(chan struct{})
	var result any
	var err error
	p.running.Go(func() {
		defer close(done)
		result, err = p.handle(ctx, c, a.task, params)
		if !c.alive() {
			c.host.Close() //nolint:errcheck // it is dead
		}
	})
	end := a.timeout
	dies := w.strikes(containerDies, what)
	if dies {
		end = w.between(0, 3*time.Second, "death "+what)
	}
	t := time.NewTimer(end)
	defer t.Stop()
	select {
	case <-t.C:
		w.note("%s: activation %s ends with its container", action, id)
		c.kill()
		if dies {
			r.fails("action developer error", "The action did not produce a valid response and exited unexpectedly.")
		} else {
			r.timedOut = true
			r.fails("action developer error", fmt.Sprintf("The action exceeded its time limits of %d milliseconds.",
				a.timeout.Milliseconds()))
		}
		return r.json()
	case <-done:
	}
	if !c.alive() {
		r.fails("action developer error", "The action did not produce a valid response and exited unexpectedly.")
		return r.json()
	}
	r.finish(result, err)
	w.note("%s: activation %s ends: %s %.200s", action, id, r.status, r.result)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[action] = append(p.idle[action], c)
	return r.json()
}

// handle answers a request as the runtime of a container does.
func (p *platform) handle(ctx context.Context, c *container, task disdel.Task, params []byte) (any, error) {
	var probe struct {
		Probe bool `json:"probe"`
		Job   string
	}
	if json.Unmarshal(params, &probe) == nil && probe.Probe && probe.Job == "" {
		return map[string]any{}, nil
	}
	return c.host.Handlers()[task](aggregator.WithDialer(c.shelf(ctx), c.dial), params)
}

// container is an idle container of an action, or a new one.
func (p *platform) container(action, what string) (c *container, cold bool) {
	p.mu.Lock()
	if n := len(p.idle[action]); n > 0 {
		c, p.idle[action] = p.idle[action][n-1], p.idle[action][:n-1]
		p.mu.Unlock()
		return c, false
	}
	p.containers[what]++
	name := fmt.Sprintf("container %d of %s", p.containers[what], what)
	p.mu.Unlock()
	time.Sleep(p.world.weather.between(50*time.Millisecond, 600*time.Millisecond, name))
	table := engine.Table{Backends: []engine.Backend{slowBackend{weather: p.world.weather, name: name}}}
	c = &container{p.world.process(name), actions.NewHost(memory, table)}
	c.host.Shared()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, c)
	return c, true
}

// close waits for all activations and ends all containers.
func (p *platform) close() {
	p.running.Wait()
	for _, c := range p.all {
		c.kill()
		c.host.Close() //nolint:errcheck // nothing is left to lose
	}
}

// memory is what a container measures.
func memory(...int) (resident, peak disdel.Bytes) {
	return 40 * disdel.MB, 50 * disdel.MB
}

// outcome is what the record of an activation tells.
type outcome struct {
	id       string
	start    time.Time
	queued   time.Duration
	cold     bool
	timedOut bool
	status   string
	result   []byte
}

func (o *outcome) fails(status, text string) {
	o.status = status
	o.result, _ = json.Marshal(map[string]string{"error": text})
}

func (o *outcome) finish(result any, err error) {
	if err != nil {
		o.status = "application error"
		o.result, _ = json.Marshal(map[string]any{"error": disdel.AsError(err)})
		return
	}
	text, err := json.Marshal(result)
	if o.status, o.result = "success", text; err != nil {
		o.fails("action developer error", "the result cannot be written as JSON")
	}
}

func (o *outcome) json() []byte {
	type annotation struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	notes := []annotation{{"waitTime", o.queued.Milliseconds()}, {"timeout", o.timedOut}}
	if o.cold {
		notes = append(notes, annotation{"initTime", 50})
	}
	now := time.Now()
	text, _ := json.Marshal(map[string]any{
		"activationId": o.id, "start": o.start.UnixMilli(), "end": now.UnixMilli(),
		"duration": now.Sub(o.start).Milliseconds(), "logs": []string{}, "annotations": notes,
		"response": map[string]any{
			"status": o.status, "success": o.status == "success", "result": json.RawMessage(o.result),
		},
	})
	return text
}

// slowBackend is the native one, whose steps take virtual time.
type slowBackend struct {
	native.Backend
	weather *weather
	name    string
}

// New implements engine.Backend.
func (b slowBackend) New(s engine.Spec) (engine.Engine, error) {
	e, err := b.Backend.New(s)
	if err != nil {
		return nil, err
	}
	return slowEngine{e, b}, nil
}

type slowEngine struct {
	engine.Engine
	backend slowBackend
}

// Step implements engine.Engine.
func (e slowEngine) Step(b dataset.Batch) (disdel.Metrics, error) {
	w := e.backend.weather
	d := w.between(5*time.Millisecond, 120*time.Millisecond, "step "+e.backend.name)
	if w.strikes(slowStep, e.backend.name) {
		d = w.between(time.Second, 8*time.Second, "slow "+e.backend.name)
	}
	time.Sleep(d)
	return e.Engine.Step(b)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
