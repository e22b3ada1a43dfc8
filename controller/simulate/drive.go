package simulate

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// What the manager is told, and what it asks for, is in this file alone.

func started() controller.Event { return controller.StartedEvent{} }

func ended(a disdel.Activation, at disdel.Millis) controller.Event {
	if a.Outcome == disdel.OutcomeThrottled {
		return controller.RefusedEvent{Moment: controller.Moment{At: at}, Activation: a}
	}
	return controller.EndedEvent{Moment: controller.Moment{At: at}, Activation: a}
}

// happens tells the manager what happened, and does what it asks for. What it has recorded or stored is left out.
func (j *job) happens(e controller.Event) {
	for _, o := range j.manager.Step(e) {
		switch o := o.(type) {
		case controller.InvokeOrder:
			inv := o.Invocation
			if after := disdel.Millis(o.After); after > 0 {
				j.run.clock.After(after, func() { j.invoke(inv) })
			} else {
				j.invoke(inv)
			}
		case controller.AlarmOrder:
			j.run.clock.Cancel(j.alarm)
			j.alarm = j.run.clock.After(disdel.Millis(o.After), func() { j.rings(o.Number) })
		case controller.FinishOrder:
			j.finish(o.Status, o.Failure)
			return
		case controller.AdjustOrder, controller.DecisionOrder, controller.StageOrder, controller.CheckpointOrder,
			controller.ForgetOrder, controller.SweepOrder, controller.RoundOrder, controller.BestOrder:
		}
	}
}

// rings tells the manager of an alarm whose time has come.
func (j *job) rings(number int) {
	if !j.over {
		at := controller.Moment{At: j.run.clock.Now() - j.Started}
		j.happens(controller.AlarmEvent{Moment: at, Number: number})
	}
}
