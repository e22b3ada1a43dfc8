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

// activationIDBody is the body of an answer that has only the activation's id.
type activationIDBody struct {
	ID string `json:"activationId"`
}

// running is an activation from its acceptance to its record.
type running struct {
	id           string
	user         *user // who invoked it, and whose namespace gets the record
	action       *action
	params       json.RawMessage   // an object or an array
	binding      string            // the binding that it was invoked through; "": none
	cause        string            // id of the sequence's activation; "": none
	depth        int               // nesting of sequences
	count        *compositionCount // of the composition that it is part of; nil: none
	conductorRun bool              // a conductor's run within its composition
	received     time.Time
	done         chan struct{}
	record       *activation // set when done is closed
	onEnd        func()      // called before done is closed

	noteMu sync.Mutex
	noted  bool // the accepted log has a line of it
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
		return httpRunning, withActivationID{run.id, activationIDBody{run.id}}, nil
	}
	return p.wait(run, q, wait)
}

// waitOf is how long a blocking request waits.
func (p *Platform) waitOf(q *request) (time.Duration, error) {
	text := q.URL.Query().Get("timeout")
	if text == "" {
		return p.cfg.BlockingWait, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if maximum := max(p.cfg.BlockingWait, time.Minute); err != nil || ms <= 0 || ms > maximum.Milliseconds() {
		return 0, errQueryTimeout(maximum)
	}
	return min(p.cfg.BlockingWait, time.Duration(ms)*time.Millisecond), nil
}

// payload reads the parameters of an invocation; no body means {}.
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

// start invokes an action if the user's throttle allows it. quiet is as in begin.
func (p *Platform) start(u *user, path pathName, payload json.RawMessage, quiet bool) (*running, error) {
	if err := p.pending.writeError(); err != nil { // before anything is read
		return nil, err
	}
	found, err := p.findAction(u, path)
	if err != nil {
		return nil, err
	}
	if found.isFinal() && found.setsParameter(payload) {
		return nil, errParameterSet
	}
	return p.begin(u, found, payload, quiet)
}

// begin invokes an action that was found, if the user's throttle allows it. If quiet is set, the request waits for the
// end, so nobody knows the activation yet and the accepted log needs no line at once.
func (p *Platform) begin(u *user, found *resolved, payload json.RawMessage, quiet bool) (*running, error) {
	if err := p.pending.writeError(); err != nil {
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
	run.onEnd = func() { p.releaseSlot(u) }
	if !quiet {
		if err := p.noteAccepted(run); err != nil {
			u.invocations.release()
			return nil, err
		}
	}
	p.runs.Go(func() { p.runAction(run, p.cfg.Limits.SequenceLength) })
	return run, nil
}

func (p *Platform) newRun(u *user, found *resolved, params json.RawMessage, cause string) *running {
	a := found.action
	if ns, _, _ := (pathName{a.Namespace, a.Name}).split(); ns != u.Name {
		foreign := *a
		foreign.invoker = u.Name // namespaces do not share containers
		a = &foreign
	}
	return &running{
		id: newActivationID(), user: u, action: a, params: params, binding: found.binding, cause: cause,
		received: time.Now(), done: make(chan struct{}), onEnd: func() {},
	}
}

// runAction runs an action or a sequence to its end. remaining is how many more actions the outermost sequence may run,
// and so is the result.
func (p *Platform) runAction(run *running, remaining int) int {
	switch {
	case run.action.Exec.Kind == sequenceKind:
		return p.runSequence(run, remaining)
	case run.isConductor():
		p.runConductor(run)
	default:
		p.execute(run)
	}
	return remaining - 1
}

// noteAccepted writes the line of an accepted activation to the log, unless the activation has ended.
func (p *Platform) noteAccepted(run *running) error {
	run.noteMu.Lock()
	defer run.noteMu.Unlock()
	if run.noted || p.accepted == nil {
		return nil
	}
	run.noted = true
	return diskError(p.accepted.add(run.lostRecord()))
}

// finishRun saves the record of an ended activation and wakes those who wait for it.
func (p *Platform) finishRun(run *running, record *activation) {
	run.noteMu.Lock()
	run.noted = true
	run.noteMu.Unlock()
	p.saveRecord(record)
	p.counters.count(record)
	run.record = record
	run.onEnd()
	close(run.done)
}

// arguments merges the parameters of package, binding, action and request, in this order. An array replaces all of
// them. A sequence takes the payload as it is.
func (v *resolved) arguments(payload json.RawMessage) (json.RawMessage, error) {
	if payload[0] == '[' || v.Exec.Kind == sequenceKind { // its components add their own parameters
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

// isFinal tells whether requests may not set the action's own parameters.
func (v *resolved) isFinal() bool {
	return isAnnotationSet(v.Annotations, "final")
}

// setsParameter tells whether a request sets a parameter that the action has a value for. Components of sequences may,
// because their input does not come from a request.
func (v *resolved) setsParameter(payload json.RawMessage) bool {
	var args map[string]json.RawMessage
	if json.Unmarshal(payload, &args) != nil {
		return false // an array sets no parameter
	}
	return slices.ContainsFunc(mergeParameters(v.inherited, v.Parameters), func(own keyValue) bool {
		_, set := args[own.Key]
		return set && hasValue(own.Value)
	})
}

// hasValue tells whether a parameter has a value that the annotation final protects.
func hasValue(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" && string(v) != `""` }

func addParameters(to map[string]json.RawMessage, list []keyValue) {
	for _, v := range list {
		if !v.Init { // init parameters are in the container's environment
			to[v.Key] = v.Value
		}
	}
}

// noteAfter is how long a blocking request may wait before the accepted log gets a line of its activation. An
// activation that is lost earlier is one that nobody knows.
const noteAfter = 100 * time.Millisecond

// await waits for an activation's end and tells whether it came in time. If not, the accepted log gets a line, because
// the client gets the id. If that write fails, the record will fail too, stays in memory, and stops new invocations.
func (p *Platform) await(ctx context.Context, run *running, wait time.Duration) (ended bool) {
	begun := time.Now()
	timer := time.NewTimer(min(wait, noteAfter))
	defer timer.Stop()
	for {
		select {
		case <-run.done:
			return true
		case <-ctx.Done():
			p.noteAccepted(run) //nolint:errcheck // see above
			return false
		case <-timer.C:
		}
		p.noteAccepted(run) //nolint:errcheck // see above
		remaining := wait - time.Since(begun)
		if remaining <= 0 {
			return false
		}
		timer.Reset(remaining)
	}
}

// wait answers a blocking request: with the record, or with the id if the wait is over.
func (p *Platform) wait(run *running, q *request, wait time.Duration) (int, any, error) {
	if !p.await(q.Context(), run, wait) {
		return httpRunning, withActivationID{run.id, activationIDBody{run.id}}, nil
	}
	status := blockingStatus[run.record.Response.Status]
	if result := run.record.Response.Result; flag(q.Request, "result") || len(result) > 0 && result[0] == '[' {
		return status, withActivationID{run.id, result}, nil // an array is always answered without the record
	}
	// the logs of these are the ids of their components, which are known
	if run.action.Exec.Kind == sequenceKind || run.isConductor() {
		return status, withActivationID{run.id, run.record}, nil
	}
	return status, withActivationID{run.id, run.record.withoutLogs()}, nil
}

// execute runs an activation in a container and saves its record.
func (p *Platform) execute(run *running) {
	p.finishRun(run, p.attempt(run))
}

// maxReschedules bounds how often an activation whose container answers 503 gets another container.
const maxReschedules = 3

func (p *Platform) attempt(run *running) *activation {
	if _, ok := p.cfg.kindOf(&run.action.Exec); !ok {
		return p.record(run, nil, activationEnd{status: statusDeveloper, text: textImageMissing(run.action.Exec.Image)})
	}
	for try := 0; ; try++ {
		s, err := p.pool.acquire(p.work, run.action)
		switch {
		case err != nil:
			return p.record(run, nil, activationEnd{status: statusInternal, text: textStartFailed})
		case s.failed != nil:
			return p.record(run, nil, *s.failed)
		}
		if err := p.ensureContainer(s); err != nil {
			return p.record(run, nil, activationEnd{status: statusInternal, text: textStartFailed})
		}
		end := p.runInContainer(s, run)
		rec := p.record(run, s, end)
		if p.pool.leave(s, end.keep() && p.work.Err() == nil) {
			s.container.kill()
			p.pool.discardSlot(s)
		}
		if end.reschedule && try < maxReschedules {
			continue
		}
		return rec
	}
}

// ensureContainer starts the container of a slot that has none yet.
func (p *Platform) ensureContainer(s *containerSlot) error {
	if s.container != nil {
		return nil
	}
	c, err := p.startOnDevice(p.cfg.sizeOf(s.action), s.device)
	if err != nil {
		p.pool.initFailed(s, &activationEnd{status: statusInternal, text: textStartFailed})
		p.pool.discardSlot(s)
		return err
	}
	c.action = s.action
	p.pool.setContainer(s, c)
	return nil
}

// activationEnd is how an activation ended.
type activationEnd struct {
	status     string
	result     json.RawMessage // for success and application errors
	text       string          // for other errors
	start      time.Time
	end        time.Time
	initTime   time.Duration // of a cold start
	cold       bool
	timedOut   bool
	died       bool // the container's process died
	reschedule bool
	logs       []string
	size       int // characters of the container's answer, as the invoker counts them; 0: no answer
}

// keep tells whether the container may run another activation. OpenWhisk destroys it after a developer error or an
// internal error.
func (e *activationEnd) keep() bool {
	return e.status == statusSuccess || e.status == statusApplication
}

func (p *Platform) runInContainer(s *containerSlot, run *running) (end activationEnd) {
	c := s.container
	journal := c.logs.begin(run.id, run.action.Limits.Logs)
	defer func() {
		end.end = time.Now()
		end.logs = c.collect(journal, &end)
		p.pool.initFailed(s, &end)
		p.delayRecord(&end)
	}()
	end.start = time.Now()
	limit := time.Duration(run.action.Limits.Timeout) * time.Millisecond
	if !c.initialized {
		end.cold = true
		if s.capacity > 1 {
			c.logs.expectTags()
		}
		got, err := c.postJSON(p.work, "/init", p.initBody(run, s.capacity), limit)
		end.initTime = time.Since(end.start)
		if done := p.initEnding(c, got, err, limit, &end); done {
			return end
		}
		c.initialized = true
		if printsNoSentinels(got.body) {
			c.logs.expectNoSentinels()
		}
		p.pool.initDone(s)
	}
	got, err := c.request(p.work, "/run", p.runBody(run, limit), limit)
	p.runEnding(c, got, err, limit, &end)
	return end
}

// initEnding sets the end of an activation whose /init failed. done is false if /init succeeded.
func (p *Platform) initEnding(c *container, got runtimeReply, err error, limit time.Duration,
	end *activationEnd,
) (done bool) {
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, true))
	case err != nil:
		end.died = true
		end.developerError(p.deathText(c, textAbnormalInit))
		p.emulateRefusedInit(end, limit)
	case got.status == http.StatusServiceUnavailable:
		end.developerError(textInvalidInit(got.body))
		end.reschedule = true
	case got.status != http.StatusOK:
		end.size = utf16Length(got.body)
		end.containerError(got.body, textInvalidInit(got.body))
	default:
		return false
	}
	return true
}

// runEnding reads the answer of /run, as ActivationResult.processRunResponseContent does.
func (p *Platform) runEnding(c *container, got runtimeReply, err error, limit time.Duration, end *activationEnd) {
	got.body = toUTF8(got.body)
	trimmed := bytes.TrimSpace(got.body)
	if err == nil {
		end.size = utf16Length(got.body)
	}
	object := len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) &&
		!nestedTooDeep(trimmed)
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, false))
	case err != nil:
		end.died = true
		end.developerError(p.deathText(c, textAbnormalRun))
		end.reschedule = p.retriesWarm(end)
	case got.status == http.StatusServiceUnavailable:
		end.developerError(textInvalidResponse(got.body))
		end.reschedule = true
	case disdel.Bytes(got.length) > p.cfg.Limits.Payload:
		end.applicationError(textResultTooLarge(int(got.length), p.cfg.Limits.Payload, got.body))
	case got.status != http.StatusOK:
		end.containerError(got.body, textInvalidResponse(got.body))
	case !object:
		end.developerError(textInvalidResponse(got.body))
	default:
		end.status, end.result = statusSuccess, trimmed
		if e := errorField(trimmed); e != nil {
			end.status, end.result = statusApplication, e
		}
	}
}

