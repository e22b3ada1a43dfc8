package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/disdel/disdel"
)

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
			p.pool.discard(run.action)
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
	c, err := p.startContainer(p.cfg.sizeOf(s.action))
	if err != nil {
		p.pool.unopened(s, &ending{status: statusInternal, text: textStartFailed})
		p.pool.discard(s.action)
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
