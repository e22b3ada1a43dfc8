package main

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// What the paper's sizes are divided by. Only ratios are compared with the paper: peaks and seconds are never scaled
// back up.
const (
	memoryScale = 35 // 70 GB -> 2 GB, 140 -> 4 GB, 190 -> 5.4 GB
	timeScale   = 60 // of the platforms' times at a scale of 1: 120 min -> 120 s, 300 s -> 5 s, 240 s -> 4 s
)

// defaultScale has all experiments end in about 20 minutes on two processors.
const defaultScale = 0.5

// The platform's sizes, scaled.
const (
	largestAction = 70 * disdel.GB / memoryScale
	doubledPool   = 140 * disdel.GB / memoryScale
	batchPool     = 190 * disdel.GB / memoryScale
	leastAction   = 4 * disdel.MB // that OpenWhisk's 128 MB hide nothing
)

// The pools of Fig. 11, by less: one of its actions, 32 GB of 70 GB there, has to hold ResNet-152's weights, their
// gradients and Adam's moments, which no scale makes smaller.
const (
	wideScale   = 26
	widePool    = 70 * disdel.GB / wideScale
	wideDoubled = 140 * disdel.GB / wideScale
	wideAction  = widePool * 46 / 100 / disdel.MB * disdel.MB // the paper's 32 GB of 70 GB
)

// patient is the longest time of an action where an experiment is not about it.
const patient = 30 * time.Minute

// scale is the size of the experiments beside that of jobs.go: of rows, and, down to a half, of the platforms' times.
type scale float64

// leastTimes is the scale below which the platforms' times become no shorter: what starts a container would else fill
// them.
const leastTimes = 0.5

// times is what the platforms' times are divided by.
func (s scale) times() float64 { return timeScale / max(leastTimes, float64(s)) }

// time is a time of the paper's platforms.
func (s scale) time(paper time.Duration) time.Duration {
	return time.Duration(float64(paper) / s.times())
}

// task is one with as many rows as the scale leaves, and no fewer than four batches.
func (s scale) task(t task) task {
	t.rows = max(min(t.rows, 4*t.batch), int(float64(t.rows)*float64(s)))
	return t
}

// String says what is scaled by how much.
func (s scale) String() string {
	return fmt.Sprintf("memory / %d, times of the platform / %.4g, rows of jobs x %.4g", memoryScale,
		s.times(), float64(s))
}
