package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/limits"
)

// timeout says how far the action came and which timeout would have done.
func (c *classifier) timeout() {
	limit := time.Duration(c.inv.Limits.Timeout)
	if c.rec.TimedOut || strings.HasPrefix(c.text, textTimeLimit) {
		c.because("OpenWhisk ended it after its timeout of %v", limit)
	}
	next, why := limits.Timeout(c.a, 0)
	if strings.Contains(c.text, textDuringInit) {
		c.fail(disdel.OutcomeTimeout, disdel.Timeout, fmt.Sprintf("it did not initialise within its timeout of %v", limit),
			fmt.Sprintf("--set resources.timeout=%v, and check that the image starts the action runtime on port 8080", time.Duration(next)))
		return
	}
	if done, all := limits.Trained(c.a); done > 0 {
		c.because("%d of %d batches of the round were trained", done, all)
	}
	c.fail(disdel.OutcomeTimeout, disdel.Timeout, fmt.Sprintf("it did not end within its timeout of %v", limit),
		fmt.Sprintf("--set resources.timeout=%v (%s), or more workers (distribution.workers)", time.Duration(next), why))
}

// outOfMemory says what was measured and which limit would have done.
func (c *classifier) outOfMemory() {
	why := fmt.Sprintf("it needed more than its memory limit of %v (estimate %v", c.inv.Limits.Memory, c.inv.Estimate)
	if c.a.Peak > 0 {
		why += fmt.Sprintf(", measured peak %v", c.a.Peak)
	}
	next, how := limits.Memory(c.a, 0)
	c.fail(disdel.OutcomeOutOfMemory, disdel.OOM, why+")",
		fmt.Sprintf("--set resources.memory=%dMB (%s), or a smaller training.batchSize", next.MB(), how))
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
	const hint = "submit the job again; its log: disdel report @last"
	if line := c.saying(panics); line != "" {
		c.because("its log says: %s", line)
		c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, "its process ended itself: "+line, hint)
		return
	}
	why := "its process was killed or exited"
	switch {
	case c.text == textInitDied:
		why += " before it was initialised"
	case !diedSilently(c.text):
		why = "it did not answer as an action does: " + c.text
	}
	if c.a.Peak > 0 {
		c.because("its peak of %v is below its limit of %v: memory was not the cause", c.a.Peak, c.inv.Limits.Memory)
		why += fmt.Sprintf(", and not for memory: its peak was %v of %v", c.a.Peak, c.inv.Limits.Memory)
	}
	c.fail(disdel.OutcomeDeveloperError, disdel.Crashed, why, hint)
}

// nearItsLimit says whether the last that was seen of the process was so near its limit that memory was the cause, as far as
// anything can be known.
func (c *classifier) nearItsLimit() bool {
	if c.rec.NotMemory || !diedSilently(c.text) {
		return false
	}
	limit := float64(c.inv.Limits.Memory)
	if n := len(c.a.Beats); n > 0 && float64(c.a.Beats[n-1].Resident) >= nearLimit*limit {
		last := c.a.Beats[n-1]
		c.because("at its last heartbeat it held %v, %.0f %% of its limit: out of memory is probable", last.Resident, 100*float64(last.Resident)/limit)
		return true
	}
	if float64(c.a.Peak) >= nearLimit*limit && c.a.Peak > 0 {
		c.because("its peak of %v is %.0f %% of its limit: out of memory is probable", c.a.Peak, 100*float64(c.a.Peak)/limit)
		return true
	}
	return false
}

// diedSilently says whether a developer error's text is one of those that hide how the process ended: OpenWhisk's, and those
// of proxies whose child was killed.
func diedSilently(text string) bool {
	return slices.Contains([]string{
		"The action did not produce a valid response and exited unexpectedly.", textInitDied,
		"command exited", "The action did not return a dictionary or array.",
	}, text)
}
