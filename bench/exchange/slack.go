package main

import (
	"context"
	"fmt"
	"math"

	"github.com/disdel/disdel/bench/rig"
)

// The situation in which workers wait for stragglers: as many of them, apart by so many steps, whose steps take longer
// or shorter by a lognormal draw of such a sigma.
const (
	slackWorkers = 48
	slackApart   = 3
	slackSpread  = 0.2
)

// slackWay is a way to exchange that is measured against others.
type slackWay struct {
	name      string
	threshold float64
	slack     int
	eager     bool
}

var slackWays = []slackWay{
	{name: "bsp"},
	{name: "ssp", slack: slackApart},
	{name: "ssp_eager", slack: slackApart, eager: true},
	{name: "isp", threshold: 0.7},
}

// slackRates are the rates of learning that each way is tried with, over that of the paper's job: who begins a step
// with older weights does best with a lower one.
var slackRates = []float64{1, 0.5, 0.25}

// slack is what it brings not to wait for stragglers: time to the same held-out loss over that of bulk synchronous
// steps, every way at the rate of the paper's job, and then every way at the rate that is the best for it
// (ssp_over_bsp_48_own_rate, ssp_eager_over_bsp_48_own_rate). A server is as slow as makes bulk synchronous steps four
// fifths communication.
func slack(films *learning) error {
	var server float64
	times := map[string]func(target float64) float64{}
	best := map[string]float64{}
	for _, rate := range slackRates {
		for _, way := range slackWays {
			if way.name == "isp" && rate != 1 {
				continue
			}
			t := pmfTrial(slackWorkers, way.threshold, way.slack, 1)
			t.rate *= rate
			t.eager = way.eager
			key := fmt.Sprint(way.name, rate)
			at, least, own, err := films.courseOf(t, server)
			if err != nil {
				return err
			}
			if server == 0 {
				server = own
			}
			times[key], best[key] = at, least
			fmt.Printf("# %s at %g of the rate: best held-out loss %.4f\n", way.name, rate, least)
		}
	}
	target := near * max(best["bsp1"], best["ssp1"], best["isp1"])
	bsp := times["bsp1"](target)
	rig.Figure("ssp_over_bsp_48", bsp/times["ssp1"](target), "ratio")
	rig.Figure("ssp_eager_over_bsp_48", bsp/times["ssp_eager1"](target), "ratio")
	rig.Figure("isp_over_ssp", times["ssp1"](target)/times["isp1"](target), "ratio")
	quickest := func(name string) float64 {
		least := math.Inf(1)
		for _, rate := range slackRates {
			least = min(least, times[fmt.Sprint(name, rate)](target))
		}
		return least
	}
	rig.Figure("ssp_over_bsp_48_own_rate", quickest("bsp")/quickest("ssp"), "ratio")
	rig.Figure("ssp_eager_over_bsp_48_own_rate", quickest("bsp")/quickest("ssp_eager"), "ratio")
	return nil
}

// courseOf trains, and returns when a loss is reached, the least loss, and the server rate at which the course would be
// four fifths communication. If server is 0, the course uses that rate.
func (l *learning) courseOf(t trial, server float64) (at func(target float64) float64, least, own float64, err error) {
	k := clock{rate: server, spread: slackSpread, slack: t.slack, seed: 1}
	if t.eager {
		all, err := l.trainEager(context.Background(), t, k)
		least = math.Inf(1)
		for _, e := range all {
			least = min(least, e.loss)
		}
		return func(target float64) float64 { return soonestBelow(all, target) }, least, 0, err
	}
	c, err := l.train(context.Background(), t)
	if err != nil {
		return nil, 0, 0, err
	}
	own = rateAt(&c, t.workers, 0.8)
	if server == 0 {
		k.rate = own
	}
	at = func(target float64) float64 {
		steps, ok := c.reaches(target)
		if !ok {
			return math.Inf(1)
		}
		return k.time(&c, steps)
	}
	return at, c.best(), own, nil
}
