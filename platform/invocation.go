package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/disdel/disdel"
)

// invoked is the body of a response that carries nothing but the activation's id.
type invoked struct {
	ID string `json:"activationId"`
}

// running is an activation on its way.
type running struct {
	id       string
	user     *user // who invoked it, in whose namespace the record is kept
	action   *action
	params   json.RawMessage   // an object or an array
	binding  string            // the binding it was invoked through, if any
	cause    string            // the sequence's activation it is part of, if any
	depth    int               // of sequences it is within
	count    *compositionCount // of the composition that it is within; nil: none
	turn     bool              // it is a conductor's turn within its composition
	received time.Time
	done     chan struct{}
	record   *activation // set when done is closed
	ended    func()      // before done is closed

	noting sync.Mutex
	noted  bool // it is written down, as accepted or as ended
}

func (p *Platform) invoke(q *request) (int, any, error) {
	if q.PathValue("pkg") == "" && !q.own() {
		return 0, nil, errForbidden(q.resource())
	}
	wait, err := p.waitOf(q)
	if err != nil {
		return 0, nil, err
	}
	payload, err := p.payload(q)
	if err != nil {
		return 0, nil, err
	}
	blocking := flag(q.Request, "blocking")
	run, err := p.start(q.user, q.actionPath(), payload, blocking)
	if err != nil {
		return 0, nil, err
	}
	if !blocking {
		return httpRunning, answer{run.id, invoked{run.id}}, nil
	}
	return p.wait(run, q, wait)
}

// waitOf is how long a blocking request wants to wait.
func (p *Platform) waitOf(q *request) (time.Duration, error) {
	text := q.URL.Query().Get("timeout")
	if text == "" {
		return p.cfg.BlockingWait, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if most := max(p.cfg.BlockingWait, time.Minute); err != nil || ms <= 0 || ms > most.Milliseconds() {
		return 0, errQueryTimeout(most)
	}
	return min(p.cfg.BlockingWait, time.Duration(ms)*time.Millisecond), nil
}

// payload reads the parameters of an invocation: an object, or nothing.
func (p *Platform) payload(q *request) (json.RawMessage, error) {
	data, err := readBody(q.Request, p.cfg.Limits.Payload)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return json.RawMessage("{}"), nil
	}
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	if data[0] != '{' {
		return nil, errNotAnObject
	}
	return data, nil
}

// start starts an action for a user, if his throttle allows. quiet is as begin has it.
func (p *Platform) start(u *user, path pathName, payload json.RawMessage, quiet bool) (*running, error) {
	if err := p.unfiled.stuck(); err != nil { // before anything is looked for
		return nil, err
	}
	found, err := p.find(u, path)
	if err != nil {
		return nil, err
	}
	if found.final() && found.overrides(payload) {
		return nil, errParameterSet
	}
	return p.begin(u, found, payload, quiet)
}

// begin starts an action that was found, if its user's throttle allows. A quiet one is that of a request that waits for
// its end: as nobody knows of it before, it is not written down at once that it was accepted.
func (p *Platform) begin(u *user, found *resolved, payload json.RawMessage, quiet bool) (*running, error) {
	if err := p.unfiled.stuck(); err != nil {
		return nil, err
	}
	params, err := found.arguments(payload)
	if err != nil {
		return nil, err
	}
	if err := u.admit(time.Now(), p.cfg.CountRefused); err != nil {
		return nil, err
	}
	run := p.newRun(u, found, params, "")
	run.ended = func() { p.releaseSlot(u) }
	if !quiet {
		if err := p.note(run); err != nil {
			u.invocations.release()
			return nil, err
		}
	}
	p.flying.Go(func() { p.carryOut(run, p.cfg.Limits.SequenceLength) })
	return run, nil
}

func (p *Platform) newRun(u *user, found *resolved, params json.RawMessage, cause string) *running {
	a := found.action
	if ns, _, _ := (pathName{a.Namespace, a.Name}).split(); ns != u.Name {
		foreign := *a
		foreign.invoker = u.Name // its containers are not shared between namespaces
		a = &foreign
	}
	return &running{
		id: newActivationID(), user: u, action: a, params: params, binding: found.binding, cause: cause,
		received: time.Now(), done: make(chan struct{}), ended: func() {},
	}
}

// carryOut runs an action or a sequence to its end; left is how many more actions the outermost sequence may run.
func (p *Platform) carryOut(run *running, left int) int {
	switch {
	case run.action.Exec.Kind == sequenceKind:
		return p.runSequence(run, left)
	case run.conducted():
		p.runConductor(run)
	default:
		p.execute(run)
	}
	return left - 1
}

// note writes down that an activation was accepted, if it is not known to have ended.
func (p *Platform) note(run *running) error {
	run.noting.Lock()
	defer run.noting.Unlock()
	if run.noted || p.accepted == nil {
		return nil
	}
	run.noted = true
	return unwritable(p.accepted.add(run.lost()))
}

