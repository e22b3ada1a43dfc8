package executor

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Record is OpenWhisk's record of an activation, as far as it tells how the activation ended.
type Record struct {
	ID                     disdel.ActivationID
	Status                 string          // "success", "application error", "action developer error", "whisk internal error"
	Result                 json.RawMessage // the action's result, or {"error": ...}
	TimedOut               bool            // annotation timeout
	Cold                   bool
	Init, Queued, Duration time.Duration
	Start, End             time.Time
	Peak                   disdel.Bytes // annotation peakMemory of the embedded platform; 0: unknown
	NotMemory              bool         // annotation memoryKill of the embedded platform says that memory was not the cause
	Logs                   []string
}

// The texts that tell failures apart, of OpenWhisk's ErrorResponse.scala and of proxies that hide their child's end.
const (
	textExhausted = "The action exhausted its memory and was aborted."
	textTimeLimit = "The action exceeded its time limits of"
)

// nearLimit is the share of the limit from which a death without a cause is taken for a lack of memory.
const nearLimit = 0.9

// logTail is how many lines of the log a failure keeps.
const logTail = 20

// Classify tells how an activation ended: the Failure Manager of DiSDeL III-B.2c. It is pure. What it rests on is in
// Evidence; Failure has cause and next step.
func Classify(inv disdel.Invocation, r Record) disdel.Activation {
	a := disdel.Activation{
		ID: r.ID, Invocation: inv, Start: r.Start, End: r.End, Duration: disdel.Millis(r.Duration),
		InitTime: disdel.Millis(r.Init), WaitTime: disdel.Millis(r.Queued), Cold: r.Cold, Peak: peak(r),
	}
	c := classifier{inv: inv, rec: r, a: &a, text: errorText(r.Result)}
	c.classify()
	if a.Outcome == disdel.OutcomeSuccess {
		a.Result = r.Result
		return a
	}
	a.Logs = r.Logs[max(0, len(r.Logs)-logTail):]
	if a.Failure != nil {
		a.Failure.Activation = r.ID
	}
	return a
}

// peak is the larger of what the platform and what the action itself measured.
func peak(r Record) disdel.Bytes {
	var own struct {
		Usage disdel.Usage `json:"usage"`
	}
	if json.Unmarshal(r.Result, &own) != nil {
		return r.Peak
	}
	return max(r.Peak, own.Usage.Peak)
}

func errorText(result json.RawMessage) string {
	var e struct {
		Error any `json:"error"`
	}
	if json.Unmarshal(result, &e) != nil || e.Error == nil {
		return ""
	}
	if text, ok := e.Error.(string); ok {
		return text
	}
	return fmt.Sprint(e.Error)
}

type classifier struct {
	inv  disdel.Invocation
	rec  Record
	a    *disdel.Activation
	text string
}

// name says whose activation it is: "train action of worker 1 in round 2".
func (c *classifier) name() string {
	switch c.inv.Task {
	case disdel.TaskTrain:
		return fmt.Sprintf("train action of worker %d in round %d", c.inv.Member, c.inv.Round+1)
	case disdel.TaskAggregate:
		return fmt.Sprintf("aggregate action %d of level %d in round %d", c.inv.Member, c.inv.Level, c.inv.Round+1)
	default:
		return fmt.Sprintf("%s action in round %d", c.inv.Task, c.inv.Round+1)
	}
}

func (c *classifier) because(format string, args ...any) {
	c.a.Evidence = append(c.a.Evidence, fmt.Sprintf(format, args...))
}

// classify goes through the signs from the surest to the weakest.
func (c *classifier) classify() {
	switch {
	case c.rec.Status == "success":
		c.a.Outcome = disdel.OutcomeSuccess
	case c.rec.TimedOut || strings.HasPrefix(c.text, textTimeLimit):
		c.because("OpenWhisk ended it after its timeout of %v", c.inv.Limits.Timeout)
		c.timeout()
	case c.text == textExhausted:
		c.because("OpenWhisk says: %s", c.text)
		c.outOfMemory()
	case c.rec.Status == "application error":
		c.ownError()
	case c.rec.Status == "action developer error":
		c.death()
	default:
		c.because("OpenWhisk says: %s: %s", c.rec.Status, c.text)
		c.fail(disdel.OutcomeInternalError, disdel.Internal, "OpenWhisk could not run it: "+c.text, "submit the job again; if it stays, ask the platform's admin")
	}
}

