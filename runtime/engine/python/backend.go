package python

import (
	"fmt"
	"io"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Backend makes engines of users' Python programs.
type Backend struct {
	Stdout, Stderr io.Writer // get what programs print; nil: this process's
}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendPython }

// Supports implements engine.Backend: Python programs that have been described.
func (Backend) Supports(g *model.Graph) error {
	_, err := programOf(g)
	return err
}

func programOf(g *model.Graph) (*disdel.CustomNetwork, error) {
	if c := g.Custom(); c != nil && c.Python != nil {
		return c, nil
	}
	return nil, &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("%s is no Python program", g.Name),
		Hint: "leave training.backend out",
	}
}

// Footprint implements engine.Backend, of programs whose files are not here, too.
func (b Backend) Footprint(s engine.Spec) (engine.Footprint, error) {
	c, err := b.check(&s)
	if err != nil {
		return engine.Footprint{}, err
	}
	return footprintOf(&s, c), nil
}

// check returns the description of a spec's program, or Invalid.
func (b Backend) check(s *engine.Spec) (*disdel.CustomNetwork, error) {
	bad := func(hint, format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	c, err := programOf(s.Graph)
	if err != nil {
		return nil, err
	}
	if err := s.OnlyPlain(b.Name()); err != nil {
		return nil, err
	}
	if s.BatchSize < 1 {
		return nil, bad("", "a batch of %d rows", s.BatchSize)
	}
	switch s.Loss {
	case "", "crossEntropy", "binaryCrossEntropy", "mse":
		return c, nil
	default:
		return nil, bad("use crossEntropy, binaryCrossEntropy or mse", "there is no loss %q", s.Loss)
	}
}

// New implements engine.Backend. It starts a process that loads the program of s.Code. It returns the errors of the
// interface. Invalid also tells of a fault of the program, with the user's line. Unavailable means that there is no
// Python.
func (b Backend) New(s engine.Spec) (engine.Engine, error) {
	c, err := b.check(&s)
	if err != nil {
		return nil, err
	}
	if l := newLayout(&s, c); s.Memory > 0 && disdel.Bytes(l.Size) > s.Memory {
		return nil, &disdel.Error{
			Kind: disdel.OOM, Op: "make engine",
			Msg: fmt.Sprintf("the weights and batches of %s with a batch of %d need %v, and the action has %v", s.Graph.Name,
				s.BatchSize, disdel.Bytes(l.Size), s.Memory),
			Hint: "lower training.batchSize, or raise the memory limit",
		}
	}
	if s.Code == "" {
		return nil, &disdel.Error{
			Kind: disdel.Internal, Op: "make engine", Msg: "the files of program " + s.Graph.Name + " are not here",
		}
	}
	if b.Stdout == nil {
		b.Stdout = os.Stdout
	}
	if b.Stderr == nil {
		b.Stderr = os.Stderr
	}
	e, err := newEngine(s, c, b)
	if err != nil {
		return nil, err // not a nil *Engine, which is no nil engine.Engine
	}
	return e, nil
}
