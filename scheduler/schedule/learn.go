package schedule

import (
	"math"
	"math/rand/v2"
)

// The length of the training.
const (
	iterations = 200
	episodes   = 8 // per iteration
)

// Reward values a course. A success loses its time, in units of the time of the best fixed choice, and wins Prize. A
// failure loses Prize times a half plus what is missing, and at least one and a half such times. With the reward that
// SIREN prints, once all episodes fail, spending the budget sooner pays, and learning ends there.
type Reward struct {
	Unit  float64 // s
	Prize float64 // 0: 4, so that a success of up to seven units exceeds any failure
}

const (
	prize      = 4
	leastFault = 1.5 // units: the least charge of a failure
)

// Of returns the sum of a course's rewards from each of its epochs on.
func (r Reward) Of(w *World, c Course) []float64 {
	p := r.Prize
	if p == 0 {
		p = prize
	}
	out := make([]float64, len(c.Epochs))
	if len(out) == 0 {
		return out
	}
	end := p
	if !c.Reached {
		end = -p*(0.5+w.distance(len(c.Epochs), c.Loss)) - max(0, leastFault-c.Seconds/r.Unit)
	}
	for i := len(out) - 1; i >= 0; i-- {
		end -= c.Epochs[i].Took / r.Unit
		out[i] = end
	}
	return out
}

// Whole is the reward of a whole course.
func (r Reward) Whole(w *World, c Course) float64 {
	if len(c.Epochs) == 0 {
		return math.Inf(-1)
	}
	return r.Of(w, c)[0]
}

// Lesson is the progress of training: after each iteration the share of episodes that reached their end, and their
// mean return.
type Lesson struct {
	Reached []float64
	Return  []float64
	// the first iteration, from 1, after which the network without noise is as fast as the best fixed choice; 0: none
	AsFixed int
}

// Training is how a network is trained.
type Training struct {
	Budget  float64 // GB-s; 0: none
	Seed    uint64
	Scratch bool // start from the best fixed choice only, and not from the best path
}

// Learn trains a network in a world by REINFORCE. The network first imitates the path of Search. The best network of
// all iterations is returned, so that without noise it is no slower than the path. In a world with noise the network
// first imitates Replanned, and the best network is the one whose jobs, under a guard and with noise, end soonest. ok
// is false if no fixed choice reaches the end.
func (w *World) Learn(t Training) (n *Net, lesson Lesson, ok bool) {
	fixed, base, ok := w.Best(t.Budget)
	if !ok {
		return nil, lesson, false
	}
	lot := rand.New(rand.NewPCG(t.Seed, 16))
	n = w.begin(t, fixed, base, lot)
	reward, step := Reward{Unit: base.Seconds}, newAdam()
	best := n.copied()
	value := w.worth(n, t, reward)
	for i := range iterations {
		share, mean := w.iterate(n, t.Budget, reward, step, lot)
		lesson.Reached, lesson.Return = append(lesson.Reached, share), append(lesson.Return, mean)
		greedy := w.Run(n.Greedy(), t.Budget, nil)
		if lesson.AsFixed == 0 && greedy.Reached && greedy.Seconds <= base.Seconds {
			lesson.AsFixed = i + 1
		}
		if w.noisy() && (i+1)%rehearsed != 0 {
			continue
		}
		if v := w.worth(n, t, reward); v > value {
			value = v
			best = n.copied()
		}
	}
	return best, lesson, true
}

// In a world with noise a network is tested after every rehearsed iterations, with so many draws.
const (
	rehearsed  = 10
	rehearsals = 8
)

// worth is the mean return of jobs of a network without exploration.
func (w *World) worth(n *Net, t Training, reward Reward) (mean float64) {
	if t.Scratch || !w.noisy() {
		return reward.Whole(w, w.Run(n.Greedy(), t.Budget, nil))
	}
	for i := range uint64(rehearsals) {
		lot := rand.New(rand.NewPCG(t.Seed, 1000+i))
		mean += reward.Whole(w, w.Run(w.Guard(n.Greedy()), t.Budget, lot)) / rehearsals
	}
	return mean
}

func (w *World) noisy() bool { return w.TimeNoise > 0 || w.LossNoise > 0 }

// begin is the network that training starts with.
func (w *World) begin(t Training, fixed Choice, base Course, lot *rand.Rand) *Net {
	n := &Net{
		Weights: make([]float64, weights),
		Scale:   Scale{Seconds: base.Seconds / 30, Loss: w.First},
	}
	for i := range hidden * (features + 1) {
		n.Weights[i] = lot.NormFloat64() / math.Sqrt(features)
	}
	for i := hidden * (features + 1); i < weights; i++ {
		n.Weights[i] = 0.01 * lot.NormFloat64()
	}
	// From scratch, some of the first episodes must succeed: half the workers. Around a path there is less to explore.
	about, deviations := [2]float64{math.Log2(float64(fixed.Workers)) - 1, math.Log2(fixed.Memory)}, [2]float64{-0.7, -1.2}
	if !t.Scratch {
		deviations = [2]float64{-2, -2.5}
	}
	for k := range 2 {
		n.bias(k, about[k])
		n.bias(2+k, deviations[k])
	}
	if t.Scratch {
		return n
	}
	if w.noisy() {
		n.follow(w, w.Replanned(), t.Budget, lot)
		return n
	}
	path, _, _ := w.Search(t.Budget) // where a fixed choice comes to the end, a path does
	n.follow(w, path.Along(w), t.Budget, lot)
	return n
}

