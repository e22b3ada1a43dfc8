package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// Handler answers one request of a task.
type Handler func(ctx context.Context, params json.RawMessage) (any, error)

// Probe reads the resident memory and its high-water mark of this process and of others that compute for it.
type Probe func(others ...int) (resident, peak disdel.Bytes)

// Host carries out the tasks of one container. It is for one request at a time, but for inferences, which take turns.
type Host struct {
	turn    chan struct{} // holds a value while an inference has its turn
	probe   Probe
	now     func() time.Time
	warm    bool
	found   int          // processors of the container, before actions choose their threads
	limit   disdel.Bytes // of the container's memory, see Within
	shared  bool         // other hosts are in the process, see Shared
	relaxed bool         // the action is small, its limit far above its estimate: garbage is kept between phases
	tiny    bool         // the collector keeps more garbage, see limitHeap
	shard   shardCache
	built   engineCache
	store   storeCache
	code    programCache
}

// NewHost returns a Host that measures itself with probe and computes with these backends.
func NewHost(probe Probe, backends engine.Table) *Host {
	return &Host{
		turn: make(chan struct{}, 1), probe: probe, now: time.Now, found: runtime.GOMAXPROCS(0),
		built: engineCache{backends: backends},
	}
}

// Memory reads the resident memory of the host and of what it has computing, and its high-water mark. It may be called
// while a task runs.
func (h *Host) Memory() (resident, peak disdel.Bytes) {
	if pid := int(h.built.process.Load()); pid > 0 {
		return h.probe(pid)
	}
	return h.probe()
}

// Within sets the memory limit of the host's container, 0 for none. Probes report it.
func (h *Host) Within(limit disdel.Bytes) { h.limit = limit }

// Shared tells the host that its process holds other hosts, too. It then leaves the garbage collector as it is.
func (h *Host) Shared() { h.shared = true }

// Handlers is the table of tasks.
func (h *Host) Handlers() map[disdel.Task]Handler {
	return map[disdel.Task]Handler{
		disdel.TaskTrain:     handle(h, h.train),
		disdel.TaskAggregate: handle(h, h.aggregate),
		disdel.TaskEvaluate:  handle(h, h.evaluate),
		disdel.TaskInfer:     h.inTurns(handle(h, h.infer)),
		disdel.TaskProbe:     handle(h, h.look),
	}
}

// Close frees what a warm process keeps.
func (h *Host) Close() error {
	h.shard = shardCache{}
	h.store.drop()
	return errors.Join(h.built.drop(), h.code.drop())
}

// inTurns serialises requests: the engine, the heap limit and the number of threads belong to the process. Together the
// requests need the memory of one container.
func (h *Host) inTurns(f Handler) Handler {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		select {
		case h.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		defer func() { <-h.turn }()
		return f(ctx, params)
	}
}

// handle reads the request, runs the task and adds what it used.
func handle[Req, Res any](h *Host, task func(context.Context, *call, Req) (Res, error)) Handler {
	return func(ctx context.Context, params json.RawMessage) (any, error) {
		var req Req
		if err := json.Unmarshal(params, &req); err != nil {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "read request", Err: err,
				Hint: "check that the controller and the action image are of the same version",
			}
		}
		c := &call{
			host: h, warm: h.warm, phases: map[string]disdel.Millis{}, began: readProcessorTime(ownThreads),
		}
		h.warm = true
		res, err := task(ctx, c, req)
		if err != nil {
			h.store.drop()    // the next activation finds out anew whether the store is there
			h.built.abandon() // a failure may have left a program in any state
			return nil, err
		}
		return res, nil
	}
}

// within bounds a task by the budget of its job; 0 is no bound. A train action treats it as its deadline and stores its
// state before; others fail with CodeOverBudget.
func within(ctx context.Context, hold disdel.Millis) (context.Context, context.CancelFunc) {
	if hold <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Duration(hold), &disdel.Error{
		Kind: disdel.Timeout, Code: disdel.CodeOverBudget, Op: "run action",
		Msg: "the job's budget holds no more of it after " + hold.String(),
	})
}

// call is one request being answered.
type call struct {
	host   *Host
	warm   bool
	phases map[string]disdel.Millis
	path   string       // of the engine's kernels
	device disdel.Bytes // of an accelerator, that the engine holds
	began  processorTime
}

// computes sets the engine of the call.
func (c *call) computes(e engine.Engine) {
	c.path, c.device = e.Kernels(), e.Footprint().In(footprint.Device)
}

// phase measures what f takes under name.
func (c *call) phase(name string, f func() error) error {
	start := c.host.now()
	err := f()
	c.phases[name] += disdel.Millis(c.host.now().Sub(start))
	return err
}

