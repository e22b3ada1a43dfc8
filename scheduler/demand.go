package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// DemandOf is what a planned job asks of a platform that has whole: its gang, for how long it keeps it, how long that
// takes (by its forecast, or, where there is none, by its timeouts) and what it costs; and a sentence for the plan that
// says so. Whose job it is, its priority and its arrival are for the caller to add.
//
// A job keeps its containers for its life where the platform holds all of them, so that every round after the first
// finds them warm. Where it does not, what a round needs at once is granted for a round: all train actions and the
// widest level together, or, on a platform that runs the train actions in waves, one wave, in whose room the level and
// the evaluation run after it.
func DemandOf(id disdel.JobID, plan disdel.Plan, whole Capacity) (Demand, string) {
	d := Demand{Job: id}
	life, round := gangs(plan)
	var why string
	switch wave := wave(plan); {
	case whole.Holds(life.Room()):
		d.Gang = life
		why = fmt.Sprintf("containers: %v, are kept for the job's life: rounds after the first find them warm", life)
	case whole.Holds(round.Room()):
		d.Gang, d.Keep = round, KeepRound
		why = fmt.Sprintf("containers: %v, are granted round by round: the job's life would take %v", round,
			whole.Lacks(life.Room()))
	default:
		d.Gang, d.Keep = wave, KeepRound
		why = fmt.Sprintf("containers: %v, are granted round by round and shared by its tasks, which start cold: "+
			"all of a round would take %v", wave, whole.Lacks(round.Room()))
	}
	if f := plan.Forecast; f != nil {
		d.Takes, d.Cost = f.Duration, f.LeastCost(false)
	} else {
		all := LongestTime(plan)
		d.Takes = disdel.Interval[disdel.Millis]{Likely: all, High: all}
	}
	if d.Keep == KeepRound {
		d.Takes = perRound(d.Takes, plan.Rounds)
	}
	return d, why
}

// LongestTime is the longest time that a plan allows: every activation takes its timeout, in every leg and wave of
// every round. Back-filling uses it for jobs whose time is unknown, such as the first batch in a new home.
func LongestTime(plan disdel.Plan) disdel.Millis {
	timeout := func(task disdel.Task) disdel.Millis {
		a, _ := plan.Action(task)
		return a.Limits.Timeout
	}
	round := disdel.Millis(max(1, plan.Legs)*plan.Waves()) * timeout(disdel.TaskTrain)
	round += disdel.Millis(len(plan.Levels)) * timeout(disdel.TaskAggregate)
	if plan.HeldOut > 0 {
		round += timeout(disdel.TaskEvaluate)
	}
	return disdel.Millis(max(1, plan.Rounds)) * round
}

func perRound(whole disdel.Interval[disdel.Millis], rounds int) disdel.Interval[disdel.Millis] {
	n := disdel.Millis(max(1, rounds))
	return disdel.Interval[disdel.Millis]{Low: whole.Low / n, Likely: whole.Likely / n, High: (whole.High + n - 1) / n}
}

// gangs is what a plan's job keeps for its life, and what its round needs at once. An aggregation takes the place of
// train actions that have ended, of its processors and of the namespace's concurrent invocations, and so does an
// evaluation: of those they need none of their own. They need containers beside the others'.
func gangs(plan disdel.Plan) (life, round Gang) {
	round = trains(plan, max(1, min(plan.Parallel, plan.Workers)))
	if widest := widest(plan); widest > 0 {
		round = append(round, member(plan, disdel.TaskAggregate, widest))
	}
	life = append(life, round...)
	if _, ok := plan.Action(disdel.TaskEvaluate); ok && plan.HeldOut > 0 {
		life = append(life, member(plan, disdel.TaskEvaluate, 1))
	}
	return life, round
}

// wave is the least room that a round gets on in: as many train actions as run at once, or one of another task where
// that is larger than all of these.
func wave(plan disdel.Plan) Gang {
	least := trains(plan, max(1, min(plan.Parallel, plan.Workers)))
	for _, task := range []disdel.Task{disdel.TaskAggregate, disdel.TaskEvaluate} {
		other := Gang{member(plan, task, 1)}
		if other.Room().Memory > least.Room().Memory {
			other[0].Each.Millicores, other[0].Each.Concurrent = least[0].Each.Millicores, 1
			least = other
		}
	}
	return least
}

func trains(plan disdel.Plan, n int) Gang {
	train := member(plan, disdel.TaskTrain, n)
	train.Each.Millicores, train.Each.Concurrent = 1000*max(1, plan.Threads), 1
	if most := plan.Platform.Millicores; most > 0 {
		train.Each.Millicores = min(train.Each.Millicores, most)
	}
	if most := plan.Platform.Processors; most > 0 { // more threads than there are processors share them
		train.Each.Millicores = min(train.Each.Millicores, 1000*most/n)
	}
	return Gang{train}
}

func member(plan disdel.Plan, task disdel.Task, n int) Member {
	a, _ := plan.Action(task)
	share := DeviceShare(plan.Platform.MaxDevice, a.Limits.Device)
	return Member{Task: task, Count: n, Each: Capacity{Memory: a.Limits.Memory, Device: share}}
}

func widest(plan disdel.Plan) int {
	n := 0
	for _, l := range plan.Levels {
		n = max(n, len(l.Clusters))
	}
	return n
}

// Fits returns OverLimit with the arithmetic for a demand that can never be granted: its gang alone is more than the
// platform has, or than its tenant may have.
func Fits(whole Capacity, d Demand) error {
	needs := d.Gang.Room()
	refuse := func(hint, format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "admit job", Job: d.Job, Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	q := d.Quota
	switch lacks := whole.Lacks(needs); {
	case d.Gang.Size() == 0:
		return refuse("check the plan", "a job that needs no container is none")
	case lacks != "":
		return refuse("fewer or smaller actions: distribution.workers, training.batchSize; or a larger platform",
			"the gang (%v) needs %v", d.Gang, lacks)
	case q.Memory > 0 && needs.Memory > q.Memory:
		return refuse("fewer or smaller actions: distribution.workers, training.batchSize; or a larger quota",
			"the gang (%v) needs %v of memory, and the quota of %s is %v", d.Gang, needs.Memory.Beside(q.Memory),
			whose(d.Tenant), q.Memory.Beside(needs.Memory))
	case q.Cost > 0 && d.Cost > q.Cost-q.Spent:
		return refuse("fewer training.epochs, or a larger quota",
			"the job is likely to cost %.4g GB-s, and of the quota of %s, %.4g GB-s, %.4g are left", d.Cost,
			whose(d.Tenant), q.Cost, max(0, q.Cost-q.Spent))
	default:
		return nil
	}
}

func whose(tenant string) string {
	if tenant == "" {
		return "those without a tenant"
	}
	return "tenant " + tenant
}
