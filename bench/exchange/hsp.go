package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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

// gradient is that of the mean loss of some rows.
func (p *plane) gradient(w planeWeights, rows []int) (g planeWeights) {
	for _, r := range rows {
		slope := (sigmoid(w.sum(p.rows[r])) - p.target[r]) / float64(len(rows))
		g[0] += slope * p.rows[r][0]
		g[1] += slope * p.rows[r][1]
		g[2] += slope
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
	order := lot.Perm(planeRows)
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
		n := min(planeBatch, len(order))
		f.delta = h.gradient(*w, order[:n])
		order = order[n:]
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

// run trains to a held-out loss (0: so many epochs) within a budget (0: none).
func (h *hybrid) run(by schedule.Chooser, target, budget float64, epochs int, seed uint64) (out schedule.Course) {
	lot := rand.New(rand.NewPCG(seed, 18))
	var w planeWeights
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

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// What a job is given: the loss that two functions come to in so many epochs, and so many times what the cheapest fixed
// choice takes.
const (
	hybridEpochs = 25
	hybridBudget = 1.25
)

// hsp is the time of a path of functions, found by search, with hybrid synchronous steps, over that of the best fixed
// number and memory of functions within the same GB-s: in the median of seeds, each with a best one of its own, known
// only afterwards.
func hsp(seeds int) error {
	h := hybrid{plane: newPlane(), world: hybridWorld(), luck: 0.1}
	two := h.run(schedule.Fixed(schedule.Choice{Workers: 2, Memory: 512}), 0, 0, hybridEpochs, 1)
	target := two.Loss
	figure("hsp_target_loss", target, "nats")
	path, ok := h.search(target)
	if !ok {
		return errors.New("no path comes to the target within its budget")
	}
	fmt.Println("path:", path)
	var ratios, costs []float64
	reached := 0
	for seed := range uint64(seeds) {
		all := h.grid(target, seed+2)
		cheapest, best := math.Inf(1), math.Inf(1)
		for _, c := range all {
			cheapest = min(cheapest, c.Cost)
		}
		var fixed schedule.Epoch
		for _, c := range all {
			if c.Cost <= hybridBudget*cheapest && c.Seconds < best {
				best, fixed = c.Seconds, c.Epochs[0]
			}
		}
		fmt.Printf("seed %d: best fixed %d functions of %.0f MB\n", seed+2, fixed.Workers, fixed.Choice.Memory)
		got := h.run(h.along(path, target), target, 0, mostHybridEpochs, seed+2)
		ratio := math.Inf(1)
		if got.Reached && got.Cost <= hybridBudget*cheapest {
			reached++
			ratio = got.Seconds / best
		}
		ratios, costs = append(ratios, ratio), append(costs, got.Cost/(hybridBudget*cheapest))
	}
	slices.Sort(ratios)
	figure("hsp_equal_cost", ratios[len(ratios)/2], "ratio")
	figure("hsp_equal_cost_worst", ratios[len(ratios)-1], "ratio")
	figure("hsp_reached", float64(reached)/float64(seeds), "of 1")
	figure("hsp_cost_of_budget", mean(costs), "ratio")
	return nil
}

// searchSeed is of the training that the path is looked for in; those that it is held against have others.
const searchSeed = 1

// search is the path with which training with one seed ends soonest, of a grid around the fixed choices, with something
// of the budget kept back for the luck of other seeds.
func (h *hybrid) search(target float64) (best schedule.Path, ok bool) {
	const spare = 0.9
	cheapest := math.Inf(1)
	for _, c := range h.grid(target, searchSeed) {
		cheapest = min(cheapest, c.Cost)
	}
	seconds := math.Inf(1)
	for _, first := range []float64{2, 4, 8, 15} {
		for _, last := range []float64{1, 2, 3} {
			for _, memory := range []float64{256, 512, 1024} {
				for _, exponent := range []float64{1, 2, 4} {
					p := schedule.Path{
						FirstWorkers: first, LastWorkers: last, FirstMemory: memory, LastMemory: memory, Exponent: exponent,
					}
					c := h.run(h.along(p, target), target, 0, mostHybridEpochs, searchSeed)
					if c.Reached && c.Cost <= spare*hybridBudget*cheapest && c.Seconds < seconds {
						best, seconds, ok = p, c.Seconds, true
					}
				}
			}
		}
	}
	return best, ok
}

// along chooses as a path has it: by how far the loss is on its way to what two functions come to, on a scale of
// logarithms of what is left.
func (h *hybrid) along(p schedule.Path, target float64) schedule.Chooser {
	floor := target - hybridNear
	first := h.loss(planeWeights{}) - floor
	return func(s schedule.State) schedule.Choice {
		left := max(s.Loss-floor, hybridNear)
		return p.At(math.Log(first/left) / math.Log(first/hybridNear))
	}
}

// hybridNear is how far above the loss that training tends to a target is thought to be, nats.
const hybridNear = 2e-4

// grid is the fixed choices that come to a target, without a bound for what they cost.
func (h *hybrid) grid(target float64, seed uint64) (out []schedule.Course) {
	for _, workers := range []int{1, 2, 3, 4, 5, 6, 8, 10, 12, 15} {
		for memory := h.world.LeastMemory; memory <= h.world.MostMemory; memory += 2 * h.world.Step {
			c := h.run(schedule.Fixed(schedule.Choice{Workers: workers, Memory: memory}), target, 0, mostHybridEpochs, seed)
			if c.Reached {
				out = append(out, c)
			}
		}
	}
	return out
}
