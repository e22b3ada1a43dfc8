package actions

import (
	"context"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
)

// Names of the replica's arrays in a worker's state.
const (
	exchangeShared = residualPrefix + "exchange.shared"
	exchangeLocal  = residualPrefix + "exchange.local"
	exchangeSent   = residualPrefix + "exchange.sent"
	exchangeAt     = residualPrefix + "exchange.at" // steps made and folded
)

// state returns the replica as arrays of a worker's state.
func (x *exchanging) state() []array {
	if x == nil || x.replica == nil {
		return nil
	}
	s := x.replica.State()
	of := func(name string, data []float32) array {
		return array{Tensor: disdel.Tensor{Name: name, Shape: []int{len(data)}, Data: data}}
	}
	out := []array{
		of(exchangeShared, s.Shared), of(exchangeLocal, s.Local),
		of(exchangeAt, []float32{float32(s.Made), float32(s.Folded)}),
	}
	if s.Sent != nil {
		out = append(out, of(exchangeSent, s.Sent))
	}
	return out
}

// recall continues from a stored state. It takes its arrays out of the trainer's.
func (x *exchanging) recall(ctx context.Context) (err error) {
	if x == nil {
		return nil
	}
	var s exchange.State
	var at []float32
	kept := x.t.kept[:0:0]
	for _, v := range x.t.kept {
		switch v.Name {
		case exchangeShared:
			s.Shared = v.Data
		case exchangeLocal:
			s.Local = v.Data
		case exchangeSent:
			s.Sent = v.Data
		case exchangeAt:
			at = v.Data
		default:
			kept = append(kept, v)
		}
	}
	x.t.kept = kept
	if len(at) != 2 || len(s.Shared) != len(x.weights) {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: "read state", Job: x.t.req.Job,
			Msg: "it has no " + strings.TrimPrefix(exchangeAt, residualPrefix),
		}
	}
	s.Made, s.Folded = int(at[0]), int(at[1])
	var own []exchange.Delta
	for step := s.Folded + 1; step <= s.Made; step++ {
		data, err := x.deltas.Own(ctx, step, x.config.Member)
		if err != nil {
			return err
		}
		d, err := x.decode(ctx, step, x.config.Member, data)
		if err != nil {
			return err
		}
		own = append(own, d)
	}
	x.replica, err = exchange.Resume(x.config, s, own)
	return err
}