func (n *Net) bias(output int, to float64) {
	n.Weights[hidden*(features+1)+output*(hidden+1)+hidden] = to
}

// iterate runs episodes and takes one step. It returns the share that reached their end, and the mean reward.
func (w *World) iterate(n *Net, budget float64, reward Reward, step *adam, lot *rand.Rand) (share, mean float64) {
	var all []played
	for range episodes {
		p := w.play(n, budget, lot)
		if p.returns = reward.Of(w, p.course); p.course.Reached {
			share += 1.0 / episodes
		}
		mean += p.returns[0] / episodes
		all = append(all, p)
	}
	step.climb(n.Weights, n.direction(all))
	return share, mean
}

// played is an episode: its choices before rounding, and its return from each epoch on.
type played struct {
	course  Course
	actions [][2]float64
	returns []float64
}

func (w *World) play(n *Net, budget float64, lot *rand.Rand) played {
	var p played
	p.course = w.Run(func(s State) Choice {
		c, a := n.sample(s, lot)
		p.actions = append(p.actions, a)
		return c
	}, budget, lot)
	return p
}

// direction is the gradient of the episodes' returns, each relative to the mean of the same epoch.
func (n *Net) direction(all []played) []float64 {
	var baseline, count []float64
	for _, p := range all {
		for t, g := range p.returns {
			if t == len(baseline) {
				baseline, count = append(baseline, 0), append(count, 0)
			}
			baseline[t], count[t] = baseline[t]+g, count[t]+1
		}
	}
	var squares, norm float64
	for _, p := range all {
		for t, g := range p.returns {
			d := g - baseline[t]/count[t]
			squares, norm = squares+d*d, norm+1
		}
	}
	sd := max(1e-9, math.Sqrt(squares/max(1, norm)))
	out := make([]float64, weights)
	for _, p := range all {
		for t, g := range p.returns {
			n.gradient(out, p.course.Epochs[t].State, p.actions[t], (g-baseline[t]/count[t])/sd/float64(len(all)))
		}
	}
	return out
}

// follow makes the outputs' means imitate a Chooser, by least squares over states of its jobs and of jobs with
// somewhat more or fewer workers.
func (n *Net) follow(w *World, by Chooser, budget float64, lot *rand.Rand) {
	const runs, exploration, ridge = 12, 0.15, 1e-6
	var a [hidden + 1][hidden + 1]float64
	var b [2][hidden + 1]float64
	for range runs {
		var chosen []Choice
		along := func(s State) Choice {
			c := by(s)
			chosen = append(chosen, w.Clip(c))
			c.Workers = int(math.Round(float64(c.Workers) * math.Exp(exploration*lot.NormFloat64())))
			return c
		}
		for i, e := range w.Run(along, budget, lot).Epochs {
			to := chosen[i]
			h := hiddenOf(n.Weights, n.features(e.State))
			row := append(h[:], 1)
			target := [2]float64{math.Log2(float64(to.Workers)), math.Log2(to.Memory)}
			for i, u := range row {
				for j, v := range row {
					a[i][j] += u * v
				}
				for k := range b {
					b[k][i] += u * target[k]
				}
			}
		}
	}
	for i := range a {
		a[i][i] += ridge
	}
	for k := range b {
		x := solve(a, b[k])
		copy(n.Weights[hidden*(features+1)+k*(hidden+1):], x[:])
	}
}

// solve returns the x of a x = b, by elimination with pivots. a is positive definite.
func solve(a [hidden + 1][hidden + 1]float64, b [hidden + 1]float64) (x [hidden + 1]float64) {
	n := len(b)
	for i := range n {
		p := i
		for r := i + 1; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[p][i]) {
				p = r
			}
		}
		a[i], a[p], b[i], b[p] = a[p], a[i], b[p], b[i]
		for r := i + 1; r < n; r++ {
			f := a[r][i] / a[i][i]
			for c := i; c < n; c++ {
				a[r][c] -= f * a[i][c]
			}
			b[r] -= f * b[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for c := i + 1; c < n; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

// Improve returns a network that has learned from a real job, by one step of REINFORCE as in training. The epochs'
// choices become more likely if the job was faster than the network's own jobs in the world, and less likely if it
// was slower. The network itself does not change. A job without epochs teaches nothing.
//
// The actions of a real job are those after rounding: a choice of the planner, or one that a guard changed, is a
// lesson too.
func (n *Net) Improve(w *World, job Course, budget float64) *Net {
	out := n.copied()
	_, base, ok := w.Best(budget)
	if len(job.Epochs) == 0 || !ok {
		return out
	}
	reward := Reward{Unit: base.Seconds}
	own := reward.Of(w, w.Run(n.Greedy(), budget, nil))
	gradient := make([]float64, weights)
	for t, g := range reward.Of(w, job) {
		expected := own[min(t, len(own)-1)]
		e := job.Epochs[t]
		a := [2]float64{math.Log2(float64(max(1, e.Workers))), math.Log2(max(1, e.Choice.Memory))}
		advantage := min(max(-1, g-expected), 1)
		n.gradient(gradient, e.State, within(n, e.State, a), advantage/float64(len(job.Epochs)))
	}
	newAdam().climb(out.Weights, gradient)
	return out
}

// within limits an action to what the network might itself draw now and then: a foreign choice far away would pull
// all weights there.
func within(n *Net, s State, a [2]float64) [2]float64 {
	const far = 3
	o := n.think(s)
	for k := range a {
		sd := math.Exp(o.logSD[k])
		a[k] = min(max(o.mean[k]-far*sd, a[k]), o.mean[k]+far*sd)
	}
	return a
}
