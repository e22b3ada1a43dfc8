package scheduler

import "math"

// timeNoise measures how much times of the same number of workers vary. Policies that choose workers by times ask it
// whether a gain is real: nobody should pay for more workers because of noise.
type timeNoise struct {
	squares float64 // of logarithms of times, each off the mean of its number
	count   float64
}

// What the noise goes by.
const (
	noisePrior = 0.04 // deviation of the logarithm of a time, before any number was measured twice
	noiseCount = 2    // measurements that the prior counts as
	noiseSure  = 2.5  // deviations that a gain has to be: the best of several numbers is also the luckiest
	noiseMost  = 0.4  // of a logarithm: a time that is farther off says that something happened
)

// see adds a measured time. mean is that of earlier times with the same workers. variance is the variance of this mean,
// divided by the variance of one measurement.
func (n *timeNoise) see(t, mean, variance float64) {
	if t <= 0 || mean <= 0 {
		return
	}
	off := min(noiseMost, math.Abs(math.Log(t/mean)))
	n.squares, n.count = n.squares+off*off/(1+variance), n.count+1
}

// clear tells whether t is below than by more than the noise. The variances are those of the two times, divided by the
// variance of one measurement.
func (n *timeNoise) clear(t, than, variance, thanVariance float64) bool {
	return math.Log(than/t) > noiseSure*n.deviation()*math.Sqrt(variance+thanVariance)
}

// deviation is that of the logarithm of one measured time.
func (n *timeNoise) deviation() float64 {
	return math.Sqrt((n.squares + noiseCount*noisePrior*noisePrior) / (n.count + noiseCount))
}

// meanVariance is the variance of a running mean after one more measurement of a weight, over that of one measurement.
func meanVariance(before, weight float64) float64 {
	return (1-weight)*(1-weight)*before + weight*weight
}
