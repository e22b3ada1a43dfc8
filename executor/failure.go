package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Record is the part of OpenWhisk's record that tells how an activation ended.
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
	// NotMemory: the annotation memoryKill of the embedded platform excludes memory as the cause.
	NotMemory bool
	Logs      []string
}

// nearLimit is the share of the limit from which a death without a known cause counts as out of memory.
const nearLimit = 0.9

// How many log lines and heartbeats of an activation are kept.
const (
	logTail   = 20
	beatsKept = 32
)

// Classify tells how an activation ended: the Failure Manager of DiSDeL III-B.2c. beats are the action's heartbeats,
// oldest first. On Kubernetes OpenWhisk has one text for a crash and for an out-of-memory kill, and only the heartbeats
// distinguish them. Evidence has the reasons of the decision, Failure the cause and the next step. Classify is a pure
// function.
func Classify(inv disdel.Invocation, r Record, beats []disdel.Beat) disdel.Activation {
	c := newClassifier(inv, r, beats)
	c.classify()
	return c.close()
}

func newClassifier(inv disdel.Invocation, r Record, beats []disdel.Beat) *classifier {
	c := &classifier{inv: inv, rec: r, text: errorText(r.Result)}
	c.a = disdel.Activation{
		ID: r.ID, Invocation: inv, Start: r.Start, End: r.End, Duration: disdel.Millis(r.Duration),
		InitTime: disdel.Millis(r.Init), WaitTime: disdel.Millis(r.Queued), Cold: r.Cold, Peak: r.Peak,
		Beats: thinHeartbeats(beats),
	}
	var own struct {
		Usage disdel.Usage `json:"usage"`
	}
	if json.Unmarshal(r.Result, &own) == nil { // a failed activation has an error instead
		c.a.Peak, c.a.Phases = max(c.a.Peak, own.Usage.Peak), own.Usage.Phases
		c.a.DevicePeak, c.a.Slowdown = own.Usage.Device, own.Usage.Slowdown
	}
	for _, b := range beats {
		c.a.Peak, c.a.DevicePeak = max(c.a.Peak, b.Peak, b.Resident), max(c.a.DevicePeak, b.Device)
	}
	return c
}

// thinHeartbeats keeps evenly spaced heartbeats, including the first and the last.
func thinHeartbeats(beats []disdel.Beat) []disdel.Beat {
	if len(beats) <= beatsKept {
		return beats
	}
	out := make([]disdel.Beat, beatsKept)
	for i := range out {
		out[i] = beats[i*(len(beats)-1)/(beatsKept-1)]
	}
	return out
}

// errorText is the error in a result, as text or JSON.
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

// describe names an activation: "train action of worker 1 in round 2". Rounds count from 1, as on the screen.
func describe(inv *disdel.Invocation) string {
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

func (c *classifier) addEvidence(format string, args ...any) {
	c.a.Evidence = append(c.a.Evidence, fmt.Sprintf(format, args...))
}

func (c *classifier) fail(o disdel.Outcome, k disdel.Kind, why, hint string) {
	c.a.Outcome = o
	c.a.Failure = &disdel.Error{Kind: k, Op: describe(&c.inv), Msg: why, Hint: hint}
}

// close adds the log and the last heartbeat.
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
		c.addEvidence("last heartbeat: %v of %v resident, %v after the invocation", b.Resident, c.inv.Limits.Memory, b.At)
	}
	return c.a
}

// classify checks the evidence from the strongest to the weakest.
func (c *classifier) classify() {
	switch {
	case c.rec.Status == statusSuccess:
		c.success()
	case c.rec.TimedOut || strings.HasPrefix(c.text, textTimeLimit):
		c.classifyTimeout()
	case c.text == textExhausted:
		c.addEvidence("OpenWhisk says: %s", c.text)
		c.classifyOutOfMemory()
	case c.ownError():
	case c.platformError():
	case c.rec.Status == statusApplication:
		c.addEvidence("the action answered: %s", c.text)
		c.fail(disdel.OutcomeApplicationError, disdel.Internal, c.text, "look at its log: disdel report @last")
	case c.rec.Status == statusDeveloper:
		c.classifyDeath()
	default:
		c.addEvidence("OpenWhisk says: %s: %s", c.rec.Status, c.text)
		c.fail(disdel.OutcomeInternalError, disdel.Unavailable, "OpenWhisk could not run it: "+c.text,
			"submit the job again; if it stays, ask the platform's admin")
	}
}

