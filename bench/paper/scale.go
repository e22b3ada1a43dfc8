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
	smallPool     = 70 * disdel.GB / memoryScale
	doubledPool   = 140 * disdel.GB / memoryScale
	batchPool     = 190 * disdel.GB / memoryScale
	leastAction   = 4 * disdel.MB // that OpenWhisk's 128 MB hide nothing
)

// patient is the longest time of an action where an experiment is not about it.
const patient = 30 * time.Minute

// scale is the size of the experiments beside that of jobs.go: of rows, and of the platforms' times.
type scale float64

// time is a time of the paper's platforms.
func (s scale) time(paper time.Duration) time.Duration {
	return time.Duration(float64(paper) / timeScale * float64(s))
}

// task is one with as many rows as the scale leaves, and no fewer than four batches.
func (s scale) task(t task) task {
	t.rows = max(min(t.rows, 4*t.batch), int(float64(t.rows)*float64(s)))
	return t
}

// String says what is scaled by how much.
func (s scale) String() string {
	return fmt.Sprintf("memory / %d, times of the platform / %.4g, rows of jobs x %.4g", memoryScale,
		timeScale/float64(s), float64(s))
}
