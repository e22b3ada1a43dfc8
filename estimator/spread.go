package estimator

import (
	"math"

	"github.com/disdel/disdel"
)

// spread is what measured durations of one kind say of the next one. Durations of machines that others use too are
// skewed to the right, so that it works on their logarithms.
type spread struct {
	likely  float64 // geometric mean, s
	longest float64
	sigma   float64 // of the logarithm, between activations
	jobs    float64 // and between jobs: the spread of a whole job's duration
	count   int     // jobs behind it
	samples int     // activations behind it
}

// priorWeight is how many jobs a group's prior spread counts for: with one measured job the prior decides, with twenty
// the measurements.
const priorWeight = 4

// leastDuration keeps the logarithm of a duration that was measured as nothing finite, s.
const leastDuration = 1e-3

type measured struct {
	job     disdel.JobID
	seconds float64
}

// spreadOf needs at least one duration. prior is the spread of the logarithm to be expected before anything is
// measured.
func spreadOf(all []measured, prior float64) spread {
	var logs []float64
	byJob := map[disdel.JobID][]float64{}
	s := spread{samples: len(all)}
	for _, m := range all {
		l := math.Log(max(m.seconds, leastDuration))
		logs = append(logs, l)
		byJob[m.job] = append(byJob[m.job], l)
		s.longest = max(s.longest, m.seconds)
	}
	var jobs []float64
	for _, l := range byJob {
		m, _ := moments(l)
		jobs = append(jobs, m)
	}
	mean, variance := moments(logs)
	_, between := moments(jobs)
	s.likely, s.count = math.Exp(mean), len(jobs)
	s.sigma, s.jobs = s.blend(variance, prior), s.blend(between, prior)
	return s
}

// blend weighs a measured variance with the prior's.
func (s spread) blend(variance, prior float64) float64 {
	k := float64(s.count)
	return math.Sqrt((priorWeight*prior*prior + k*variance) / (priorWeight + k))
}

// factor is what the likely duration is to be multiplied with so that the next one is below in all but the tail of z
// normal deviations: Student's t, since the spread itself is only estimated, and activations of one job are no
// independent samples.
func (s spread) factor(sigma, z float64) float64 {
	k := float64(max(1, s.count))
	return min(mostFactor, math.Exp(student(z, priorWeight+k-1)*sigma*math.Sqrt(1+1/k)))
}

// mostFactor keeps a wild past from saying more than that it says nothing.
const mostFactor = 100

// The normal deviations of one case in a hundred, and of one in twenty.
const (
	oneInHundred = 2.326
	oneInTwenty  = 1.645
)

// student is the quantile of Student's t that belongs to a normal deviation, for four degrees of freedom and up
// (Abramowitz and Stegun 26.7.5, within 1 %).
func student(z, freedom float64) float64 {
	z2 := z * z
	g1 := z * (z2 + 1) / 4
	g2 := z * ((5*z2+16)*z2 + 3) / 96
	g3 := z * (((3*z2+19)*z2+17)*z2 - 15) / 384
	return z + g1/freedom + g2/(freedom*freedom) + g3/(freedom*freedom*freedom)
}

// moments are mean and variance; the variance of one value is 0.
func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(len(v)-1)
	}
	return mean, variance
}
