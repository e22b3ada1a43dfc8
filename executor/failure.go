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
	ID disdel.ActivationID
	// "success", "application error", "action developer error", "whisk internal error"
	Status                 string
	Result                 json.RawMessage // the action's result, or {"error": ...}
	TimedOut               bool            // annotation timeout
	Cold                   bool
	Init, Queued, Duration time.Duration
	Start, End             time.Time
	Peak                   disdel.Bytes // annotation peakMemory of the embedded platform; 0: unknown
	// annotation memoryKill of the embedded platform says that memory was not the cause
	NotMemory bool
	Logs      []string
}

// nearLimit is the share of the limit from which a death without a cause is taken for a lack of memory.
const nearLimit = 0.9

// What is kept of an activation: lines of the log, and heartbeats.
const (
	logTail   = 20
	beatsKept = 32
)

// Classify tells how an activation ended: the Failure Manager of DiSDeL III-B.2c. beats are the heartbeats of the
// action, oldest first, nil where none are known: on Kubernetes OpenWhisk has the same words for a lack of memory and
// for a crash, and the heartbeats alone tell them apart. It is pure. What it rests on is in Evidence; Failure has cause
// and next step.
func Classify(inv disdel.Invocation, r Record, beats []disdel.Beat) disdel.Activation {
	c := newClassifier(inv, r, beats)
	c.classify()
	return c.close()
}

func newClassifier(inv disdel.Invocation, r Record, beats []disdel.Beat) *classifier {
	c := &classifier{inv: inv, rec: r, text: errorText(r.Result)}
	c.a = disdel.Activation{
		ID: r.ID, Invocation: inv, Start: r.Start, End: r.End, Duration: disdel.Millis(r.Duration),
		InitTime: disdel.Millis(r.Init), WaitTime: disdel.Millis(r.Queued), Cold: r.Cold, Peak: r.Peak, Beats: thin(beats),
	}
	var own struct {
		Usage disdel.Usage `json:"usage"`
	}
	if json.Unmarshal(r.Result, &own) == nil { // an error may stand there instead
		c.a.Peak, c.a.Phases = max(c.a.Peak, own.Usage.Peak), own.Usage.Phases
		c.a.DevicePeak, c.a.Slowdown = own.Usage.Device, own.Usage.Slowdown
	}
	for _, b := range beats {
		c.a.Peak, c.a.DevicePeak = max(c.a.Peak, b.Peak, b.Resident), max(c.a.DevicePeak, b.Device)
	}
	return c
}

// thin keeps the last heartbeat, and of the others every so many, the first among them.
func thin(beats []disdel.Beat) []disdel.Beat {
	if len(beats) <= beatsKept {
		return beats
	}
	out := make([]disdel.Beat, beatsKept)
	for i := range out {
		out[i] = beats[i*(len(beats)-1)/(beatsKept-1)]
	}
	return out
}

// errorText is what a result says of an error, which may be any JSON.
func errorText(result json.RawMessage) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(result, &e) != nil || len(e.Error) == 0 || string(e.Error) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(e.Error, &text) == nil {
		return text
	}
	return string(e.Error)
}

type classifier struct {
	inv  disdel.Invocation
	rec  Record
	a    disdel.Activation
	text string
}

// nameOf says whose activation an invocation is: "train action of worker 1 in round 2". Rounds count from 1, as they do
// on the screen.
func nameOf(inv *disdel.Invocation) string {
	switch inv.Task {
	case disdel.TaskTrain:
		return fmt.Sprintf("train action of worker %d in round %d", inv.Member, inv.Round+1)
	case disdel.TaskAggregate:
		return fmt.Sprintf("aggregate action %d of level %d in round %d", inv.Member, inv.Level, inv.Round+1)
	case disdel.TaskInfer:
		return fmt.Sprintf("infer action %d", inv.Member+1)
	case disdel.TaskProbe:
		return "a probe of " + string(inv.Action)
	default:
		return fmt.Sprintf("%s action in round %d", inv.Task, inv.Round+1)
	}
}

func (c *classifier) because(format string, args ...any) {
	c.a.Evidence = append(c.a.Evidence, fmt.Sprintf(format, args...))
}

func (c *classifier) fail(o disdel.Outcome, k disdel.Kind, why, hint string) {
	c.a.Outcome = o
	c.a.Failure = &disdel.Error{Kind: k, Op: nameOf(&c.inv), Msg: why, Hint: hint}
}

