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

	"github.com/disdel/disdel"
)

// blockingWait is how long a blocking invocation waits before it is answered with the id alone
// (whisk.controller.activation.max-wait-for-blocking-activation).
const blockingWait = time.Minute

// throttle counts a namespace's invocations: by the wall clock's minute, as OpenWhisk does, and in flight.
type throttle struct {
	minute int64
	count  int
	flying int
}

func (t *throttle) admit(now time.Time, l *Limits) error {
	if m := now.Unix() / 60; m != t.minute {
		t.minute, t.count = m, 0
	}
	if t.count >= l.InvocationsPerMinute {
		return problem{429, textPerMinute(t.count+1, l.InvocationsPerMinute)}
	}
	if t.flying >= l.ConcurrentInvocations {
		return problem{429, textConcurrent(t.flying, l.ConcurrentInvocations)}
	}
	t.count++
	t.flying++
	return nil
}

// invoked is the body of a response that carries nothing but the activation's id.
type invoked struct {
	ID string `json:"activationId"`
}

func (p *Platform) invoke(r *http.Request) (int, any, error) {
	var args map[string]json.RawMessage
	if err := readJSON(r, p.cfg.Limits.Payload, &args); err != nil {
		return 0, nil, err
	}
	p.mu.Lock()
	pkgName, key := p.key(r)
	a, ok := p.actions[key]
	if !ok {
		p.mu.Unlock()
		return 0, nil, problem{404, textNoEntity}
	}
	if err := p.throttle.admit(time.Now(), &p.cfg.Limits); err != nil {
		p.mu.Unlock()
		return 0, nil, err
	}
	params := map[string]json.RawMessage{}
	if owner := p.packages[pkgName]; owner != nil {
		addParameters(params, owner.Parameters)
	}
	addParameters(params, a.Parameters)
	maps.Copy(params, args)
	p.flying.Add(1)
	p.mu.Unlock()
	run := &running{id: newID(), action: a, params: params, received: time.Now(), done: make(chan struct{})}
	go func() {
		defer p.flying.Done()
		p.execute(run)
	}()
	if !flag(r, "blocking") {
		return 202, invoked{run.id}, nil
	}
	return run.wait(r)
}

func addParameters(to map[string]json.RawMessage, list []keyValue) {
	for _, v := range list {
		to[v.Key] = v.Value
	}
}

// running is an activation on its way.
type running struct {
	id       string
	action   *action
	params   map[string]json.RawMessage
	received time.Time
	done     chan struct{}
	record   *activation // set when done is closed
}

func (run *running) wait(r *http.Request) (int, any, error) {
	wait := blockingWait
	if ms, err := strconv.Atoi(r.URL.Query().Get("timeout")); err == nil && ms > 0 {
		wait = min(wait, time.Duration(ms)*time.Millisecond)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-run.done:
	case <-timer.C:
		return 202, invoked{run.id}, nil
	case <-r.Context().Done():
		return 202, invoked{run.id}, nil
	}
	status := map[string]int{statusSuccess: 200, statusApplication: 502, statusDeveloper: 502, statusInternal: 500}[run.record.Response.Status]
	if flag(r, "result") {
		return status, run.record.Response.Result, nil
	}
	return status, run.record.withoutLogs(), nil
}

// execute gets a container, runs the activation in it and files the record.
func (p *Platform) execute(run *running) {
	record := p.attempt(run)
	p.mu.Lock()
	p.throttle.flying--
	p.activations[run.id] = record
	p.order = append(p.order, run.id)
	if len(p.order) > maxActivations {
		delete(p.activations, p.order[0])
		p.order = p.order[1:]
	}
	p.mu.Unlock()
	run.record = record
	close(run.done)
}

// maxReschedules bounds how often a container may answer 503, "give it to another".
const maxReschedules = 3

func (p *Platform) attempt(run *running) *activation {
	for try := 0; ; try++ {
		c, err := p.pool.acquire(p.work, run.action)
		if err != nil {
			return p.record(run, nil, ending{status: statusInternal, text: textStartFailed})
		}
		if c == nil {
			if c, err = p.startContainer(sizeOf(run.action)); err != nil {
				p.pool.discard(run.action)
				return p.record(run, nil, ending{status: statusInternal, text: textStartFailed})
			}
			c.action = run.action
		}
		end := p.runIn(c, run)
		rec := p.record(run, c, end)
		if end.keep() && p.work.Err() == nil {
			p.pool.release(c)
		} else {
			c.kill()
			p.pool.discard(run.action)
		}
		if end.reschedule && try < maxReschedules {
			continue
		}
		return rec
	}
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
}

