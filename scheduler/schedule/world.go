package schedule

import (
	"math"
	"math/rand/v2"
)

// World is a cloud and a job in formulas. An epoch has many batches that workers share; its time has a part for each
// worker alone, a shared part, and a part that grows with the workers. The loss falls by a share of its distance to a
// floor. More workers raise the floor, since each of them learns from an older model.
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
	Full      float64 // MB for a whole processor, and in proportion below; 0: always a whole one
	Program   float64 // MB that each worker needs
	Part      float64 // MB that all workers need together
	// s of an epoch by the number of workers, if measured; other numbers follow the formula
	Times map[int]float64
	// factors of Times with other memories than those measured, in ascending order; none: memory changes nothing
	Memories []Measured

	First     float64 // loss before the first epoch
	Target    float64 // loss that ends the job; 0: it trains Epochs
	Epochs    int     // of the job, without a target
	Floor     float64 // that the loss tends to with no workers
	PerWorker float64 // addition to the floor per worker
	Fall      float64 // share of the distance to the floor that is left after an epoch

	MostWorkers int     // at least 1
	LeastMemory float64 // MB
	MostMemory  float64 // MB; if it is LeastMemory, all have the same
	Step        float64 // MB; memories are multiples of it; 0: 64

	TimeNoise, LossNoise float64 // standard deviations of the logarithms of an epoch's time and loss
}

// Choice is the number of workers and the memory of an epoch.
type Choice struct {
	Workers int
	Memory  float64 // MB, of each
}

// Clip returns the nearest possible choice: whole steps of memory, and at least what a worker needs.
func (w *World) Clip(c Choice) Choice {
	c.Workers = min(max(1, c.Workers), max(1, w.MostWorkers))
	step := w.Step
	if step == 0 {
		step = 64
	}
	minimum := max(w.LeastMemory, w.Program+w.Part/float64(c.Workers))
	m := max(c.Memory, minimum)
	c.Memory = min(math.Ceil(m/step-1e-9)*step, max(w.MostMemory, minimum))
	return c
}

// Phases returns the parts of a worker's epoch, in s: reading its data, computing, and pushing its updates.
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

// Seconds is the time of an epoch.
func (w *World) Seconds(c Choice) float64 {
	if t, ok := w.Times[c.Workers]; ok {
		return t * w.slower(c.Memory)
	}
	fetch, compute, push := w.Phases(c)
	return fetch + compute + push
}

// Measured is a memory in MB, and the factor of an epoch's time in Times with it.
type Measured struct{ Memory, Slower float64 }

// slower is the factor of Times with a memory: interpolated on a logarithmic scale between two measured memories, and
// that of the nearest beyond them.
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

// Cost is the memory of the workers over so many seconds, in GB-s.
func (c Choice) Cost(seconds float64) float64 { return float64(c.Workers) * c.Memory / 1024 * seconds }

// After is the loss after an epoch.
func (w *World) After(loss float64, workers int) float64 {
	floor := w.Floor + w.PerWorker*float64(workers)
	return floor + (loss-floor)*w.Fall
}

// done tells whether a job with so many epochs and such a loss is at its end.
func (w *World) done(epochs int, loss float64) bool {
	if w.Target > 0 {
		return loss <= w.Target
	}
	return epochs >= w.Epochs
}

// progress is a job's progress from 0 to 1, by the logarithm of its loss or by its epochs.
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
	Processor                     float64 // share of the time spent computing
	Left, Budget                  float64 // GB-s; Budget 0: there is none
}

type Chooser func(State) Choice

func Fixed(c Choice) Chooser { return func(State) Choice { return c } }

// Epoch is a trained epoch: the state before it, the choice, and its results.
type Epoch struct {
	State
	Choice
	Took  float64 // s
	Spent float64 // GB-s
	Came  float64 // loss after it
}

// Course is a job from its start to its end.
type Course struct {
	Epochs  []Epoch
	Seconds float64
	Cost    float64 // GB-s
	Loss    float64
	Reached bool // its target, or its last epoch, within its budget
}

// mostEpochs ends a job that does not reach its target.
const mostEpochs = 400

// Run trains a job with the choices of a Chooser. With a budget above 0 it ends when that is used up; lot draws the
// noise, nil: none.
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

func (w *World) epoch(s State, c Choice, lot *rand.Rand) Epoch {
	e := Epoch{State: s, Choice: c, Took: w.Seconds(c), Came: w.After(s.Loss, c.Workers)}
	if lot != nil {
		e.Took *= math.Exp(w.TimeNoise * lot.NormFloat64())
		e.Came *= math.Exp(w.LossNoise * lot.NormFloat64())
	}
	e.Spent = c.Cost(e.Took)
	return e
}

// next is the state after an epoch, with so much left.
func (w *World) next(e Epoch, remaining float64) State {
	fetch, compute, push := w.Phases(e.Choice)
	by := e.Took / max(1e-9, fetch+compute+push)
	return State{
		Epoch: e.State.Epoch + 1, Loss: e.Came, Seconds: e.Took,
		Fetch: by * fetch, Compute: by * compute, Push: by * push,
		Memory:    min(1, (w.Program+w.Part/float64(e.Workers))/max(1, e.Choice.Memory)),
		Processor: by * compute / max(1e-9, e.Took), Left: remaining, Budget: e.Budget,
	}
}
