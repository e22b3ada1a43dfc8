package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// simulated is figures 11, 12 and 13 at the paper's size, under both readings of Fig. 8.
func (p *page) simulated(*measured) {
	p.section("Figures 11, 12 and 13 at the paper's size, simulated", fmt.Sprintf("`scheduler/sim` simulates servers "+
		"of %d processors and a pool of %v each. An action of default serverless has %v, one of disdel has %v (its "+
		"Fig. 11), with two actions a job. Every duration deviates by 2.8 %%. The intervals are the 5th and 95th "+
		"percentiles of %d seeds. Containers are spread over the servers. The network between servers and aggregation are "+
		"not simulated. The simulator is calibrated only on Fig. 8, which can be read in two ways. Neither gives all "+
		"printed figures.",
		serverCores, serverPool, actionOne, actionOurs, seeds))
	var lines []plot.Line
	for _, r := range []reading{
		{"one server", "", "both containers of a job on one server: more threads of one process gain little", calibrated()},
		{
			"own servers", "_spread", "each container on a server of its own, computing with all of its processors",
			spreadOut(),
		},
	} {
		lines = append(lines, p.reading(r)...)
	}
	p.chart("fig13.svg", plot.Chart{
		Title: "Figure 13: eight jobs over servers, simulated", X: plot.Axis{Name: "servers", Whole: true},
		Y: plot.Axis{Name: "time (s)"}, Lines: lines,
	})
}

// reading is a way to read Fig. 8, and how figures that follow from it are named.
type reading struct {
	name, suffix, text string
	c                  calibration
}

// reading is what one reading of Fig. 8 leads to.
func (p *page) reading(r reading) (lines []plot.Line) {
	c := r.c
	list := crews(c)
	one, bare, ours := list[0], list[1], list[2]
	p.say("**%s**: %s. A serial share of %.3f, %.0f s of one thread for a job, %.2f of one container's time on bare "+
		"metal and %.2f for disdel's actions together.", r.name, r.text, c.serial, c.work, c.bare, c.ours)
	span := func(w crew, jobs, nodes int, pool disdel.Bytes) func(*rand.Rand) float64 {
		return func(lot *rand.Rand) float64 { return w.makespan(c, jobs, nodes, pool, lot) }
	}
	over := func(figure, what, printed string, most float64, a, b func(*rand.Rand) float64) {
		v := overSeeds(func(lot *rand.Rand) float64 { return a(lot) / b(lot) })
		p.ratio(figure+r.suffix, v)
		p.claim(claim{
			what + ", simulated, " + r.name, printed, v.String(), judged(v.Value, most),
			"the paper's servers, calibrated on its Fig. 8 alone",
		})
	}
	four := ours
	four.actions = 4
	over("fig11_simulated", "11: pool of 140 GB over 70 GB", "0.477", 0.477, span(four, 1, 1, 140*disdel.GB),
		span(four, 1, 1, 70*disdel.GB))
	over("fig12_default_simulated", "12 over default", "0.45", 0.45, span(ours, 8, 1, serverPool), span(one, 8, 1,
		serverPool))
	over("fig12_baremetal_simulated", "12 over bare metal", "0.71", 0.71, span(ours, 8, 1, serverPool),
		span(bare, 8, 1, serverPool))
	over("fig13_8over4", "13: 8 servers over 4", "0.60", 0.60, span(ours, 8, 8, serverPool), span(ours, 8, 4, serverPool))
	over("fig13_8over4_default", "13: 8 servers over 4, default", "0.73", 0.73, span(one, 8, 8, serverPool),
		span(one, 8, 4, serverPool))
	rows := [][]string{{"servers", one.name, bare.name, ours.name}}
	for _, w := range list {
		lines = append(lines, plot.Line{Name: w.name + ", " + r.name})
	}
	for _, nodes := range []int{1, 4, 8} {
		row := []string{fmt.Sprint(nodes)}
		for i, w := range list {
			v := overSeeds(span(w, 8, nodes, serverPool))
			row = append(row, fmt.Sprintf("%.0f s (%.0f to %.0f)", v.Value, v.Low, v.High))
			lines[i].Points = append(lines[i].Points, at(float64(nodes), v.Value))
		}
		rows = append(rows, row)
	}
	p.table(rows)
	return lines
}
