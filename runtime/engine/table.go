package engine

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Table is the backends of a program; its main function makes it.
type Table struct {
	Backends []Backend // the first computes networks that name no backend
	Custom   string    // the name of the one that computes networks of a program's own, whatever is asked for
	Sparse   string    // the name of the one that computes models of sparse rows where none is asked for
	Programs string    // the name of the one that computes users' Python programs, whatever is asked for
}

// Names are the names that a job may ask for, in the table's order. Nobody asks for the backend of Python programs: a
// program has no other.
func (t Table) Names() []string {
	var out []string
	for _, b := range t.Backends {
		if b.Name() != t.Programs {
			out = append(out, b.Name())
		}
	}
	return out
}

// Name is the name of the backend for a network. asked is the name in the job file, "" for any; custom describes a
// network that a program brings, nil for others. An unknown name is returned unchanged.
func (t Table) Name(asked string, custom *disdel.CustomNetwork) string {
	switch {
	case custom != nil && custom.Python != nil:
		return t.Programs
	case custom != nil:
		return t.Custom
	case asked == "" && len(t.Backends) > 0:
		return t.Backends[0].Name()
	default:
		return asked
	}
}

// Find returns the backend for a network. It returns Invalid for an unknown name.
func (t Table) Find(asked string, g *model.Graph) (Backend, error) {
	name := t.Name(asked, g.Custom())
	if asked == "" && g.Sparse() != nil {
		name = t.Sparse
	}
	for _, b := range t.Backends {
		if b.Name() == name {
			return b, nil
		}
	}
	return nil, &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("there is no backend %q", name),
		Hint: "use " + strings.Join(t.Names(), " or ") + ": --backend NAME",
	}
}

// Footprint is what an engine of the backend that Find returns would take.
func (t Table) Footprint(asked string, s Spec) (Footprint, error) {
	b, err := t.Find(asked, s.Graph)
	if err != nil {
		return Footprint{}, err
	}
	return b.Footprint(s)
}
