package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// raw is every measurement, by experiment: all that the page is made of, and what somebody needs who wants to work
// something else out of it.
type raw struct {
	Experiments map[string]*measured  `json:"experiments"`
	Figures     map[string]figureLine `json:"figures"` // that the page has; worked out anew with every page
}

// measured is what an experiment measured.
type measured struct {
	Sittings []sitting           `json:"sittings"`
	Data     map[string]string   `json:"data,omitempty"` // what its data sets are
	Outcomes []outcome           `json:"outcomes,omitempty"`
	Batches  []batch             `json:"batches,omitempty"`
	Pools    map[string][]sample `json:"pools,omitempty"` // what pools held over time, by run
}

// sitting is when, where and how something was measured.
type sitting struct {
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Machine string    `json:"machine"`
	Threads int       `json:"threads"` // that it runs at once
	Command []string  `json:"command"`
	Scale   scale     `json:"scale"`
	Others  float64   `json:"others"`        // share of the processors' time that other programs used meanwhile
	Not     string    `json:"not,omitempty"` // why nothing was measured
	Jobs    string    `json:"jobs,omitempty"`
}

// sample is what a pool held at a moment.
type sample struct {
	At       float64      `json:"s"` // after the platform's start
	Reserved disdel.Bytes `json:"reserved"`
	Resident disdel.Bytes `json:"resident"`
	Bare     disdel.Bytes `json:"bare,omitempty"` // that processes without a container held
	Running  int          `json:"running"`
	Queued   int          `json:"queued"`
}

// figureLine is a figure with its interval, where it has one.
type figureLine struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Unit  string  `json:"unit"`
}

// readRaw reads what was measured before; nothing, where there is no file yet.
func readRaw(file string) (*raw, error) {
	r := &raw{Experiments: map[string]*measured{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(text, r)
}

func (r *raw) write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// put enters what an experiment measured in the place of what was there. Of one that ran some of its jobs alone, only
// theirs is replaced, in all environments: those of a job ran in turns, and are compared.
func (r *raw) put(name string, m *measured, some bool) {
	before := r.Experiments[name]
	if some && before != nil {
		ran := map[string]bool{}
		for _, o := range m.Outcomes {
			ran[o.Job] = true
		}
		kept := slices.DeleteFunc(slices.Clone(before.Outcomes), func(o outcome) bool { return ran[o.Job] })
		m.Outcomes = append(kept, m.Outcomes...)
		m.Sittings = append(slices.Clone(before.Sittings), m.Sittings...)
	}
	r.Experiments[name] = m
}

// keep notes what a run came to.
func (m *measured) keep(o outcome) outcome {
	m.Outcomes = append(m.Outcomes, o)
	return o
}

// of is the outcomes of an environment, in the order in which they were measured.
func (m *measured) of(env string) (out []outcome) {
	for _, o := range m.Outcomes {
		if o.Environment == env {
			out = append(out, o)
		}
	}
	return out
}

// turns is how many there were.
func (m *measured) turns() (most int) {
	for _, o := range m.Outcomes {
		most = max(most, o.Turn+1)
	}
	return most
}

// mostSamples is how many samples of a run are kept: a picture shows no more.
const mostSamples = 200

// thin is samples evenly spread over all.
func thin(all []sample) []sample {
	if len(all) <= mostSamples {
		return all
	}
	out := make([]sample, mostSamples)
	for i := range out {
		out[i] = all[i*(len(all)-1)/(mostSamples-1)]
	}
	return out
}
