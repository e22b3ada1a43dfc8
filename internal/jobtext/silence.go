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

// silence says that OpenWhisk, the store, or an action gives no sign; "" for anything else.
func silence(what service.EventData) string {
	switch n := what.(type) {
	case service.Outage:
		name, since := terminal.Clean(n.Name()), n.For.Round(time.Second)
		switch {
		case n.Over:
			return fmt.Sprintf("%s answers again after %s", name, since)
		case n.Until.IsZero():
			return fmt.Sprintf("%s does not answer (%s) since %s; the job waits for it", name, terminal.Clean(n.Why), since)
		}
		return fmt.Sprintf("%s does not answer (%s) since %s; waiting until %s", name, terminal.Clean(n.Why), since,
			n.Until.Local().Format(time.TimeOnly))
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
		"gives no record of either; it tells that an image dies at start only after the action's timeout",
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
	if t.Crowded {
		return crowdedText(t)
	}
	quota := "the namespace's invocations of this minute are used up"
	if t.PerMinute > 0 {
		quota = fmt.Sprintf("the namespace's %d invocations of this minute are used up", t.PerMinute)
	}
	return fmt.Sprintf("%s: %s; waiting until %s", waitingFor(t.Invocations), quota,
		t.Until.Local().Format(time.TimeOnly))
}

// crowdedText is for actions that wait until others end.
func crowdedText(t service.Throttled) string {
	quota := "the namespace's concurrent invocations are all in use"
	if t.Concurrent > 0 {
		quota = fmt.Sprintf("all %d concurrent invocations of the namespace are in use", t.Concurrent)
	}
	return fmt.Sprintf("%s: not sent for %s; %s; waiting until one ends", waitingFor(t.Invocations),
		t.For.Round(time.Second), quota)
}

// stoppedText is for actions that had sent heartbeats.
func stoppedText(w service.Waiting) string {
	who, since := waitingFor(w.Invocations), w.For.Round(time.Second)
	switch {
	case w.Over:
		return fmt.Sprintf("%s: heartbeats again after %s", who, since)
	case w.All > 0 && w.Done >= w.All:
		return fmt.Sprintf("%s has done all batches and has not ended for %s; the store may be slow, or the container "+
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