// file keeps the record of an ended activation and lets those go on who wait for it.
func (p *Platform) file(run *running, record *activation) {
	run.noting.Lock()
	run.noted = true
	run.noting.Unlock()
	p.keep(record)
	p.counters.count(record)
	run.record = record
	run.ended()
	close(run.done)
}

// arguments lays a payload over the parameters: package, binding, action, request. An array replaces them, and a
// sequence has none.
func (v *resolved) arguments(payload json.RawMessage) (json.RawMessage, error) {
	if payload[0] == '[' || v.Exec.Kind == sequenceKind { // its components have parameters of their own
		return payload, nil
	}
	params := map[string]json.RawMessage{}
	addParameters(params, v.inherited)
	addParameters(params, v.Parameters)
	if len(params) == 0 {
		return payload, nil
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal(payload, &args); err != nil {
		return nil, errMalformed(err.Error())
	}
	maps.Copy(params, args)
	return json.Marshal(params)
}

// final tells whether requests may not set what the action has parameters for.
func (v *resolved) final() bool {
	return annotated(v.Annotations, "final")
}

// overrides tells whether a request sets a parameter that has a value. Components of a sequence may: their input is no
// request's.
func (v *resolved) overrides(payload json.RawMessage) bool {
	var args map[string]json.RawMessage
	if json.Unmarshal(payload, &args) != nil {
		return false // an array sets none
	}
	return slices.ContainsFunc(mergeParameters(v.inherited, v.Parameters), func(own keyValue) bool {
		_, set := args[own.Key]
		return set && defined(own.Value)
	})
}

// defined is what `final` protects: a parameter with a value.
func defined(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" && string(v) != `""` }

func addParameters(to map[string]json.RawMessage, list []keyValue) {
	for _, v := range list {
		if !v.Init { // those are environment of the container
			to[v.Key] = v.Value
		}
	}
}

// quietFor is how long a request may wait for an activation that is not written down: then it counts as accepted. One
// that is lost before is an activation that nobody has heard of.
const quietFor = 100 * time.Millisecond

// await waits for an activation's end, and tells whether it came in time. Where it did not, the activation is written
// down, as its id is going to be told. A disk that takes no line for it will take no record either: that is kept in
// memory when it comes, and nothing is accepted from then on.
func (p *Platform) await(ctx context.Context, run *running, wait time.Duration) (ended bool) {
	begun := time.Now()
	timer := time.NewTimer(min(wait, quietFor))
	defer timer.Stop()
	for {
		select {
		case <-run.done:
			return true
		case <-ctx.Done():
			p.note(run) //nolint:errcheck // see above
			return false
		case <-timer.C:
		}
		p.note(run) //nolint:errcheck // see above
		left := wait - time.Since(begun)
		if left <= 0 {
			return false
		}
		timer.Reset(left)
	}
}

// wait answers a blocking request: with the record, or with the id once the wait is over.
func (p *Platform) wait(run *running, q *request, wait time.Duration) (int, any, error) {
	if !p.await(q.Context(), run, wait) {
		return httpRunning, answer{run.id, invoked{run.id}}, nil
	}
	status := blockingStatus[run.record.Response.Status]
	if result := run.record.Response.Result; flag(q.Request, "result") || len(result) > 0 && result[0] == '[' {
		return status, answer{run.id, result}, nil // an array is answered bare in any case
	}
	if run.action.Exec.Kind == sequenceKind || run.conducted() { // its logs are known by now: the ids of what it ran
		return status, answer{run.id, run.record}, nil
	}
	return status, answer{run.id, run.record.withoutLogs()}, nil
}

// execute gets a container, runs the activation in it and files the record.
func (p *Platform) execute(run *running) {
	p.file(run, p.attempt(run))
}

// maxReschedules bounds how often a container may answer 503, "give it to another".
const maxReschedules = 3

func (p *Platform) attempt(run *running) *activation {
	if _, ok := p.cfg.runsAs(&run.action.Exec); !ok {
		return p.record(run, nil, ending{status: statusDeveloper, text: textImageMissing(run.action.Exec.Image)})
	}
	for try := 0; ; try++ {
		s, err := p.pool.acquire(p.work, run.action)
		switch {
		case err != nil:
			return p.record(run, nil, ending{status: statusInternal, text: textStartFailed})
		case s.failed != nil:
			return p.record(run, nil, *s.failed)
		}
		if err := p.furnish(s); err != nil {
			return p.record(run, nil, ending{status: statusInternal, text: textStartFailed})
		}
		end := p.runIn(s, run)
		rec := p.record(run, s, end)
		if p.pool.leave(s, end.keep() && p.work.Err() == nil) {
			s.container.kill()
			p.pool.abandon(s)
		}
		if end.reschedule && try < maxReschedules {
			continue
		}
		return rec
	}
}

// furnish starts the container of a place that has none yet.
func (p *Platform) furnish(s *seat) error {
	if s.container != nil {
		return nil
	}
	c, err := p.startWith(p.cfg.sizeOf(s.action), s.part)
	if err != nil {
		p.pool.unopened(s, &ending{status: statusInternal, text: textStartFailed})
		p.pool.abandon(s)
		return err
	}
	c.action = s.action
	p.pool.started(s, c)
	return nil
}

// ending is how an activation ended.
type ending struct {
	status     string
	result     json.RawMessage // of success and application errors
	text       string          // of the others
	start      time.Time
	end        time.Time
	initTime   time.Duration // cold only
	cold       bool
	timedOut   bool
	died       bool // the container's process went away
	reschedule bool
	logs       []string
	size       int // of the container's answer in characters, as the invoker counts; 0: it gave none
}

// keep tells whether the container may serve again: OpenWhisk destroys it after a developer or an internal error.
func (e *ending) keep() bool { return e.status == statusSuccess || e.status == statusApplication }

func (p *Platform) runIn(s *seat, run *running) (end ending) {
	c := s.container
	journal := c.logs.begin(run.id, run.action.Limits.Logs)
	defer func() {
		end.end = time.Now()
		end.logs = c.collect(journal, &end)
		p.pool.unopened(s, &end)
		p.dwell(&end)
	}()
	end.start = time.Now()
	limit := time.Duration(run.action.Limits.Timeout) * time.Millisecond
	if !c.initialized {
		end.cold = true
		if s.room > 1 {
			c.logs.share()
		}
		got, err := c.post(p.work, "/init", p.initBody(run, s.room), limit)
		end.initTime = time.Since(end.start)
		if done := p.initEnding(c, got, err, limit, &end); done {
			return end
		}
		c.initialized = true
		if endsSilently(got.body) {
			c.logs.hush()
		}
		p.pool.opened(s)
	}
	got, err := c.ask(p.work, "/run", p.runBody(run, limit), limit)
	p.runEnding(c, got, err, limit, &end)
	return end
}

// initEnding says how a failed /init ends the activation; done is false where it went well.
func (p *Platform) initEnding(c *container, got reply, err error, limit time.Duration, end *ending) (done bool) {
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, true))
	case err != nil:
		end.died = true
		end.developerError(p.death(c, textAbnormalInit))
		p.refuseInit(end, limit)
	case got.status == http.StatusServiceUnavailable:
		end.developerError(textInvalidInit(got.body))
		end.reschedule = true
	case got.status != http.StatusOK:
		end.size = characters(got.body)
		end.ownError(got.body, textInvalidInit(got.body))
	default:
		return false
	}
	return true
}

