package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// execute gets a container, runs the activation in it and files the record.
func (p *Platform) execute(run *running) {
	p.file(run, p.attempt(run))
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
			if c, err = p.startContainer(run.action); err != nil {
				p.pool.discard(run.action, nil)
				p.cfg.Logger.WithError(err).Error("a container could not be started")
				return p.record(run, nil, ending{status: statusInternal, text: textStartFailed})
			}
		}
		end := p.runIn(c, run)
		rec := p.record(run, c, end)
		if end.keep() && p.work.Err() == nil {
			p.pool.release(c)
		} else {
			c.kill()
			p.pool.discard(run.action, c)
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
		end.logs = c.logs.finish(end.keep())
		if !end.keep() {
			end.logs = append(end.logs, logLine(time.Now(), "stderr", textLogsIncomplete))
		}
	}()
	end.start = time.Now()
	limit := time.Duration(run.action.Limits.Timeout) * time.Millisecond
	if !c.initialized {
		end.cold = true
		status, body, err := c.post(p.work, "/init", p.initBody(run), limit)
		end.initTime = time.Since(end.start)
		if done := p.initEnding(c, status, body, err, limit, &end); done {
			return end
		}
		c.initialized = true
	}
	status, body, err := c.post(p.work, "/run", p.runBody(run, limit), limit)
	p.runEnding(c, status, body, err, limit, &end)
	return end
}

// initEnding says how a failed /init ends the activation; done is false where it went well.
func (p *Platform) initEnding(c *container, status int, body []byte, err error, limit time.Duration, end *ending) (done bool) {
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, true))
	case err != nil:
		end.died = true
		end.developerError(p.death(c, textAbnormalInit))
	case status == http.StatusServiceUnavailable:
		end.developerError(textInvalidInit(body))
		end.reschedule = true
	case status != http.StatusOK:
		end.developerError(errorOf(body, textInvalidInit(body)))
	default:
		return false
	}
	return true
}

// runEnding reads the answer of /run as ActivationResult.processRunResponseContent does.
func (p *Platform) runEnding(c *container, status int, body []byte, err error, limit time.Duration, end *ending) {
	trimmed := bytes.TrimSpace(body)
	object := len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed)
	switch {
	case isTimeout(err):
		end.timedOut = true
		end.developerError(textTimeout(limit, false))
	case err != nil:
		end.died = true
		end.developerError(p.death(c, textAbnormalRun))
	case status == http.StatusServiceUnavailable:
		end.developerError(textInvalidResponse(body))
		end.reschedule = true
	case disdel.Bytes(len(body)) > p.cfg.Limits.Payload:
		end.applicationError(textResultTooLarge(len(body), p.cfg.Limits.Payload, body))
	case status != http.StatusOK:
		end.developerError(errorOf(body, textInvalidResponse(body)))
	case !object:
		end.developerError(textInvalidResponse(body))
	default:
		end.status, end.result = statusSuccess, trimmed
		var e struct {
			Error json.RawMessage `json:"error"`
		}
		if trimmed[0] == '{' && json.Unmarshal(trimmed, &e) == nil && len(e.Error) > 0 {
			end.status = statusApplication
			end.result, _ = json.Marshal(map[string]json.RawMessage{"error": e.Error})
		}
	}
}

func (e *ending) developerError(text string) { e.status, e.text = statusDeveloper, text }

func (e *ending) applicationError(text string) {
	e.status = statusApplication
	e.result, _ = json.Marshal(map[string]string{"error": text})
}

// errorOf is the error that a JSON body carries, else otherwise.
func errorOf(body []byte, otherwise string) string {
	var e struct {
		Error any `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == nil {
		return otherwise
	}
	if text, ok := e.Error.(string); ok {
		return text
	}
	return fmt.Sprint(e.Error)
}

// death tells why a container's process went away.
func (p *Platform) death(c *container, otherwise string) string {
	if c.exhausted() && p.cfg.OOM == OOMAsDocker {
		return textMemoryExhausted
	}
	return otherwise
}

func (p *Platform) initBody(run *running) any {
	a := run.action
	return map[string]any{"value": map[string]any{"name": a.Name, "main": mainOf(a), "binary": a.Exec.Binary, "code": a.Exec.Code, "env": map[string]string{
		"__OW_NAMESPACE": run.user.Name, "__OW_ACTION_NAME": "/" + a.path(), "__OW_ACTION_VERSION": a.Version, "__OW_ACTIVATION_ID": run.id,
		"__OW_TRANSACTION_ID": run.id, "__OW_DEADLINE": deadlineText(time.Duration(a.Limits.Timeout) * time.Millisecond),
	}}}
}

func mainOf(a *action) string {
	if a.Exec.Main == "" {
		return "main"
	}
	return a.Exec.Main
}

func (p *Platform) runBody(run *running, limit time.Duration) any {
	return map[string]any{
		"value": run.params, "namespace": run.user.Name, "action_name": "/" + run.action.path(), "action_version": run.action.Version,
		"activation_id": run.id, "transaction_id": run.id, "deadline": deadlineText(limit),
	}
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
