package schedule

import (
	"math"
	"math/rand/v2"
)

// World is a cloud and a job on it, in formulas: epochs of so many batches that workers share, whose time has a part
// that each worker has alone, one that they share, and one that grows with them; and a loss that falls by a share of
// its distance to a floor, which more workers raise, since each of them learns from an older model.
//
// Seconds and megabytes are floats; costs are GB-s by use.
type World struct {
	Batches   float64 // of an epoch
	Load      float64 // s of each worker in each epoch
	Fetch     float64 // s for the data of a batch
	Compute   float64 // s for a batch on a whole processor
	Push      float64 // s for the update of a batch
	Saturates float64 // workers with which Push takes twice as long; 0: it never does
	Merge     float64 // s of an epoch for each worker
	Full      float64 // MB with which a worker has a whole processor, and in proportion below; 0: it always has one
	Program   float64 // MB that each worker needs
	Part      float64 // MB that the workers need together
	// s of an epoch by the number of workers, where they were measured; those that are missing are as above
	Times map[int]float64
	// what those take with other memories than they were measured with, by memory, the least first; without it they are
	// the same with any
	Memories []Measured

	First     float64 // loss before the first epoch
	Target    float64 // that the job is to come to; 0: it trains Epochs
	Epochs    int     // that the job trains, without a target
	Floor     float64 // that the loss tends to with no workers
	PerWorker float64 // more of it for each worker
	Fall      float64 // share of the distance to the floor that an epoch leaves

	MostWorkers int     // at least 1
	LeastMemory float64 // MB
	MostMemory  float64 // MB; that of all, where it is LeastMemory
	Step        float64 // MB, that memories are multiples of; 0: 64

	TimeNoise, LossNoise float64 // deviations of the logarithms of an epoch's time and of its loss
}

// Choice is what an epoch is trained with.
type Choice struct {
	Workers int
	Memory  float64 // MB, of each
}

// Clip is the choice that there is which is nearest: whole steps of memory, and at least what a worker needs. Learning
// by running out of memory is for nobody.
func (w *World) Clip(c Choice) Choice {
	c.Workers = min(max(1, c.Workers), max(1, w.MostWorkers))
	step := w.Step
	if step == 0 {
		step = 64
	}
	least := max(w.LeastMemory, w.Program+w.Part/float64(c.Workers))
	m := max(c.Memory, least)
	c.Memory = min(math.Ceil(m/step-1e-9)*step, max(w.MostMemory, least))
	return c
}

// Phases is what a worker's epoch takes, s: reading its data, computing, and pushing its updates.
func (w *World) Phases(c Choice) (fetch, compute, push float64) {
	n, share := float64(c.Workers), 1.0
	if w.Full > 0 {
		share = min(1, c.Memory/w.Full)
	}
	batches := w.Batches / n
	push = batches * w.Push
	if w.Saturates > 0 {
		push *= 1 + n/w.Saturates
	}
	return w.Load + batches*w.Fetch, batches * w.Compute / share, push + w.Merge*n
}

// Seconds is what an epoch takes.
func (w *World) Seconds(c Choice) float64 {
	if t, ok := w.Times[c.Workers]; ok {
		return t * w.slower(c.Memory)
	}
	fetch, compute, push := w.Phases(c)
	return fetch + compute + push
}

// Measured is a memory, MB, and how many times as long an epoch takes with it as Times say.
type Measured struct{ Memory, Slower float64 }

// slower is how many times as long an epoch takes with a memory as Times say: between two that were measured, evenly on
// a scale of logarithms, and beyond them as with the nearest.
func (w *World) slower(memory float64) float64 {
	all := w.Memories
	if len(all) == 0 {
		return 1
	}
	if memory <= all[0].Memory {
		return all[0].Slower
	}
	for i, b := range all[1:] {
		if a := all[i]; memory <= b.Memory {
			z := math.Log(memory/a.Memory) / math.Log(b.Memory/a.Memory)
			return a.Slower * math.Pow(b.Slower/a.Slower, z)
		}
	}
	return all[len(all)-1].Slower
}

