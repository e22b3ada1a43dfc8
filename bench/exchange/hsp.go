package main

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/disdel/disdel/scheduler/schedule"
)

// plane is the shape of SIREN's Table I: a logistic regression of 100,000 rows of two numbers, by stochastic gradients.
// One of the numbers is small, so that its weight takes epochs, while the other one bounds the rate.
type plane struct {
	rows   [][2]float64
	target []float64
	held   int // of the rows, the last, that nobody learns from
}

const (
	planeRows  = 100_000
	planeHeld  = 10_000
	planeBatch = 150
	planeSmall = 0.05 // deviation of the second number
	planeRate  = 0.6
)

func newPlane() *plane {
	lot := rand.New(rand.NewPCG(17, 1))
	p := &plane{held: planeHeld}
	for range planeRows + planeHeld {
		x := [2]float64{lot.NormFloat64(), planeSmall * lot.NormFloat64()}
		y := 0.0
		if lot.Float64() < sigmoid(1.2*x[0]+1.15/planeSmall*x[1]-0.4) {
			y = 1
		}
		p.rows, p.target = append(p.rows, x), append(p.target, y)
	}
	return p
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// weights are of the two numbers, and a bias.
type planeWeights [3]float64

func (w *planeWeights) sum(x [2]float64) float64 { return w[0]*x[0] + w[1]*x[1] + w[2] }

// planeBatches is how many minibatches there are. As SIREN's lie on S3, they are the same in every epoch, in another
// order.
const planeBatches = (planeRows + planeBatch - 1) / planeBatch

// gradient is that of the mean loss of a minibatch.
func (p *plane) gradient(w planeWeights, batch int) (g planeWeights) {
	from, end := batch*planeBatch, min((batch+1)*planeBatch, planeRows)
	target := p.target[from:end]
	for i, x := range p.rows[from:end] {
		slope := sigmoid(w.sum(x)) - target[i]
		g[0] += slope * x[0]
		g[1] += slope * x[1]
		g[2] += slope
	}
	for i := range g {
		g[i] /= float64(end - from)
	}
	return g
}

// loss is that of the rows that are held out.
func (p *plane) loss(w planeWeights) (sum float64) {
	for r := planeRows; r < len(p.rows); r++ {
		z := w.sum(p.rows[r])
		sum += math.Log1p(math.Exp(-math.Abs(z))) + math.Max(z, 0) - p.target[r]*z
	}
	return sum / float64(p.held)
}

// hybrid is training of a plane by functions that take batches from a queue, read the weights, and send what their
// batch changes, whatever others have sent meanwhile: hybrid synchronous, with a barrier an epoch. Gradients are real;
// what functions take is a world's: each its start, the fetching and computing of its batches, processors in proportion
// to memory, and a store that takes one update after another.
type hybrid struct {
	*plane
	world *schedule.World
	luck  float64 // deviation of the logarithm of a batch's time
	log   diary
}

// function is one that runs.
type function struct {
	at    float64 // when it does what is next
	next  func(*function)
	delta planeWeights
	ended bool
}

// epoch trains one, and returns what it takes and what functions hold in it, GB-s.
func (h *hybrid) epoch(w *planeWeights, c schedule.Choice, lot *rand.Rand) (seconds, cost float64) {
	order := lot.Perm(planeBatches)
	share := 1.0
	if h.world.Full > 0 {
		share = min(1, c.Memory/h.world.Full)
	}
	var store float64 // when it is free
	var begin, send, sent func(*function)
	begin = func(f *function) {
		if len(order) == 0 {
			f.ended = true
			return
		}
		f.delta = h.gradient(*w, order[0])
		order = order[1:]
		f.at += h.world.Fetch + h.world.Compute/share*math.Exp(h.luck*lot.NormFloat64())
		f.next = send
	}
	send = func(f *function) {
		store = max(store, f.at) + h.world.Push
		f.at, f.next = store, sent
	}
	sent = func(f *function) {
		for i, d := range f.delta {
			w[i] -= planeRate * d
		}
		f.next = begin
	}
	functions := make([]*function, c.Workers)
	for i := range functions {
		functions[i] = &function{at: h.world.Load * math.Exp(h.luck*lot.NormFloat64()), next: begin}
	}
	for {
		var first *function
		for _, f := range functions {
			if !f.ended && (first == nil || f.at < first.at) {
				first = f
			}
		}
		if first == nil {
			break
		}
		first.next(first)
	}
	for _, f := range functions {
		seconds = max(seconds, f.at)
		cost += schedule.Choice{Workers: 1, Memory: c.Memory}.Cost(f.at)
	}
	return seconds, cost
}

// mostHybridEpochs ends a training that does not come to its target.
const mostHybridEpochs = 60

// goal is what a training is to come to.
type goal struct {
	loss   float64 // held-out; 0: none
	cost   float64 // GB-s that it may cost; 0: any
	epochs int     // it trains; 0: mostHybridEpochs at most
}

// run trains to a goal.
func (h *hybrid) run(by schedule.Chooser, to goal, seed uint64) (out schedule.Course) {
	lot := rand.New(rand.NewPCG(seed, 18))
	var w planeWeights
	target, budget, epochs := to.loss, to.cost, cmp.Or(to.epochs, mostHybridEpochs)
	s := schedule.State{Loss: h.loss(w), Left: budget, Budget: budget}
	for s.Epoch < epochs && s.Loss > target {
		c := by(s)
		if c.Workers < 1 {
			break
		}
		c = h.world.Clip(c)
		e := schedule.Epoch{State: s, Choice: c}
		e.Took, e.Spent = h.epoch(&w, c, lot)
		e.Came = h.loss(w)
		out.Epochs = append(out.Epochs, e)
		out.Seconds, out.Cost, out.Loss = out.Seconds+e.Took, out.Cost+e.Spent, e.Came
		s = schedule.State{Epoch: s.Epoch + 1, Loss: e.Came, Seconds: e.Took, Left: budget - out.Cost, Budget: budget}
		if budget > 0 && out.Cost > budget {
			return out
		}
	}
	out.Reached = s.Loss <= target
	return out
}

// hybridWorld is the functions of Table I, a tenth as many: up to 15, of 128 to 1,024 MB.
func hybridWorld() *schedule.World {
	return &schedule.World{
		Batches: math.Ceil(planeRows / planeBatch), Load: 1, Fetch: 0.02, Compute: 0.1, Push: 0.004, Saturates: 40,
		Full: 1792, Program: 100, Part: 60, MostWorkers: 15, LeastMemory: 128, MostMemory: 1024, Step: 64,
		TimeNoise: 0.02, LossNoise: 5e-5,
	}
}