// success keeps the result, and the rows that later estimates use.
func (c *classifier) success() {
	c.a.Outcome, c.a.Result = disdel.OutcomeSuccess, c.rec.Result
	var r disdel.TrainResult // results of other tasks have the same fields
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
			c.addEvidence("it stopped before its timeout with its state stored")
		}
	case disdel.TaskEvaluate:
		c.a.Rows = r.Samples
	}
}

// ownOutcomes are the outcomes of the errors that our own actions answer. Other errors are application errors.
var ownOutcomes = map[disdel.Kind]disdel.Outcome{
	disdel.OOM: disdel.OutcomeOutOfMemory, disdel.Timeout: disdel.OutcomeTimeout, disdel.Canceled: disdel.OutcomeCanceled,
	disdel.Diverged: disdel.OutcomeDiverged, disdel.Corrupt: disdel.OutcomeCorrupt,
	disdel.Crashed: disdel.OutcomeDeveloperError,
}

// ownHints are next steps for errors without one.
var ownHints = map[disdel.Kind]string{
	disdel.Diverged: "lower the optimiser's learningRate, or set training.clipNorm",
	disdel.Corrupt: "check the data set: disdel dataset list; damage in transit disappears when the job is tried " +
		"again",
	disdel.Unavailable: "check that actions on the platform can reach the store and the data",
	disdel.Internal:    "look at its log: disdel report @last",
}

