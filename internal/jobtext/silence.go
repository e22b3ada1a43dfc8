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
	default:
		return ""
	}
}

// waitingText is honest about what nobody can know: OpenWhisk shows neither its queue nor what it starts.
func waitingText(w service.Waiting) string {
	text := fmt.Sprintf("%s: no sign for %s; behind other actions in OpenWhisk's queue, or still starting: OpenWhisk "+
		"gives no record of either",
		waitingFor(w.Invocations), w.For.Round(time.Second))
	if w.Pool > 0 {
		text += fmt.Sprintf("; with less than %d MB in its container pool they would wait for ever (--pool-memory SIZE "+
			"tells disdel how much there is)", w.Pool.MB())
	}
	return text
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