// Cost is what workers hold that run so long, GB-s.
func (c Choice) Cost(seconds float64) float64 { return float64(c.Workers) * c.Memory / 1024 * seconds }

// After is the loss that an epoch brings one to.
func (w *World) After(loss float64, workers int) float64 {
	floor := w.Floor + w.PerWorker*float64(workers)
	return floor + (loss-floor)*w.Fall
}

// done tells whether a job that has trained so many epochs to such a loss is at its end.
func (w *World) done(epochs int, loss float64) bool {
	if w.Target > 0 {
		return loss <= w.Target
	}
	return epochs >= w.Epochs
}

// progress is how far a job is, from 0 to 1: by the logarithm of its loss, or by its epochs.
func (w *World) progress(s State) float64 {
	p := float64(s.Epoch) / float64(max(1, w.Epochs-1))
	if w.Target > 0 {
		p = math.Log(w.First/s.Loss) / math.Log(w.First/w.Target)
	}
	return min(1, max(0, p))
}

// State is what is known at the end of an epoch. Times are those of the epoch.
type State struct {
	Epoch                         int
	Loss                          float64
	Seconds, Fetch, Compute, Push float64
	Memory                        float64 // share of the memory that was used
	Processor                     float64 // share of the time that was computed
	Left, Budget                  float64 // GB-s; Budget 0: there is none
}

// Chooser decides about the next epoch.
type Chooser func(State) Choice

// Fixed always chooses the same.
func Fixed(c Choice) Chooser { return func(State) Choice { return c } }

// Epoch is one that was trained: what was known before it, what was chosen, and what came.
type Epoch struct {
	State
	Choice
	Took  float64 // s
	Spent float64 // GB-s
	Came  float64 // loss
}

// Course is a job from its start to its end.
type Course struct {
	Epochs  []Epoch
	Seconds float64
	Cost    float64 // GB-s
	Loss    float64
	Reached bool // its target, or its last epoch, within its budget
}

// mostEpochs ends a job that comes to no end.
const mostEpochs = 400

// Run trains a job by what somebody chooses. With a budget above 0 it ends where that is used up; lot draws the noise,
// and nil has none.
func (w *World) Run(by Chooser, budget float64, lot *rand.Rand) Course {
	s := State{Loss: w.First, Left: budget, Budget: budget}
	out := Course{Loss: w.First}
	for !w.done(s.Epoch, s.Loss) && s.Epoch < mostEpochs {
		c := by(s)
		if c.Workers < 1 { // it gives up
			return out
		}
		e := w.epoch(s, w.Clip(c), lot)
		out.Epochs = append(out.Epochs, e)
		out.Seconds, out.Cost, out.Loss = out.Seconds+e.Took, out.Cost+e.Spent, e.Came
		if budget > 0 && out.Cost > budget {
			return out
		}
		s = w.next(e, budget-out.Cost)
	}
	out.Reached = w.done(s.Epoch, s.Loss)
	return out
}

// epoch trains one.
func (w *World) epoch(s State, c Choice, lot *rand.Rand) Epoch {
	e := Epoch{State: s, Choice: c, Took: w.Seconds(c), Came: w.After(s.Loss, c.Workers)}
	if lot != nil {
		e.Took *= math.Exp(w.TimeNoise * lot.NormFloat64())
		e.Came *= math.Exp(w.LossNoise * lot.NormFloat64())
	}
	e.Spent = c.Cost(e.Took)
	return e
}

// next is what is known after an epoch, with so much left.
func (w *World) next(e Epoch, left float64) State {
	fetch, compute, push := w.Phases(e.Choice)
	by := e.Took / max(1e-9, fetch+compute+push)
	return State{
		Epoch: e.State.Epoch + 1, Loss: e.Came, Seconds: e.Took,
		Fetch: by * fetch, Compute: by * compute, Push: by * push,
		Memory:    min(1, (w.Program+w.Part/float64(e.Workers))/max(1, e.Choice.Memory)),
		Processor: by * compute / max(1e-9, e.Took), Left: left, Budget: e.Budget,
	}
}