// ownError restores the error that our own action answered. It returns false if there is none.
func (c *classifier) ownError() bool {
	var e struct {
		Error *disdel.Error `json:"error"`
	}
	if json.Unmarshal(c.rec.Result, &e) != nil || e.Error == nil || e.Error.Kind == disdel.UnknownKind {
		return false
	}
	c.addEvidence("the action's own error: %v: %s", e.Error.Kind, e.Error.Error())
	switch {
	case e.Error.Kind == disdel.OOM && e.Error.Code == disdel.CodeDeviceMemory:
		c.outOfDeviceMemory(e.Error)
		return true
	case e.Error.Kind == disdel.OOM, e.Error.Kind == disdel.OverLimit && e.Error.Op == opEngine:
		c.classifyOutOfMemory()
		return true
	case e.Error.Kind == disdel.Timeout:
		c.classifyTimeout()
		c.a.Failure.Code = e.Error.Code // the job's budget may have ended it before its timeout
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

// classifyTimeout tells how far the action came. The job decides what helps, because it knows its limits.
func (c *classifier) classifyTimeout() {
	limit := time.Duration(c.inv.Limits.Timeout)
	if c.rec.TimedOut || strings.HasPrefix(c.text, textTimeLimit) {
		c.addEvidence("OpenWhisk ended it after its timeout of %v", limit)
	}
	if strings.Contains(c.text, textDuringInit) {
		c.failInit(limit)
		return
	}
	if done, _ := c.a.Done(); done > 0 {
		c.addEvidence("%s", c.a.DoneText())
	}
	c.fail(disdel.OutcomeTimeout, disdel.Timeout, fmt.Sprintf("it did not end within its timeout of %v", limit), c.hint(
		"a longer resources.timeout, or more workers (distribution.workers)",
		"a longer resources.timeout",
		"give fewer inputs at once"))
}

// failInit is for a process that did not answer /init. OpenWhisk retries until the action's timeout, even if the
// process died long before, and then reports a timeout. A longer timeout does not help.
func (c *classifier) failInit(limit time.Duration) {
	c.addEvidence("OpenWhisk says: %s", c.text)
	c.failStart(disdel.CodeInitTimeout, fmt.Sprintf("it took no request within %v, or died before it could", limit))
}

const hintStartsRuntime = "check that the image starts the action runtime on port 8080 (disdel runtime), " +
	"and that it is for this kind of processor"

// failStart names the image as the cause, with the last line that its process printed.
func (c *classifier) failStart(code disdel.Code, why string) {
	c.fail(disdel.OutcomeStartFailure, disdel.Unavailable, "its process did not start"+c.printedText()+": "+why,
		hintStartsRuntime)
	c.a.Failure.Code = code
}

// printedText is the container's last line for a message; "" if there is none.
func (c *classifier) printedText() string {
	words := c.lastLogLine()
	if words == "" {
		return ""
	}
	return fmt.Sprintf(" (it printed %q)", words)
}

// maxLogLine bounds a repeated log line, in characters.
const maxLogLine = 80

// lastLogLine is the last line that a container printed, without OpenWhisk's time and stream.
func (c *classifier) lastLogLine() string {
	for _, line := range slices.Backward(c.rec.Logs) {
		for _, stream := range []string{"stdout: ", "stderr: "} {
			if _, message, found := strings.Cut(line, stream); found {
				line = message
				break
			}
		}
		words := []rune(strings.Join(strings.Fields(line), " "))
		if len(words) > maxLogLine {
			words = append(words[:maxLogLine], []rune("...")...)
		}
		if len(words) > 0 {
			return string(words)
		}
	}
	return ""
}

// classifyOutOfMemory reports the limit, the estimate and the measured peak.
func (c *classifier) classifyOutOfMemory() {
	why := fmt.Sprintf("it needed more than its memory limit of %v (estimate %v", c.inv.Limits.Memory, c.inv.Expected())
	if c.a.Peak > 0 {
		why += fmt.Sprintf(", measured peak %v", c.a.Peak)
	}
	c.fail(disdel.OutcomeOutOfMemory, disdel.OOM, why+")", c.hint(
		"more resources.memory, or a smaller training.batchSize",
		"a smaller network, or a platform that allows more: no field of a job sets this action's memory",
		"give fewer inputs at once"))
}

// outOfDeviceMemory is for an accelerator's memory. More memory for the action would not help.
func (c *classifier) outOfDeviceMemory(own *disdel.Error) {
	why := "an accelerator's memory was too little for it"
	if share := c.inv.Limits.Device; share > 0 {
		why = fmt.Sprintf("its share of an accelerator's memory, %v, was too little for it", share)
	}
	if text := own.Error(); text != "" {
		why += ": " + text
	}
	c.fail(disdel.OutcomeOutOfMemory, disdel.OOM, why, c.hint(
		"more resources.gpu.memory, or a smaller training.batchSize",
		"a smaller training.batchSize, which it takes its batches by",
		"give fewer inputs at once"))
	c.a.Failure.Code = disdel.CodeDeviceMemory
}

// hint is the next step for the action's task.
func (c *classifier) hint(train, aggregation, infer string) string {
	switch c.inv.Task {
	case disdel.TaskTrain:
		return train
	case disdel.TaskInfer:
		return infer
	default:
		return aggregation
	}
}

// classifyDeath distinguishes an out-of-memory kill from a crash. On Kubernetes OpenWhisk has one text for both.
func (c *classifier) classifyDeath() {
	c.addEvidence("OpenWhisk says: %s", c.text)
	if line := c.logLine(refusals); line != "" {
		c.addEvidence("its log says: %s", line)
		c.classifyOutOfMemory()
		return
	}
	if c.isNearLimit() {
		c.classifyOutOfMemory()
		return
	}
	hint := "submit the job again; its log: disdel report @last"
	if line := c.logLine(panics); line != "" {
		c.addEvidence("its log says: %s", line)
		c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, "its process ended itself: "+line, hint)
		return
	}
	died := c.text == textInitDied
	if died && c.rec.NotMemory {
		c.failStart(disdel.CodeInitDied, "it ended before it took a request, and not for memory")
		return
	}
	why := "its process was killed or exited"
	switch {
	case died: // out of memory, or a broken image: a retry with more memory finds out
		why += " before it took a request" + c.printedText()
		if c.lastLogLine() != "" {
			hint = hintStartsRuntime
		}
	case !hidesCause(c.text):
		why = "it did not answer as an action does: " + c.text
	}
	if hidesCause(c.text) {
		why += c.memoryText()
	}
	c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, why, hint)
	if died {
		c.a.Failure.Code = disdel.CodeInitDied
	}
}

