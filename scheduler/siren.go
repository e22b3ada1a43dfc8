package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler/schedule"
)

// Siren lets a policy network decide how many workers the next epoch has, and how much memory each gets (SIREN,
// INFOCOM 2019). REINFORCE trains the network in a simulated cloud. The cloud is fitted to the first numbers of
// workers that were measured. The network also learns from earlier jobs of the same kind.
//
// Other memories than that of the job's first epoch are measured first: twice as much while that is clearly faster,
// and half of a memory that the job file gives. Siren draws one choice from the network's distribution; the job and
// the round seed the draw. If the network is no faster in the cloud than the best fixed number of workers, Siren
// takes that number.
//
// No file stores the network: it is trained once per job from the same observations, so a Siren is for one job.
// Package schedule says how ours differs from the paper: the reward, and where training begins.
type Siren struct {
	trained *sirenNet // of this job; nil: not yet
}

// sirenNet is a network and the world it was trained in.
type sirenNet struct {
	seen   int // observations of the job that it was trained with
	past   int // observations of earlier jobs
	net    *schedule.Net
	world  *schedule.World
	unit   float64 // the memory of the job's first epoch in the world
	fixed  schedule.Choice
	budget float64 // GB-s left when it was trained
	before float64 // epochs trained by then
	slower bool    // it is slower than the best fixed choice
}

// sirenSeed seeds training, so that jobs of a kind learn alike.
const sirenSeed = 16

// mostLessons is how many earlier jobs, the newest, it learns from.
const mostLessons = 20

// Name returns the policy's name in job files.
func (*Siren) Name() string { return "siren" }

// Meaning returns what explain says.
func (*Siren) Meaning() string {
	return "does as a network says that is trained in a simulated cloud, and goes on learning from job to job"
}

// Decide trains the network once two numbers of workers are known, and uses it from then on.
func (p *Siren) Decide(in Input) disdel.Decision {
	s := speedsOf(in)
	asked, untried := "", ""
	if in.Boundary == disdel.BoundaryEpoch {
		d, why, ok := s.tryMemory(in)
		if ok {
			return d
		}
		untried = why
	}
	out := s.scheduled(in, func(all []timed) schedule.Choice {
		n := p.network(in)
		if n == nil {
			return schedule.Choice{Workers: s.now}
		}
		c, why := n.choose(in)
		asked = why
		if better, ok := s.betterThan(in, all, c.Workers); ok {
			c.Workers = better
			asked += fmt.Sprintf(", which is known to be worse than %d", better)
		}
		c.Memory *= s.unit() / n.unit // the price of a worker follows the newest epoch
		if m, ok := s.memories.nearest(s.unit(), c); ok {
			if better, ok := s.memories.better(m, in.Goal.Cost > 0); ok {
				c.Memory = s.unit() * float64(better) / float64(s.memories.own)
			}
		}
		return c
	})
	for _, more := range []string{asked, untried} {
		if more != "" {
			out.Why += "; " + more
		}
	}
	return out
}

// betterThan returns a number of workers that is known to be better than the drawn one: as fast with fewer workers,
// or far faster if the job has no budget.
func (s *speeds) betterThan(in Input, all []timed, workers int) (better int, ok bool) {
	known := s.worthwhile(all)
	drawn := at(known, workers)
	instead := slices.DeleteFunc(known, func(t timed) bool {
		fewer := t.workers < drawn.workers && t.time <= drawn.time
		faster := in.Goal.Cost <= 0 && speedsDrift*t.time < drawn.time
		return !fewer && !faster
	})
	if len(instead) == 0 {
		return 0, false
	}
	return slices.MinFunc(instead, by(func(t timed) float64 { return t.time })).workers, true
}

// network returns the job's network, trained with what was known when training became possible.
func (p *Siren) network(in Input) *sirenNet {
	first := sirenPrefix(in)
	if first < 0 {
		return nil
	}
	if p.trained == nil || p.trained.seen != first || p.trained.past != len(in.Past) {
		p.trained = trainSiren(in, first)
	}
	return p.trained
}

