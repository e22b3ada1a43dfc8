package simulate

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// What the manager is told, and what it asks for, is in this file alone.

func started() controller.Event { return controller.StartedEvent{} }

func ended(a disdel.Activation, at controller.Moment) controller.Event {
	if a.Outcome == disdel.OutcomeThrottled {
		return controller.RefusedEvent{Moment: at, Activation: a}
	}
	return controller.EndedEvent{Moment: at, Activation: a}
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
		case controller.StageOrder:
			if j.stages == nil {
				j.stages = map[int]disdel.Plan{}
			}
			j.stages[o.Number] = o.Plan
		case controller.DecisionOrder:
			j.course.decided(o.Decision)
		case controller.RoundOrder:
			j.course.round(o.Round, j.run.clock.Now()-j.Started)
			j.TrainLoss = o.Round.TrainLoss
		case controller.AdjustOrder, controller.CheckpointOrder, controller.ForgetOrder, controller.EndOrder,
			controller.LetGoOrder, controller.SweepOrder, controller.BestOrder:
		}
	}
}

// rings tells the manager of an alarm whose time has come.
func (j *job) rings(number int) {
	if !j.over {
		j.happens(controller.AlarmEvent{Moment: j.moment(), Number: number})
	}
}

// moment is what the manager is told of time and cost.
func (j *job) moment() controller.Moment {
	return controller.Moment{At: j.run.clock.Now() - j.Started, Spent: j.CostGBs}
}