// runEnding reads the answer of /run as ActivationResult.processRunResponseContent does.
func (p *Platform) runEnding(c *container, got reply, err error, limit time.Duration, end *ending) {
	got.body = inUTF8(got.body)
	trimmed := bytes.TrimSpace(got.body)
	if err == nil {
		end.size = characters(got.body)
	}
	object := len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) &&
		!tooDeep(trimmed)
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, false))
	case err != nil:
		end.died = true
		end.developerError(p.death(c, textAbnormalRun))
		end.reschedule = p.repeats(end)
	case got.status == http.StatusServiceUnavailable:
		end.developerError(textInvalidResponse(got.body))
		end.reschedule = true
	case disdel.Bytes(got.length) > p.cfg.Limits.Payload:
		end.applicationError(textResultTooLarge(int(got.length), p.cfg.Limits.Payload, got.body))
	case got.status != http.StatusOK:
		end.ownError(got.body, textInvalidResponse(got.body))
	case !object:
		end.developerError(textInvalidResponse(got.body))
	default:
		end.status, end.result = statusSuccess, trimmed
		if e := errorIn(trimmed); e != nil {
			end.status, end.result = statusApplication, e
		}
	}
}

// characters is the length of a text in UTF-16, which is what Java's strings have.
func characters(body []byte) (n int) {
	for _, c := range string(body) {
		n += utf16.RuneLen(c)
	}
	return n
}

// errorIn is the error alone of an object that has one, whatever JSON it is; the other fields are dropped.
func errorIn(body []byte) json.RawMessage {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || len(e.Error) == 0 {
		return nil
	}
	result, _ := json.Marshal(e)
	return result
}

// ownError is a developer error in the container's own words, where it has any.
func (e *ending) ownError(body []byte, otherwise string) {
	e.developerError(otherwise)
	if own := errorIn(body); own != nil {
		e.text, e.result = "", own
	}
}

func (e *ending) developerError(text string) { e.status, e.text = statusDeveloper, text }

func (e *ending) applicationError(text string) {
	e.status = statusApplication
	e.result, _ = json.Marshal(map[string]string{"error": text})
}

// death tells why a container's process went away.
func (p *Platform) death(c *container, otherwise string) string {
	memory := c.exhausted()
	if c.overflowed() {
		return textFolder(p.cfg.FolderMB)
	}
	if memory && p.cfg.saysMemory() {
		return textMemoryExhausted
	}
	return otherwise
}

// once closes a channel at most once.
type once struct {
	sync.Once
	c chan struct{}
}

func newOnce() *once { return &once{c: make(chan struct{})} }

func (o *once) close() { o.Do(func() { close(o.c) }) }

func isTimeout(err error) bool { return err == context.DeadlineExceeded }