// sirenPrefix returns how many observations of the job precede training: two numbers of workers are known then, and
// no more memory is to be tried. Observations of earlier jobs count from the start. -1: there are too few.
func sirenPrefix(in Input) int {
	for n := 0; n <= len(in.Seen); n++ {
		then := inputAfter(in, n)
		s := speedsOf(then)
		if len(s.mean) < 2 && (len(s.mean) == 0 || s.bounds.Least < s.bounds.Most) {
			continue
		}
		if n == 0 && len(in.Seen) > 0 && s.memories.another(in.Bounds, s.now) > 0 { // tried after the first epoch
			continue
		}
		if _, _, tries := s.tryMemory(then); !tries && s.repeat == "" {
			return n
		}
	}
	return -1
}

// inputAfter returns what a policy saw after so many observations.
func inputAfter(in Input, seen int) Input {
	then := in
	then.Seen = in.Seen[:seen]
	for _, e := range epochs(in.Seen[seen:]) {
		then.Goal.Epochs++
		if then.Goal.Cost > 0 {
			then.Goal.Cost += e.cost
		}
	}
	return then
}

// trainSiren trains a network in the world of that time, and lets it learn from earlier jobs.
func trainSiren(in Input, first int) *sirenNet {
	then := inputAfter(in, first)
	s := speedsOf(then)
	w := s.world(then, s.candidates())
	n := &sirenNet{seen: first, past: len(in.Past), world: w, unit: s.unit(), budget: then.Goal.Cost, slower: true}
	if all := epochs(then.Seen); len(all) > 0 {
		n.before = all[len(all)-1].until
	}
	var base schedule.Course
	var ok bool
	if n.fixed, base, ok = w.Best(n.budget); !ok {
		n.fixed, _, _ = w.Cheapest()
		return n
	}
	n.net, _, _ = w.Learn(schedule.Training{Budget: n.budget, Seed: sirenSeed})
	lessons := sirenLessons(in.Past, w, func(memory disdel.Bytes) float64 {
		if memory <= 0 || s.memories.own <= 0 {
			return n.unit
		}
		return n.unit * float64(memory) / float64(s.memories.own)
	})
	for _, job := range lessons[max(0, len(lessons)-mostLessons):] {
		n.net = n.net.Improve(w, job, 0)
	}
	got := w.Run(n.net.Greedy(), n.budget, nil)
	n.slower = !got.Reached || got.Seconds > base.Seconds
	return n
}

// sirenLessons returns earlier jobs for a network to learn from, with their memories in the unit of the world. A new
// job starts where the count of epochs starts again.
func sirenLessons(past []disdel.Observation, w *schedule.World, memory func(disdel.Bytes) float64) []schedule.Course {
	var out []schedule.Course
	until := 0.0
	for _, e := range epochs(past) {
		if len(out) == 0 || e.until <= until {
			out = append(out, schedule.Course{Reached: true})
		}
		until = e.until
		job := &out[len(out)-1]
		c := w.Clip(schedule.Choice{Workers: e.workers, Memory: memory(e.memory)})
		took := e.duration.Seconds()
		state := schedule.State{Loss: 1}
		if n := len(job.Epochs); n > 0 {
			before := job.Epochs[n-1]
			state = schedule.State{Epoch: n, Loss: 1, Seconds: before.Took}
		}
		job.Epochs = append(job.Epochs, schedule.Epoch{State: state, Choice: c, Took: took, Spent: e.cost, Came: 1})
		job.Seconds, job.Cost = job.Seconds+took, job.Cost+e.cost
	}
	return out
}

// choose draws the network's choice for the next epoch.
func (n *sirenNet) choose(in Input) (schedule.Choice, string) {
	if n.net == nil || n.slower {
		return n.fixed, fmt.Sprintf("the network knows nothing faster than %s throughout", workersText(n.fixed.Workers))
	}
	state := schedule.State{Loss: 1, Left: in.Goal.Cost, Budget: n.budget}
	if all := epochs(in.Seen); len(all) > 0 {
		last := all[len(all)-1]
		if state.Epoch = int(last.until - n.before); state.Epoch > 0 {
			state.Seconds = last.duration.Seconds()
		}
	}
	c := n.net.Sample(rand.New(rand.NewPCG(in.Seed, sirenSeed)))(state)
	c = n.world.Clip(c)
	return c, fmt.Sprintf("the network drew %d", c.Workers)
}