// farBelow is the share of the limit below which memory is an unlikely cause of a silent death. A measurement may be
// seconds old, and a process can allocate much in a second.
const farBelow = 0.6

// memoryText tells whether a silent death may have been for memory. Memory is suspected unless the platform excludes it
// or the measured peak is far below the limit.
func (c *classifier) memoryText() string {
	limit, peak := c.inv.Limits.Memory, c.a.Peak
	switch {
	case c.rec.NotMemory:
		c.addEvidence("the platform says that memory was not the cause; its peak was %v of %v", peak, limit)
		return fmt.Sprintf(", and not for memory: its peak was %v of %v", peak, limit)
	case peak == 0:
		c.addEvidence("nothing was measured of its memory: it may have been out of memory")
		c.a.Suspected = true
		return ", possibly out of memory: nothing was measured"
	case float64(max(peak, c.inv.Likely)) < farBelow*float64(limit):
		c.addEvidence("its highest measured peak was %v of %v: memory was most likely not the cause", peak, limit)
		return fmt.Sprintf(", most likely not for memory: its peak was %v of %v", peak, limit)
	default:
		c.addEvidence("its highest measured peak was %v of %v, some time before its end: it may have been out of memory",
			peak, limit)
		c.a.Suspected = true
		return fmt.Sprintf(", possibly out of memory: its peak was %v of %v", peak, limit)
	}
}

// isNearLimit tells whether the last measured memory was so near the limit that memory is the probable cause.
func (c *classifier) isNearLimit() bool {
	if c.rec.NotMemory || !hidesCause(c.text) {
		return false
	}
	limit := float64(c.inv.Limits.Memory)
	if n := len(c.a.Beats); n > 0 && float64(c.a.Beats[n-1].Resident) >= nearLimit*limit {
		last := c.a.Beats[n-1]
		c.addEvidence("at its last heartbeat it held %v, %.0f %% of its limit: out of memory is probable", last.Resident,
			100*float64(last.Resident)/limit)
		return true
	}
	if float64(c.a.Peak) >= nearLimit*limit && c.a.Peak > 0 {
		c.addEvidence("its peak of %v is %.0f %% of its limit: out of memory is probable", c.a.Peak,
			100*float64(c.a.Peak)/limit)
		return true
	}
	return false
}

// hidesCause tells whether the text of a developer error hides how the process ended. Texts are OpenWhisk's, and those
// of proxies whose child was killed.
func hidesCause(text string) bool {
	return slices.Contains([]string{
		"The action did not produce a valid response and exited unexpectedly.", textInitDied,
		"command exited", "The action did not return a dictionary or array.",
	}, text)
}

// The statuses of an activation in OpenWhisk's records.
const (
	statusSuccess     = "success"
	statusApplication = "application error"
	statusDeveloper   = "action developer error"
)

// Texts that identify failures: OpenWhisk's ErrorResponse.scala, and proxies that hide how their child ended.
const (
	textExhausted  = "The action exhausted its memory and was aborted."
	textTimeLimit  = "The action exceeded its time limits of"
	textDuringInit = "during initialization"
	textInitDied   = "The action did not initialize and exited unexpectedly."
)

// opEngine is the operation of our action's error if its engine's plan was larger than the limit, found before anything
// was allocated.
const opEngine = "make engine"