// utf16Length is the length of a text in UTF-16 units, like Java's String.length.
func utf16Length(body []byte) (n int) {
	for _, c := range string(body) {
		n += utf16.RuneLen(c)
	}
	return n
}

// errorField returns {"error": ...} of an object that has an error, and nil otherwise. It drops other fields.
func errorField(body []byte) json.RawMessage {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || len(e.Error) == 0 {
		return nil
	}
	result, _ := json.Marshal(e)
	return result
}

// containerError is a developer error with the container's own error, if it answered one.
func (e *activationEnd) containerError(body []byte, otherwise string) {
	e.developerError(otherwise)
	if own := errorField(body); own != nil {
		e.text, e.result = "", own
	}
}

func (e *activationEnd) developerError(text string) { e.status, e.text = statusDeveloper, text }

func (e *activationEnd) applicationError(text string) {
	e.status = statusApplication
	e.result, _ = json.Marshal(map[string]string{"error": text})
}

// deathText is the text of an activation whose container died.
func (p *Platform) deathText(c *container, otherwise string) string {
	memory := c.diedOfMemory()
	if c.isOverDisk() {
		return textFolder(p.cfg.FolderMB)
	}
	if memory && p.cfg.tellsOutOfMemory() {
		return textMemoryExhausted
	}
	return otherwise
}

// closeOnce closes a channel at most once.
type closeOnce struct {
	sync.Once
	c chan struct{}
}

func newOnce() *closeOnce { return &closeOnce{c: make(chan struct{})} }

func (o *closeOnce) close() { o.Do(func() { close(o.c) }) }

func isTimeout(err error) bool { return err == context.DeadlineExceeded }