// keep tells whether the container may serve again: OpenWhisk destroys it after a developer or an internal error.
func (e *ending) keep() bool { return e.status == statusSuccess || e.status == statusApplication }

func (p *Platform) runIn(c *container, run *running) (end ending) {
	c.logs.begin(run.action.Limits.Logs)
	defer func() {
		end.end = time.Now()
		end.logs = c.collect(&end)
	}()
	end.start = time.Now()
	limit := time.Duration(run.action.Limits.Timeout) * time.Millisecond
	if !c.initialized {
		end.cold = true
		got, err := c.post(p.work, "/init", p.initBody(run), limit)
		end.initTime = time.Since(end.start)
		if done := p.initEnding(c, got, err, limit, &end); done {
			return end
		}
		c.initialized = true
	}
	got, err := c.post(p.work, "/run", p.runBody(run, limit), limit)
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
	case got.status == http.StatusServiceUnavailable:
		end.developerError(textInvalidInit(got.body))
		end.reschedule = true
	case got.status != http.StatusOK:
		end.ownError(got.body, textInvalidInit(got.body))
	default:
		return false
	}
	return true
}

// runEnding reads the answer of /run as ActivationResult.processRunResponseContent does.
func (p *Platform) runEnding(c *container, got reply, err error, limit time.Duration, end *ending) {
	trimmed := bytes.TrimSpace(got.body)
	object := len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed)
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, false))
	case err != nil:
		end.died = true
		end.developerError(p.death(c, textAbnormalRun))
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
	if memory && p.cfg.OOM == OOMAsDocker {
		return textMemoryExhausted
	}
	return otherwise
}

func (p *Platform) initBody(run *running) any {
	a := run.action
	value := map[string]any{"name": a.Name, "main": mainOf(a), "binary": a.Exec.Binary, "env": p.initEnv(run)}
	if a.Exec.Code != "" { // an image may bring its own
		value["code"] = a.Exec.Code
	}
	return map[string]any{"value": value}
}

// initEnv is the environment that /init hands over, as the invoker fills it.
func (p *Platform) initEnv(run *running) map[string]string {
	a := run.action
	env := map[string]string{
		"__OW_NAMESPACE": p.cfg.Namespace, "__OW_ACTION_NAME": "/" + a.path(), "__OW_ACTION_VERSION": a.Version, "__OW_ACTIVATION_ID": run.id,
		"__OW_TRANSACTION_ID": run.id, "__OW_DEADLINE": deadlineText(time.Duration(a.Limits.Timeout) * time.Millisecond),
	}
	if wantsKey(a) {
		env["__OW_API_KEY"] = p.cfg.AuthKey
	}
	return env
}

// wantsKey tells whether the action asked for the namespace's key by its annotation: any JSON that is not false, null,
// zero or empty.
func wantsKey(a *action) bool {
	for _, v := range a.Annotations {
		if v.Key == "provide-api-key" {
			return !slices.Contains([]string{"", "false", "null", "0", `""`}, string(v.Value))
		}
	}
	return false
}

func mainOf(a *action) string {
	if a.Exec.Main == "" {
		return "main"
	}
	return a.Exec.Main
}

func (p *Platform) runBody(run *running, limit time.Duration) any {
	body := map[string]any{
		"value": run.params, "namespace": p.cfg.Namespace, "action_name": "/" + run.action.path(), "action_version": run.action.Version,
		"activation_id": run.id, "transaction_id": run.id, "deadline": deadlineText(limit),
	}
	if wantsKey(run.action) {
		body["api_key"] = p.cfg.AuthKey
	}
	return body
}

// deadlineText is epoch milliseconds as a string: what the invoker sends, whatever the documents say.
func deadlineText(limit time.Duration) string {
	return strconv.FormatInt(time.Now().Add(limit).UnixMilli(), 10)
}

// once closes a channel at most once.
type once struct {
	sync.Once
	c chan struct{}
}

func newOnce() *once { return &once{c: make(chan struct{})} }

func (o *once) close() { o.Do(func() { close(o.c) }) }

func isTimeout(err error) bool { return err == context.DeadlineExceeded }
