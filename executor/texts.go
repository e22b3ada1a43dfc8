package executor

import (
	"strings"

	"github.com/disdel/disdel"
)

// The states of an activation in OpenWhisk's records.
const (
	statusSuccess     = "success"
	statusApplication = "application error"
	statusDeveloper   = "action developer error"
)

// The texts that tell failures apart: of OpenWhisk's ErrorResponse.scala, and of proxies that hide their child's end.
const (
	textExhausted  = "The action exhausted its memory and was aborted."
	textTimeLimit  = "The action exceeded its time limits of"
	textDuringInit = "during initialization"
	textInitDied   = "The action did not initialize and exited unexpectedly."
)

// opEngine is what our own action was doing when its engine's plan was larger than its limit: an allocation refused
// before anything was killed for it.
const opEngine = "make engine"

// platformText is a text of the platform's own, whatever the state it comes with, and what it means.
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

// platformTexts is looked through in order; the first one found counts.
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

// platformError looks for a text of the platform's own.
func (c *classifier) platformError() bool {
	for _, t := range platformTexts {
		if strings.Contains(c.text, t.text) {
			c.because("OpenWhisk says: %s", c.text)
			c.fail(t.outcome, t.kind, t.why+": "+c.text, t.hint)
			c.a.Failure.Code = t.code
			return true
		}
	}
	return false
}

// refusals are the texts of an allocation that was refused, of Go's runtime and of what an image may hold besides.
var refusals = []string{
	"runtime: out of memory", "fatal error: out of memory", "cannot allocate memory",
	"std::bad_alloc",
}

// panics open the last words of a process that ended itself by a defect.
var panics = []string{"panic: ", "fatal error: ", "SIGSEGV"}

// saying is the first line of the log that has one of the texts, without OpenWhisk's time and stream.
func (c *classifier) saying(texts []string) string {
	for _, line := range c.rec.Logs {
		for _, t := range texts {
			if i := strings.Index(line, t); i >= 0 {
				return line[i:]
			}
		}
	}
	return ""
}