// close adds what every activation has, and what every failure has.
func (c *classifier) close() disdel.Activation {
	if all := len(c.rec.Logs); all > logTail {
		c.a.Logs, c.a.LogLines = c.rec.Logs[all-logTail:], all
	} else if all > 0 {
		c.a.Logs = c.rec.Logs
	}
	if c.a.Failure == nil {
		return c.a
	}
	c.a.Failure.Activation = c.a.ID
	if n := len(c.a.Beats); n > 0 {
		b := c.a.Beats[n-1]
		c.because("last heartbeat: %v of %v resident, %v after the invocation", b.Resident, c.inv.Limits.Memory, b.At)
	}
	return c.a
}

// classify goes through the signs from the surest to the weakest.
func (c *classifier) classify() {
	switch {
	case c.rec.Status == statusSuccess:
		c.success()
	case c.rec.TimedOut || strings.HasPrefix(c.text, textTimeLimit):
		c.timeout()
	case c.text == textExhausted:
		c.because("OpenWhisk says: %s", c.text)
		c.outOfMemory()
	case c.ownError():
	case c.platformError():
	case c.rec.Status == statusApplication:
		c.because("the action answered: %s", c.text)
		c.fail(disdel.OutcomeApplicationError, disdel.Internal, c.text, "look at its log: disdel report @last")
	case c.rec.Status == statusDeveloper:
		c.death()
	default:
		c.because("OpenWhisk says: %s: %s", c.rec.Status, c.text)
		c.fail(disdel.OutcomeInternalError, disdel.Unavailable, "OpenWhisk could not run it: "+c.text,
			"submit the job again; if it stays, ask the platform's admin")
	}
}

// success keeps the result and what later jobs are timed by.
func (c *classifier) success() {
	c.a.Outcome, c.a.Result = disdel.OutcomeSuccess, c.rec.Result
	var r disdel.TrainResult // its fields are those of the other tasks too
	if json.Unmarshal(c.rec.Result, &r) != nil {
		return
	}
	switch c.inv.Task {
	case disdel.TaskTrain:
		if c.a.Rows = r.Rows; r.Rows == 0 && !r.Paused && !r.Duplicate {
			c.a.Rows = r.Samples * r.Epochs
		}
		if r.Paused {
			c.a.Outcome = disdel.OutcomePaused
			c.because("it stopped before its timeout with its state stored")
		}
	case disdel.TaskEvaluate:
		c.a.Rows = r.Samples
	}
}

// ownOutcomes are the outcomes of the errors that our own actions answer; others are the action's.
var ownOutcomes = map[disdel.Kind]disdel.Outcome{
	disdel.OOM: disdel.OutcomeOutOfMemory, disdel.Timeout: disdel.OutcomeTimeout, disdel.Canceled: disdel.OutcomeCanceled,
	disdel.Diverged: disdel.OutcomeDiverged, disdel.Corrupt: disdel.OutcomeCorrupt,
	disdel.Crashed: disdel.OutcomeDeveloperError,
}

// ownHints are next steps for errors that came without one.
var ownHints = map[disdel.Kind]string{
	disdel.Diverged: "lower the optimiser's learningRate, or set training.clipNorm",
	disdel.Corrupt: "check the data set: disdel dataset list; what was damaged on its way passes when it is tried " +
		"again",
	disdel.Unavailable: "check that actions on the platform can reach the store and the data",
	disdel.Internal:    "look at its log: disdel report @last",
}

// ownError restores the error that our own action answered; false if it answered none.
func (c *classifier) ownError() bool {
	var e struct {
		Error *disdel.Error `json:"error"`
	}
	if json.Unmarshal(c.rec.Result, &e) != nil || e.Error == nil || e.Error.Kind == disdel.UnknownKind {
		return false
	}
	c.because("the action's own error: %v: %s", e.Error.Kind, e.Error.Error())
	switch {
	case e.Error.Kind == disdel.OOM && e.Error.Code == disdel.CodeDeviceMemory:
		c.outOfDeviceMemory(e.Error)
		return true
	case e.Error.Kind == disdel.OOM, e.Error.Kind == disdel.OverLimit && e.Error.Op == opEngine:
		c.outOfMemory()
		return true
	case e.Error.Kind == disdel.Timeout:
		c.timeout()
		c.a.Failure.Code = e.Error.Code // of a hold by the job's budget: no timeout has passed
		return true
	}
	outcome, ok := ownOutcomes[e.Error.Kind]
	switch {
	case ok:
	case e.Error.Code == disdel.CodePanicked:
		outcome = disdel.OutcomeDeveloperError
	default:
		outcome = disdel.OutcomeApplicationError
	}
	hint := e.Error.Hint
	if hint == "" {
		hint = ownHints[e.Error.Kind]
	}
	c.fail(outcome, e.Error.Kind, e.Error.Error(), hint)
	c.a.Failure.Code, c.a.Failure.Subject = e.Error.Code, e.Error.Subject
	return true
}