func (c *classifier) fail(o disdel.Outcome, k disdel.Kind, why, hint string) {
	c.a.Outcome = o
	c.a.Failure = &disdel.Error{Kind: k, Op: c.name(), Msg: why, Hint: hint}
}

func (c *classifier) timeout() {
	limit := time.Duration(c.inv.Limits.Timeout)
	c.fail(disdel.OutcomeTimeout, disdel.Timeout, fmt.Sprintf("it did not end within its timeout of %v", limit),
		fmt.Sprintf("--set resources.timeout=%v, or more workers (distribution.workers)", 2*limit))
}

func (c *classifier) outOfMemory() {
	limit := c.inv.Limits.Memory
	why := fmt.Sprintf("it needed more than its memory limit of %v (estimate %v", limit, c.inv.Estimate)
	if c.a.Peak > 0 {
		why += fmt.Sprintf(", measured peak %v", c.a.Peak)
	}
	next := (limit + limit/2).MB()
	c.fail(disdel.OutcomeOutOfMemory, disdel.OOM, why+")", fmt.Sprintf("--set resources.memory=%dMB, or a smaller training.batchSize", next))
}

// ownError restores the error that our own action answered.
func (c *classifier) ownError() {
	var e struct {
		Error *disdel.Error `json:"error"`
	}
	if json.Unmarshal(c.rec.Result, &e) != nil || e.Error == nil || e.Error.Kind == disdel.UnknownKind {
		c.because("the action answered: %s", c.text)
		c.fail(disdel.OutcomeApplicationError, disdel.Internal, c.text, "")
		return
	}
	c.because("the action's own error")
	outcome, ok := map[disdel.Kind]disdel.Outcome{disdel.OOM: disdel.OutcomeOutOfMemory, disdel.Timeout: disdel.OutcomeTimeout, disdel.Canceled: disdel.OutcomeCanceled}[e.Error.Kind]
	if !ok {
		outcome = disdel.OutcomeApplicationError
	}
	c.a.Outcome = outcome
	c.a.Failure = &disdel.Error{Kind: e.Error.Kind, Op: c.name(), Msg: e.Error.Error(), Hint: e.Error.Hint}
}

// death tells a lack of memory from a crash: on Kubernetes OpenWhisk has the same words for both.
func (c *classifier) death() {
	c.because("OpenWhisk says: %s", c.text)
	limit := c.inv.Limits.Memory
	if !c.rec.NotMemory && c.a.Peak > 0 && float64(c.a.Peak) >= nearLimit*float64(limit) {
		c.because("its peak of %v is %.0f %% of its limit", c.a.Peak, 100*float64(c.a.Peak)/float64(limit))
		c.outOfMemory()
		return
	}
	why := "its process was killed or exited"
	if c.a.Peak > 0 {
		c.because("its peak of %v is below its limit of %v: memory was not the cause", c.a.Peak, limit)
		why += fmt.Sprintf(", and not for memory: its peak was %v of %v", c.a.Peak, limit)
	}
	c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, why, "submit the job again; its log: disdel history show @last --logs")
}

func lost(inv disdel.Invocation, id disdel.ActivationID) disdel.Activation {
	a := disdel.Activation{ID: id, Invocation: inv}
	c := classifier{inv: inv, a: &a}
	c.because("OpenWhisk has no record of activation %s after twice its timeout", id)
	c.fail(disdel.OutcomeLost, disdel.Lost, "OpenWhisk accepted it and has no record of it", "submit the job again; an invoker may have been restarted")
	return a
}
