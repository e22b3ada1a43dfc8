package main

import (
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// speed is the time of estimating ResNet-152 from its name on, median of 21.
func speed() error {
	var times []float64
	for range 21 {
		begin := time.Now()
		g, err := model.Build(disdel.Network{Name: "resnet152", Input: []int{3, 224, 224}, Classes: 1000})
		if err != nil {
			return err
		}
		estimator.Planned(backends.Standard(nil)).Train(estimator.Input{
			Graph: g, BatchSize: 32, Rows: 10_000,
			SampleBytes: 3 * 224 * 224,
		})
		times = append(times, float64(time.Since(begin))/float64(time.Millisecond))
	}
	figure("estimate_resnet152_ms", quantile(times, 0.5), "ms")
	return nil
}
