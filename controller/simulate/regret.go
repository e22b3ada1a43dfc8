package simulate

import (
	"slices"

	"github.com/disdel/disdel/scheduler/sim"
)

// Regret is what wrong estimates cost a policy: its mean time and cost where it is told times that are wrong, over
// those where it is told true ones.
type Regret struct {
	Policy string  `json:"policy"`
	Told   float64 `json:"told"`  // factor of the times of other numbers of workers than a job began with
	Noise  float64 `json:"noise"` // deviation of the logarithm of what they are told, besides
	Time   float64 `json:"timeRatio"`
	Cost   float64 `json:"costRatio"`
}

// Errors are what Regrets injects: each factor without noise, and each noise without a factor.
type Errors struct {
	Factors []float64
	Noises  []float64
}

// Regrets runs the jobs of a lab anew with errors in what policies are told, and adds what they cost. A policy that did
// not come to an end in either is left out. Errors are those of Compare.
func (l *Lab) Regrets(cfg Config, jobs []sim.Job, policies []string, e Errors) error {
	add := func(told, noise float64) error {
		cfg.Told, cfg.ToldNoise = told, noise
		wrong, err := Compare(cfg, jobs, policies)
		if err != nil {
			return err
		}
		for _, s := range wrong.Policies {
			i := slices.IndexFunc(l.Policies, func(t Standing) bool { return t.Policy == s.Policy })
			if s.Policy == Fixed || i < 0 || s.Succeeded == 0 || s.Succeeded != l.Policies[i].Succeeded {
				continue
			}
			l.Regret = append(l.Regret, Regret{
				Policy: s.Policy, Told: told, Noise: noise, Time: s.Time / l.Policies[i].Time, Cost: s.Cost / l.Policies[i].Cost,
			})
		}
		return nil
	}
	for _, f := range e.Factors {
		if err := add(f, 0); err != nil {
			return err
		}
	}
	for _, n := range e.Noises {
		if err := add(1, n); err != nil {
			return err
		}
	}
	return nil
}
