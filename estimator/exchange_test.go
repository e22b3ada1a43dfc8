package estimator_test

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// Workers that exchange after every step hold their weights several times over, and deltas of all of them.
func TestExchangeIsPartOfTheEstimate(t *testing.T) {
	in := input()
	in.Members = 4
	e := estimator.Planned(backends.Standard(nil))
	plain := e.Train(in)
	weights := 4 * disdel.Bytes(in.Graph.Touched(1)) // a network: all
	more := func(x disdel.Exchange) disdel.Bytes {
		in.Exchange = &x
		return e.Train(in).Model - plain.Model
	}
	fixed, slack := more(disdel.Exchange{}), more(disdel.Exchange{Slack: 2})
	eager := more(disdel.Exchange{Order: disdel.OrderEager})
	if want := 3*weights + 2*weights + 2*4*17*weights/4 + disdel.ExchangeGarbage; fixed != want {
		t.Errorf("%v more in lock-step, want %v", fixed, want)
	}
	if slack != fixed+weights+2*2*weights || eager <= fixed+weights {
		t.Errorf("%v in lock-step, %v with a slack, %v eagerly", fixed, slack, eager)
	}
	in.Members = 1
	if n := more(disdel.Exchange{}); n != 0 {
		t.Errorf("%v more of one worker alone", n)
	}
}
