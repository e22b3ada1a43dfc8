package simulate

import "github.com/disdel/disdel"

// Crew is how many workers a job had from a moment on.
type Crew struct {
	At      disdel.Millis `json:"atMs"` // since its start
	Epoch   float64       `json:"epoch"`
	Workers int           `json:"workers"`
}

// Expected is what a policy expected of an epoch, and what it came to.
type Expected struct {
	Workers     int           `json:"workers"`
	PerThousand disdel.Millis `json:"perThousandMs"` // of 1,000 rows
	Took        disdel.Millis `json:"tookMs"`        // the same
}

// course is how a job goes under its policy, as the simulator saw it.
type course struct {
	crews    []Crew
	expected []Expected

	expects  disdel.Millis // of the epoch that runs; 0: nothing
	rows     int           // of that epoch so far
	duration disdel.Millis
	epoch    float64       // trained so far
	began    disdel.Millis // when the round did
}

// decided takes a policy's answer about the epoch to come.
func (c *course) decided(d disdel.Decision) {
	if c.expects = 0; d.Expect != nil {
		c.expects = d.Expect.PerThousand
	}
}

// round takes a round that has ended at a moment since the job's start.
func (c *course) round(r disdel.Round, at disdel.Millis) {
	o := r.Observed
	if o == nil {
		return
	}
	if n := len(c.crews); n == 0 || c.crews[n-1].Workers != o.Setting.Workers {
		c.crews = append(c.crews, Crew{At: c.began, Epoch: c.epoch, Workers: o.Setting.Workers})
	}
	c.began, c.epoch = at, o.Epoch
	c.rows, c.duration = c.rows+o.Rows, c.duration+o.Duration
	if o.Epoch != float64(int(o.Epoch)) {
		return
	}
	took := disdel.Observation{Duration: c.duration, Rows: c.rows}.PerThousand()
	if c.expects > 0 && o.Cold == 0 {
		c.expected = append(c.expected, Expected{Workers: o.Setting.Workers, PerThousand: c.expects, Took: took})
	}
	c.rows, c.duration, c.expects = 0, 0, 0
}
