package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// timeout says how far the action came. What would have done is the job's to say: it knows what it may ask for.
func (c *classifier) timeout() {
	limit := time.Duration(c.inv.Limits.Timeout)
	if c.rec.TimedOut || strings.HasPrefix(c.text, textTimeLimit) {
		c.because("OpenWhisk ended it after its timeout of %v", limit)
	}
	if strings.Contains(c.text, textDuringInit) {
		c.neverStarted(limit)
		return
	}
	if done, _ := c.a.Done(); done > 0 {
		c.because("%s", c.a.DoneText())
	}
	c.fail(disdel.OutcomeTimeout, disdel.Timeout, fmt.Sprintf("it did not end within its timeout of %v", limit), c.hint(
		"a longer resources.timeout, or more workers (distribution.workers)",
		"a longer resources.timeout",
		"give fewer inputs at once"))
}

// neverStarted is for a process that did not take /init: OpenWhisk asks it again and again until the action's timeout
// has passed, also where it died long before, and then says that it was too slow. A longer timeout is of no use to it.
func (c *classifier) neverStarted(limit time.Duration) {
	c.because("OpenWhisk says: %s", c.text)
	c.brokenStart(disdel.CodeInitTimeout, fmt.Sprintf("it took no request within %v, or died before it could", limit))
}

const hintStartsRuntime = "check that the image starts the action runtime on port 8080 (disdel runtime), " +
	"and that it is for this kind of processor"

// brokenStart names the image as the cause, with what its process printed last.
func (c *classifier) brokenStart(code disdel.Code, why string) {
	c.fail(disdel.OutcomeStartFailure, disdel.Unavailable, "its process did not start"+c.printed()+": "+why,
		hintStartsRuntime)
	c.a.Failure.Code = code
}

// printed is what a message says of a container's last words; "" for none.
func (c *classifier) printed() string {
	words := c.lastWords()
	if words == "" {
		return ""
	}
	return fmt.Sprintf(" (it printed %q)", words)
}

// mostWords bounds what a message repeats of a container's log, in runes.
const mostWords = 80

// lastWords is the last line that a container printed, without the time and the stream that OpenWhisk puts before it.
func (c *classifier) lastWords() string {
	for _, line := range slices.Backward(c.rec.Logs) {
		for _, stream := range []string{"stdout: ", "stderr: "} {
			if _, said, found := strings.Cut(line, stream); found {
				line = said
				break
			}
		}
		words := []rune(strings.Join(strings.Fields(line), " "))
		if len(words) > mostWords {
			words = append(words[:mostWords], []rune("...")...)
		}
		if len(words) > 0 {
			return string(words)
		}
	}
	return ""
}

// outOfMemory says what was measured.
func (c *classifier) outOfMemory() {
	why := fmt.Sprintf("it needed more than its memory limit of %v (estimate %v", c.inv.Limits.Memory, c.inv.Expected())
	if c.a.Peak > 0 {
		why += fmt.Sprintf(", measured peak %v", c.a.Peak)
	}
	c.fail(disdel.OutcomeOutOfMemory, disdel.OOM, why+")", c.hint(
		"more resources.memory, or a smaller training.batchSize",
		"a smaller network, or a platform that allows more: no field of a job sets this action's memory",
		"give fewer inputs at once"))
}

// outOfDeviceMemory is for an accelerator's memory: the action's own was enough, and more of it would not help.
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

// hint is the next step by the task: what helps a train action is of no use to another, and infer has no job.
func (c *classifier) hint(train, beside, infer string) string {
	switch c.inv.Task {
	case disdel.TaskTrain:
		return train
	case disdel.TaskInfer:
		return infer
	default:
		return beside
	}
}

// death tells a lack of memory from a crash: on Kubernetes OpenWhisk has the same words for both.
func (c *classifier) death() {
	c.because("OpenWhisk says: %s", c.text)
	if line := c.saying(refusals); line != "" {
		c.because("its log says: %s", line)
		c.outOfMemory()
		return
	}
	if c.nearItsLimit() {
		c.outOfMemory()
		return
	}
	hint := "submit the job again; its log: disdel report @last"
	if line := c.saying(panics); line != "" {
		c.because("its log says: %s", line)
		c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, "its process ended itself: "+line, hint)
		return
	}
	died := c.text == textInitDied
	if died && c.rec.NotMemory {
		c.brokenStart(disdel.CodeInitDied, "it ended before it took a request, and not for memory")
		return
	}
	why := "its process was killed or exited"
	switch {
	case died: // out of memory, or a broken image: more memory tells
		why += " before it took a request" + c.printed()
		if c.lastWords() != "" {
			hint = hintStartsRuntime
		}
	case !diedSilently(c.text):
		why = "it did not answer as an action does: " + c.text
	}
	if diedSilently(c.text) {
		why += c.memoryText()
	}
	c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, why, hint)
	if died {
		c.a.Failure.Code = disdel.CodeInitDied
	}
}

// farBelow is the share of the limit below which neither what was measured nor what was expected makes memory a likely
// cause of a death without words. What was measured may be seconds old, and a process can take much in one.
const farBelow = 0.6

// memoryText says whether a death without words may have been for memory. Where neither the platform nor a measurement
// far below the limit speaks against it, it is suspected.
func (c *classifier) memoryText() string {
	limit, peak := c.inv.Limits.Memory, c.a.Peak
	switch {
	case c.rec.NotMemory:
		c.because("the platform says that memory was not the cause; its peak was %v of %v", peak, limit)
		return fmt.Sprintf(", and not for memory: its peak was %v of %v", peak, limit)
	case peak == 0:
		c.because("nothing was measured of its memory: it may have been out of memory")
		c.a.Suspected = true
		return ", possibly out of memory: nothing was measured"
	case float64(max(peak, c.inv.Likely)) < farBelow*float64(limit):
		c.because("its highest measured peak was %v of %v: memory was most likely not the cause", peak, limit)
		return fmt.Sprintf(", most likely not for memory: its peak was %v of %v", peak, limit)
	default:
		c.because("its highest measured peak was %v of %v, some time before its end: it may have been out of memory", peak,
			limit)
		c.a.Suspected = true
		return fmt.Sprintf(", possibly out of memory: its peak was %v of %v", peak, limit)
	}
}

// nearItsLimit says whether the last that was seen of the process was so near its limit that memory was the cause, as
// far as anything can be known.
func (c *classifier) nearItsLimit() bool {
	if c.rec.NotMemory || !diedSilently(c.text) {
		return false
	}
	limit := float64(c.inv.Limits.Memory)
	if n := len(c.a.Beats); n > 0 && float64(c.a.Beats[n-1].Resident) >= nearLimit*limit {
		last := c.a.Beats[n-1]
		c.because("at its last heartbeat it held %v, %.0f %% of its limit: out of memory is probable", last.Resident,
			100*float64(last.Resident)/limit)
		return true
	}
	if float64(c.a.Peak) >= nearLimit*limit && c.a.Peak > 0 {
		c.because("its peak of %v is %.0f %% of its limit: out of memory is probable", c.a.Peak, 100*float64(c.a.Peak)/limit)
		return true
	}
	return false
}

// diedSilently says whether a developer error's text is one of those that hide how the process ended: OpenWhisk's, and
// those of proxies whose child was killed.
func diedSilently(text string) bool {
	return slices.Contains([]string{
		"The action did not produce a valid response and exited unexpectedly.", textInitDied,
		"command exited", "The action did not return a dictionary or array.",
	}, text)
}
