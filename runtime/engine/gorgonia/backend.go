package gorgonia

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Backend makes engines that execute gorgonia graphs: of the networks that all programs know, and of the program's own,
// if it has one.
type Backend struct {
	Own *Network // nil: the program has none
}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendGorgonia }

// Supports implements engine.Backend: every network of the model package, and the program's own as it was described.
func (b Backend) Supports(g *model.Graph) error {
	if err := takesDense(g); err != nil {
		return err
	}
	asked := g.Custom()
	if asked == nil {
		return nil
	}
	if err := b.owns(asked); err != nil {
		return err
	}
	e, err := FromGraph(*b.Own, engine.Spec{BatchSize: minBatch})
	if err != nil {
		return err
	}
	defer e.Close()
	return e.sameAs(asked)
}

// takesDense refuses models of sparse rows.
func takesDense(g *model.Graph) error {
	if g.Sparse() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine",
		Msg:  fmt.Sprintf("%s takes sparse rows, and this backend takes dense ones", g.Name),
		Hint: "leave training.backend out",
	}
}

// owns refuses a network that the program has not.
func (b Backend) owns(asked *disdel.CustomNetwork) error {
	switch {
	case b.Own == nil:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("this binary has no network %q", asked.Name),
			Hint: "give the binary that has it: --action FILE",
		}
	case b.Own.Name != asked.Name:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("this binary has network %q only", b.Own.Name),
			Hint: "submit the job with the binary that has its network: --action FILE",
		}
	}
	return nil
}

// takes returns Invalid for rows and numbers that this backend has not.
func takes(s *engine.Spec) error {
	if err := takesDense(s.Graph); err != nil {
		return err
	}
	return s.OnlyFloat32(disdel.BackendGorgonia)
}

// New implements engine.Backend.
func (b Backend) New(s engine.Spec) (engine.Engine, error) {
	if err := takes(&s); err != nil {
		return nil, err
	}
	if asked := s.Graph.Custom(); asked != nil {
		return b.own(asked, s)
	}
	e, err := New(s)
	if err != nil {
		return nil, err // not a nil *Engine, which is no nil engine.Engine
	}
	return e, nil
}

// own makes an engine of the program's own network.
func (b Backend) own(asked *disdel.CustomNetwork, s engine.Spec) (engine.Engine, error) {
	if err := b.owns(asked); err != nil {
		return nil, err
	}
	e, err := FromGraph(*b.Own, s)
	if err != nil {
		return nil, err
	}
	if err := e.sameAs(asked); err != nil {
		return nil, err
	}
	return e, nil
}

// Footprint implements engine.Backend, of a network that another program has described, too.
func (Backend) Footprint(s engine.Spec) (engine.Footprint, error) {
	if s.BatchSize < 1 {
		return engine.Footprint{},
			&disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("a batch of %d rows", s.BatchSize)}
	}
	if err := takes(&s); err != nil {
		return engine.Footprint{}, err
	}
	return footprintOf(s), nil
}