// platformText is a text of the platform and its meaning, for any status.
type platformText struct {
	text    string
	outcome disdel.Outcome
	kind    disdel.Kind
	why     string
	hint    string
	code    disdel.Code
}

const (
	hintImage = "check that the image is there and public, with --image NAME:TAG and a tag that is not latest"
	hintStart = "large images start slowly: ask the admin for a longer whisk.kubernetes.timeouts.run, or use a smaller " +
		"image"
	hintLater = "submit the job again later, with fewer workers (distribution.workers)"
	hintBoth  = "ask the admin to set the same limits on controller and invoker, or stay within the smaller ones"
)

// platformTexts are searched in order; the first match counts.
var platformTexts = []platformText{
	{
		"The action produced a response that exceeded the allowed length", disdel.OutcomeTooLarge, disdel.OverLimit,
		"its result is larger than OpenWhisk takes",
		"results go through the store: check that the action image and disdel are of the same version", "",
	},
	{
		"exceeds allowed threshold of", disdel.OutcomeStartFailure, disdel.OverLimit,
		"the invoker's limits are smaller than the controller's", hintBoth, "",
	},
	{
		"Action version is not compatible", disdel.OutcomeStartFailure, disdel.OverLimit,
		"the invoker's limits are smaller than the controller's", hintBoth, "",
	},
	{
		"Failed to pull container image", disdel.OutcomeStartFailure, disdel.Unavailable, "its image could not be pulled",
		hintImage, disdel.CodeImageMissing,
	},
	{
		"executable file not found in image", disdel.OutcomeStartFailure, disdel.Invalid, "its image has no action runtime",
		hintImage, "",
	},
	{
		"Failed to run container with image", disdel.OutcomeStartFailure, disdel.Unavailable,
		"its container was not ready in time", hintStart, "",
	},
	{
		"Failed to provision resources to run the action", disdel.OutcomeStartFailure, disdel.Unavailable,
		"its container could not be started", "submit the job again; if it stays, ask the admin whether an invoker has room",
		"",
	},
	{
		"Too many requests", disdel.OutcomeThrottled, disdel.Unavailable, "the namespace's quota of invocations is used up",
		hintLater, disdel.CodeQuotaMinute,
	},
	{
		"Too many concurrent requests", disdel.OutcomeThrottled, disdel.Unavailable,
		"the namespace's quota of invocations is used up", hintLater, disdel.CodeQuotaConcurrent,
	},
	{
		"System is overloaded, try again later", disdel.OutcomeThrottled, disdel.Unavailable, "the platform is overloaded",
		hintLater, "",
	},
	{
		"Activation processing is not initiated for", disdel.OutcomeInternalError, disdel.Unavailable,
		"it waited too long in the platform's queue", hintLater, "",
	},
	{
		"too old activation is arrived", disdel.OutcomeInternalError, disdel.Unavailable,
		"it waited too long in the platform's queue", hintLater, "",
	},
}

// platformError looks for a text of the platform. It returns false if there is none.
func (c *classifier) platformError() bool {
	for _, t := range platformTexts {
		if strings.Contains(c.text, t.text) {
			c.addEvidence("OpenWhisk says: %s", c.text)
			c.fail(t.outcome, t.kind, t.why+": "+c.text, t.hint)
			c.a.Failure.Code = t.code
			return true
		}
	}
	return false
}

// refusals are the texts of a failed allocation, of Go's runtime and of other programs.
var refusals = []string{
	"runtime: out of memory", "fatal error: out of memory", "cannot allocate memory",
	"std::bad_alloc",
}

// panics start the last line of a process that crashed.
var panics = []string{"panic: ", "fatal error: ", "SIGSEGV"}

// logLine is the first line of the log with one of the texts, without OpenWhisk's time and stream.
func (c *classifier) logLine(texts []string) string {
	for _, line := range c.rec.Logs {
		for _, t := range texts {
			if i := strings.Index(line, t); i >= 0 {
				return line[i:]
			}
		}
	}
	return ""
}
