package main

import (
	"testing"

	"github.com/disdel/disdel/internal/test/rehearse"
)

// The figures of jobs that stop each other are what they are meant to be: whole gangs never do.
func TestWholeGangsAreNeverStuck(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(100) {
		jobs, slots := contest(seed)
		for name, by := range rules(seed) {
			r := rehearse.Run(by, room(slots), jobs, nil)
			for _, s := range r.Stays {
				if s.Refused != nil {
					t.Fatalf("seed %d: %v: each job fits alone", seed, s.Refused)
				}
			}
			count[name] += min(1, len(r.Stuck))
		}
	}
	for _, c := range crafted() {
		for name, by := range rules(1) {
			count["crafted "+name] += min(1, len(rehearse.Run(by, room(c.slots), c.jobs, nil).Stuck))
		}
	}
	t.Logf("stuck: %v", count)
	if count["greedy"] == 0 || count["ganglike"] == 0 || count["gang"]+count["fifo"]+count["crafted gang"] > 0 ||
		count["crafted greedy"] == 0 || count["crafted ganglike"] == 0 {
		t.Errorf("stuck: %v", count)
	}
}
