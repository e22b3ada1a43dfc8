// Package footprint is what an engine takes of memory, known before there is one: by kind of memory (on the Go heap,
// beside it, on a device) and by category (weights, activations and so on).
//
// A backend makes a Footprint of a Spec, an engine tells its own, and the estimator, which knows no backend, adds them
// up. The package is apart from runtime/engine so that the estimator need not import what engines compute on. It
// refuses nothing: backends do. Invariant: Total is the sum over all kinds of memory, and over all categories.
package footprint

import (
	"context"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Spec is what an engine is made for.
type Spec struct {
	Graph          *model.Graph
	Code           string           // folder with the files of a Python program; "": none
	Context        context.Context  `json:"-"` // bounds an engine that may hang, see engine.Listener; nil: nothing does
	BatchSize      int              // the most rows of a call, at least 1
	Optimizer      disdel.Optimizer // of training steps
	Loss           string           // crossEntropy (default), binaryCrossEntropy or mse
	LabelSmoothing float64          // share of a label that crossEntropy spreads over all classes
	ClassWeights   []float32        // of crossEntropy in training, by class; nil: all are 1
	ClipNorm       float64          // longest gradient, all weights together; 0: any
	Threads        int              // workers; 0 is one
	Seed           int64            // of dropout
	Memory         disdel.Bytes     // the action's limit, 0 if unknown: what is known to need more is refused
	Device         disdel.Bytes     // the same of an accelerator's memory
	Place          int              // number of the accelerator that it uses, modulo their number
	Training       bool             // Step will be called
	Continues      bool             // Predict takes a text at a time, which grows; the engine may keep what it knows of it
	Exact          bool             // convolutions go by their definition, not by algorithms that round more
	Precision      disdel.Precision // of training steps
	disdel.StepMemory
}

// OnlyPlain is OnlyFloat32 and KeepsAll, for backends that have none of it.
func (s *Spec) OnlyPlain(backend string) error {
	if err := s.KeepsAll(backend); err != nil {
		return err
	}
	if s.Training && s.LabelSmoothing != 0 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: backend + " has no label smoothing",
			Hint: "leave training.labelSmoothing out, or use the native backend",
		}
	}
	if s.Training && s.ClassWeights != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: backend + " has no class weights",
			Hint: "leave training.classWeights out, or use the native backend",
		}
	}
	return s.OnlyFloat32(backend)
}

// KeepsAll returns Invalid for a training that saves memory by StepMemory or has frozen layers, for backends that
// have neither.
func (s *Spec) KeepsAll(backend string) error {
	if s.Training && s.Graph != nil && s.Graph.HasFrozen() {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: backend + " trains all layers: it cannot freeze any",
			Hint: "leave model.init.freeze out, or train with the backend " + disdel.BackendNative,
		}
	}
	if s.Training && s.Graph != nil && s.Graph.Slice != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: backend + " trains whole networks: it has no stages",
			Hint: "leave distribution.stages out, or train with the backend " + disdel.BackendNative,
		}
	}
	if !s.Training || s.StepMemory == (disdel.StepMemory{}) {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine",
		Msg:  backend + " has no training.microBatch, training.recompute and training.optimizerState",
		Hint: "leave them out, or train with the backend " + disdel.BackendNative,
	}
}

// OnlyFloat32 returns Invalid for a training in another precision, for backends that have none.
func (s *Spec) OnlyFloat32(backend string) error {
	if !s.Training || s.Precision.Plain() {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("%s computes with float32 alone, not with %s", backend,
			s.Precision),
		Hint: "leave training.precision out, or train with the backend " + disdel.BackendNative,
	}
}

// Memory is a kind of memory.
type Memory uint8

// The kinds of memory.
const (
	Heap   Memory = 1 + iota // of the Go runtime, whose collector counts it
	Host                     // of the process, beside the heap: the collector neither scans nor counts it
	Device                   // of an accelerator, which the process's own limit does not see
)

// String names the kind in messages.
func (m Memory) String() string {
	names := [...]string{Heap: "heap", Host: "host", Device: "device"}
	if int(m) >= len(names) || names[m] == "" {
		return "unknown memory"
	}
	return names[m]
}

// Category is what bytes are for.
type Category string

// The categories, in the order they are reported.
const (
	Weights     Category = "weights" // and statistics, which are no weights but as long-lived
	Moments     Category = "moments" // of the optimiser
	Gradients   Category = "gradients"
	Activations Category = "activations"
	Backward    Category = "backward"  // gradients of activations
	Workspace   Category = "workspace" // and what a layout cannot use
	Library     Category = "library"   // what a library that computes products works in
	Batch       Category = "batch"     // as it is handed over, and what comes out of it
	Process     Category = "process"   // what the backend takes whatever the network
)

// Part is bytes of a category in one kind of memory.
type Part struct {
	Category Category
	Memory   Memory
	Bytes    disdel.Bytes
}

// Basis is how a footprint came to be known.
type Basis uint8

// The bases.
const (
	Planned Basis = 1 + iota // laid out before it is taken: exact but for the heap
	Fitted                   // factors that were fitted to measured peaks of whole processes
)

// Layer is what a node of the graph takes, whenever it is alive.
type Layer struct {
	Weights disdel.Bytes // with gradients and moments
	Others  disdel.Bytes // outputs, their gradients and workspace
}

// Footprint is what an engine holds at its peak.
type Footprint struct {
	Basis  Basis
	Parts  []Part
	Spread float64      // Fitted: standard deviation of the peak, as a share of what is not the process's
	Pages  disdel.Bytes // room in the limit for pages of files, which the kernel takes back; no part of Total
	Later  disdel.Bytes // what calls take more that are not the first of their process; no part of Total
	Extra  float64      // what a step computes more because of StepMemory, as a share of a step without
	Layers []Layer      // by node of the graph; nil where nothing is trained
}

// Sum is the bytes of some categories, in all memory.
func (f Footprint) Sum(categories ...Category) (n disdel.Bytes) {
	for _, p := range f.Parts {
		if slices.Contains(categories, p.Category) {
			n += p.Bytes
		}
	}
	return n
}

// In is the bytes of all categories in one kind of memory.
func (f Footprint) In(m Memory) (n disdel.Bytes) {
	for _, p := range f.Parts {
		if p.Memory == m {
			n += p.Bytes
		}
	}
	return n
}

// Outside is the footprint without one kind of memory.
func (f Footprint) Outside(m Memory) Footprint {
	f.Parts = slices.DeleteFunc(slices.Clone(f.Parts), func(p Part) bool { return p.Memory == m })
	return f
}

// Total is all bytes, of whatever kind.
func (f Footprint) Total() (n disdel.Bytes) {
	for _, p := range f.Parts {
		n += p.Bytes
	}
	return n
}
