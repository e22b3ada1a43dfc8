package simulate

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
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
		case controller.GrantOrder:
			j.asks(o)
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

// asks has the job granted the containers of a stage, or refused them. What it cannot do without it waits for, with
// nothing in hand.
func (j *job) asks(o controller.GrantOrder) {
	now, books := j.run.clock.Now(), j.run.books
	to, _ := scheduler.DemandOf(j.ID, o.Plan, books.Capacity())
	e := controller.GrantedEvent{Refused: books.Change(now, to)}
	switch {
	case e.Refused == "":
		j.demand.Gang, j.demand.Keep = to.Gang, to.Keep
		j.run.noteGranted()
	case o.Waits:
		j.demand.Gang, j.demand.Keep = to.Gang, to.Keep
		books.Return(j.ID, 0)
		err := books.Ask(j.demand)
		if err == nil {
			j.round, j.entering = o.Round, true
			j.run.decideSoon()
			return
		}
		e.Err = disdel.AsError(err)
	default:
		j.NotGranted++
	}
	j.run.decideSoon() // others may have what it gave back
	j.run.clock.At(now, func() { j.answered(e) })
}

// answered tells the manager what came of its asking.
func (j *job) answered(e controller.GrantedEvent) {
	if e.Moment = j.moment(); !j.over {
		j.happens(e)
	}
}

// rings tells the manager of an alarm whose time has come.
func (j *job) rings(number int) {
	if !j.over {
		j.happens(controller.AlarmEvent{Moment: j.moment(), Number: number})
	}
}

// moment is what the manager gets about time and cost.
func (j *job) moment() controller.Moment {
	return controller.Moment{At: j.run.clock.Now() - j.Started, Spent: j.CostGBs}
}
