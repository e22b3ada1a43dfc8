package controller

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// InitialPath is the field that says what training begins with; exceptPath that of layers which are drawn all the same.
const (
	InitialPath = "model.init.weights"
	exceptPath  = "model.init.except"
)

const layersHint = "disdel model show NETWORK --layers names the network's arrays"

// mostInitial bounds how many faults of weights are told: a network that is another one has hundreds.
const mostInitial = 20

// CheckInitial holds arrays of weights, their names and shapes, against the network that is to begin with them, and
// returns everything that does not fit: arrays that are missing, are too many or have another shape. Those of layers
// that init excepts may be as they like.
func CheckInitial(g *model.Graph, init disdel.Init, arrays disdel.Weights) []disdel.Fault {
	have, known := map[string][]int{}, map[string]bool{}
	for _, a := range arrays {
		have[a.Name] = a.Shape
	}
	var out []disdel.Fault
	var misfits []string
	add := func(name, format string, args ...any) {
		misfits = append(misfits, name)
		out = append(out, disdel.Fault{Path: InitialPath, Msg: fmt.Sprintf(format, args...)})
	}
	for _, p := range g.Params() {
		known[p.Name] = true
		if init.Excepts(p.Name) {
			continue
		}
		switch shape, there := have[p.Name]; {
		case !there:
			add(p.Name, "%s: there are no weights for %s %v", init.Weights, p.Name, p.Shape)
		case !slices.Equal(shape, p.Shape):
			add(p.Name, "%s: %s is %v, and the network's is %v", init.Weights, p.Name, shape, p.Shape)
		}
	}
	for _, a := range arrays {
		if !known[a.Name] && !init.Excepts(a.Name) {
			add(a.Name, "%s: the network has no %s %v", init.Weights, a.Name, a.Shape)
		}
	}
	if len(out) > 0 {
		out[0].Hint = initialHint(g, misfits)
	}
	if n := len(out); n > mostInitial {
		out = append(out[:mostInitial], disdel.Fault{
			Path: InitialPath, Msg: fmt.Sprintf("%s: %d arrays more do not fit", init.Weights, n-mostInitial),
		})
	}
	for _, layer := range init.Excepted() {
		of := disdel.Init{Except: layer}
		if !slices.ContainsFunc(g.Params(), func(p model.Param) bool { return of.Excepts(p.Name) }) {
			out = append(out, disdel.Fault{
				Path: exceptPath, Msg: fmt.Sprintf("the network has no layer %q with weights", layer), Hint: layersHint,
			})
		}
	}
	return out
}

// initialHint says what can be done: where nothing but the last layer is another one, it may be drawn.
func initialHint(g *model.Graph, misfits []string) string {
	params := g.Params()
	last := g.Nodes[params[len(params)-1].Node].Name
	for _, name := range misfits {
		if !strings.HasPrefix(name, last+".") {
			return layersHint
		}
	}
	return fmt.Sprintf("except: %s has it drawn, where the classes are others", last)
}