func (c *call) usage() disdel.Usage {
	_, peak := c.host.Memory()
	return disdel.Usage{
		Peak: peak, Device: c.device, Phases: c.phases, Warm: c.warm, Found: c.host.found, Kernels: c.path,
		Slowdown: readProcessorTime(ownThreads).slowdownSince(c.began),
	}
}

// setThreads sets the number of processors that a request allows. OpenWhisk limits an action's memory, but on most
// clusters not its processors. Phases that move weights take one thread: with two, the collector would run beside them
// and fall behind.
func setThreads(threads int) {
	if threads > 0 {
		runtime.GOMAXPROCS(threads)
	}
}

// heartbeatEvery is the time between heartbeats: short enough for a live display, long enough to cost nothing.
const heartbeatEvery = 300 * time.Millisecond

// The work waits while a heartbeat is sent. If that takes long there are fewer heartbeats: one in heartbeatShare times
// the duration of the last one, but at least one in heartbeatMost.
const (
	heartbeatShare = 20
	heartbeatMost  = 5 * time.Second
)

// pulse sends heartbeats to the store and learns whether the job was cancelled.
type pulse struct {
	call  *call
	store *aggregator.Store
	job   disdel.JobID
	last  time.Time
	took  time.Duration // the last one
}

// beat sends a heartbeat if one is due. It returns Canceled if the job was stopped. A store that does not answer is no
// error here: the update will fail.
func (p *pulse) beat(ctx context.Context, state disdel.Progress) error {
	now := p.call.host.now()
	if now.Sub(p.last) < max(heartbeatEvery, min(heartbeatShare*p.took, heartbeatMost)) {
		return context.Cause(ctx)
	}
	if p.send(ctx, state) {
		return &disdel.Error{Kind: disdel.Canceled, Op: string(state.Task), Job: p.job, Msg: "the job was stopped"}
	}
	return context.Cause(ctx)
}

// send sends a heartbeat now, and returns whether the job was stopped. It does not wait for a store that does not
// answer.
func (p *pulse) send(ctx context.Context, state disdel.Progress) (stopped bool) {
	ctx, end := context.WithTimeout(ctx, heartbeatMost)
	defer end()
	now := p.call.host.now()
	state.Resident, state.Peak = p.call.host.Memory()
	state.Device = p.call.device
	state.UnixMs = now.UnixMilli()
	cancel, err := p.store.Heartbeat(ctx, p.job, state)
	p.last = p.call.host.now()
	p.took = p.last.Sub(now)
	return err == nil && cancel
}

// How often to check work that sends no heartbeats itself. An action close to its memory limit sends one at once: it
// may be killed before the next one is due, and that heartbeat may be the only evidence.
const (
	lookEvery = 20 * time.Millisecond
	nearLimit = 0.9 // as the executor has it
)

// during sends heartbeats beside the work until stop is called, which waits for the last one.
func (p *pulse) during(ctx context.Context, state disdel.Progress, limit disdel.Bytes) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	var raised any
	go func() {
		defer close(done)
		defer func() { raised = recover() }()
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		warned := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			resident, _ := p.call.host.Memory()
			near := limit > 0 && float64(resident) >= nearLimit*float64(limit)
			if near && !warned {
				p.send(ctx, state)
			} else {
				p.beat(ctx, state) //nolint:errcheck // that the job was stopped, the claim's holder finds out as well
			}
			warned = near
		}
	}()
	return func() {
		end()
		<-done
		if raised != nil { // in the goroutine of its own it would have ended the process
			panic(raised)
		}
	}
}

// processorTime is how long the threads of this process ran, and how long they waited for a processor, both in ns.
type processorTime struct{ ran, waited float64 }

// ownThreads has a folder for each thread of this process.
const ownThreads = "/proc/self/task"

// readProcessorTime reads the schedstat files of the process's threads below a folder like /proc/self/task. The kernel
// documents them in Documentation/scheduler/sched-stats. It is zero where the kernel keeps none.
func readProcessorTime(folder string) (sum processorTime) {
	all, err := os.Open(folder)
	if err != nil {
		return sum
	}
	defer all.Close()
	threads, _ := all.Readdirnames(-1) // unlike filepath.Glob it does not ask for each of them
	for _, thread := range threads {
		var t processorTime
		text, err := os.ReadFile(filepath.Join(folder, thread, "schedstat"))
		if err != nil { // the thread has ended
			continue
		}
		if _, err := fmt.Sscan(string(text), &t.ran, &t.waited); err == nil {
			sum.ran, sum.waited = sum.ran+t.ran, sum.waited+t.waited
		}
	}
	return sum
}

// slowdownSince is by which factor waiting for processors slowed the threads down; 0: unknown.
func (t processorTime) slowdownSince(then processorTime) float64 {
	ran, waited := t.ran-then.ran, t.waited-then.waited
	if ran <= 0 || waited < 0 {
		return 0
	}
	return 1 + waited/ran
}
