package estimator

import "github.com/disdel/disdel"

// An entry of a delta is an index and a value, and comes in up to nine bytes.
const (
	entryBytes = 8
	entryWire  = 9
)

// exchanged is what a train action holds on the heap to exchange updates after every step: all weights as the engine
// has them, as everybody has them and what is its own; the deltas of the steps that are not folded yet; and those of
// the step that is read, as they come and as they are added. What it wrote and read is garbage after each step, of
// which there is as much again before it is collected, and disdel.ExchangeGarbage.
func (in Input) exchanged() disdel.Bytes {
	x := in.Exchange
	if x == nil || in.Members == 1 {
		return 0
	}
	vectors, members := 3, disdel.Bytes(max(2, in.Members))
	ahead := disdel.Bytes(x.Slack + 1)
	if x.Slack > 0 || x.Order == disdel.OrderEager {
		vectors++ // what was sent and is not folded yet
	}
	kept := ahead * entryBytes // own ones
	if x.Order == disdel.OrderEager {
		vectors++ // what a step begins with
		kept *= members
	}
	n := in.count()
	weights := disdel.Bytes(n.Trainable + n.NonTrainable)
	touched := min(weights, disdel.Bytes(in.Graph.Touched(max(1, in.BatchSize))))
	return float*disdel.Bytes(vectors)*weights + touched*(kept+2*members*(entryBytes+entryWire)) + disdel.ExchangeGarbage
}
