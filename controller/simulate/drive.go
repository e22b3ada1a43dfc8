package simulate

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// What the manager is told, and what it asks for, is in this file alone.

func started() controller.Event { return controller.Event{Kind: controller.EventStarted} }

func ended(a disdel.Activation, at disdel.Millis) controller.Event {
	kind := controller.EventEnded
	if a.Outcome == disdel.OutcomeThrottled {
		kind = controller.EventRefused
	}
	return controller.Event{Kind: kind, Activation: a, At: at}
}

// happens tells the manager what happened, and does what it asks for.
func (j *job) happens(e controller.Event) {
	for _, o := range j.manager.Step(e) {
		switch o.Kind {
		case controller.OrderInvoke:
			inv := o.Invocation
			if after := disdel.Millis(o.After); after > 0 {
				j.run.clock.After(after, func() { j.invoke(inv) })
			} else {
				j.invoke(inv)
			}
		case controller.OrderAlarm:
			j.run.clock.Cancel(j.alarm)
			number := o.Alarm
			j.alarm = j.run.clock.After(disdel.Millis(o.After), func() {
				if !j.over {
					at := j.run.clock.Now() - j.Started
					j.happens(controller.Event{Kind: controller.EventAlarm, Alarm: number, At: at})
				}
			})
		case controller.OrderFinish:
			j.finish(o.Status, o.Failure)
			return
		}
	}
}
