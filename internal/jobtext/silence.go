package jobtext

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// silence says that OpenWhisk, or an action on it, gives no sign; "" for anything else.
func silence(what service.Happening) string {
	switch n := what.(type) {
	case service.Outage:
		host := terminal.Clean(n.Host)
		if n.Over {
			return fmt.Sprintf("OpenWhisk at %s answers again after %s", host, n.For.Round(time.Second))
		}
		return fmt.Sprintf("OpenWhisk at %s does not answer (%s) since %s; waiting until %s",
			host, terminal.Clean(n.Why), n.For.Round(time.Second), n.Until.Local().Format(time.TimeOnly))
	case service.Waiting:
		return waitingText(n)
	case service.Throttled:
		return throttledText(n)
	default:
		return ""
	}
}

// waitingText is honest about what nobody can know: OpenWhisk shows neither its queue nor what it starts.
func waitingText(w service.Waiting) string {
	if w.Stopped {
		return stoppedText(w)
	}
	text := fmt.Sprintf("%s: no sign for %s; behind other actions in OpenWhisk's queue, or still starting: OpenWhisk "+
		"gives no record of either; if the image dies at start, OpenWhisk tells so only after the action's timeout",
		waitingFor(w.Invocations), w.For.Round(time.Second))
	if w.Pool > 0 && w.Found > 0 {
		text += fmt.Sprintf("; doctor found a container pool of %v on %s, which may have shrunk", w.Found,
			w.FoundAt.Local().Format(time.DateOnly))
	}
	if w.Pool > 0 {
		text += fmt.Sprintf("; with less than %d MB in its container pool they would wait for ever (--pool-memory SIZE "+
			"tells disdel how much there is)", w.Pool.MB())
	}
	return text
}

// throttledText is for actions that were not sent, since OpenWhisk would refuse them.
func throttledText(t service.Throttled) string {
	quota := "the namespace's invocations of this minute are used up"
	if t.PerMinute > 0 {
		quota = fmt.Sprintf("the namespace's %d invocations of this minute are used up", t.PerMinute)
	}
	return fmt.Sprintf("%s: %s; waiting until %s", waitingFor(t.Invocations), quota,
		t.Until.Local().Format(time.TimeOnly))
}

// stoppedText is for actions that had sent heartbeats.
func stoppedText(w service.Waiting) string {
	who, since := waitingFor(w.Invocations), w.For.Round(time.Second)
	switch {
	case w.Over:
		return fmt.Sprintf("%s: heartbeats again after %s", who, since)
	case w.All > 0 && w.Done >= w.All:
		return fmt.Sprintf("%s: all batches are done, but no end is seen for %s; the store or the container may be slow, "+
			"frozen or gone", who, since)
	case w.All > 0:
		who += fmt.Sprintf(" stopped at %d %% of the work", 100*w.Done/w.All)
	}
	return fmt.Sprintf("%s: no heartbeat for %s; the container may be frozen, killed or without processor time, and "+
		"OpenWhisk has no record of its end yet", who, since)
}

// waitingFor names invocations by task: "train 0, 1, 2 and 5 more".
func waitingFor(list []disdel.Invocation) string {
	const most = 4
	var tasks []disdel.Task
	members := map[disdel.Task][]string{}
	for _, i := range list {
		if !slices.Contains(tasks, i.Task) {
			tasks = append(tasks, i.Task)
		}
		members[i.Task] = append(members[i.Task], fmt.Sprint(i.Member))
	}
	var parts []string
	for _, t := range tasks {
		m := members[t]
		text := string(t) + " " + strings.Join(m[:min(most, len(m))], ", ")
		if more := len(m) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
