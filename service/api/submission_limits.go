package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/report"
)

// Bounds of a submission, all of which the job's record keeps. The parser bounds the job file.
const (
	mostName    = 255 // bytes of a name
	mostText    = 4096
	mostSets    = 200
	mostOptions = 64
	mostOrigin  = 64 << 10 // bytes of an origin, all together
	mostFiles   = 16       // that a job file names
	mostBeside  = 100_000  // jobs of a batch
	mostLabels  = 64
	mostAsked   = 16 // policies of an estimate
)

// checkSubmission returns Invalid for a submission that is larger than these bounds.
func checkSubmission(s *apitypes.Submission) error {
	sizes := []sized{
		{"name", len(s.Name), mostName, "bytes"},
		{"estimator", len(s.Estimator), mostName, "bytes"},
		{"sets", len(s.Sets), mostSets, "values"},
		{"files", len(s.Files), mostFiles, "files"},
		{"beside", max(s.Siblings, -s.Siblings), mostBeside, "jobs"},
	}
	for i, set := range s.Sets {
		sizes = append(sizes, sized{fmt.Sprintf("sets[%d]", i), len(set), mostText, "bytes"})
	}
	for name := range s.Files {
		sizes = append(sizes, sized{"the name of a file", len(name), mostText, "bytes"})
	}
	if q := s.Questions; q != nil {
		sizes = append(sizes, sized{"questions.policies", len(q.Policies), mostAsked, "policies"})
	}
	return checkSizes(append(sizes, sizesOfOrigin(s.Origin)...))
}

// sizesOfOrigin lists the sizes of an origin.
func sizesOfOrigin(o *disdel.Origin) (sizes []sized) {
	if o == nil {
		return nil
	}
	all := len(o.Command) + len(o.File)
	sizes = []sized{
		{"origin.command", len(o.Command), mostName, "bytes"},
		{"origin.file", len(o.File), mostText, "bytes"},
		{"origin.sets", len(o.Sets), mostSets, "values"},
		{"origin.options", len(o.Options), mostOptions, "options"},
	}
	var parts []sized
	for i, set := range o.Sets {
		all += len(set)
		parts = append(parts, sized{fmt.Sprintf("origin.sets[%d]", i), len(set), mostText, "bytes"})
	}
	for i, option := range o.Options {
		all += len(option.Name) + len(option.Value)
		name := fmt.Sprintf("origin.options[%d]", i)
		parts = append(parts, sized{name + ".name", len(option.Name), mostName, "bytes"},
			sized{name + ".value", len(option.Value), mostText, "bytes"})
	}
	return append(append(sizes, sized{"origin", all, mostOrigin, "bytes"}), parts...)
}

// sized is the size of a part of a request, and its bound.
type sized struct {
	part          string
	size, maximum int
	unit          string
}

func checkSizes(sizes []sized) error {
	for _, s := range sizes {
		if s.size > s.maximum {
			return invalid(fmt.Sprintf("%s has %d %s, and %d are the most", s.part, s.size, s.unit, s.maximum), nil)
		}
	}
	return nil
}

// sentOrigin checks the origin that a client sends, because disdel prints commands for other people from it. It drops
// flags that name servers, and the client's own program: such a command could lead other people, with their
// credentials, to another server, folder or program. It returns Invalid for unknown commands and flags, and for text
// that cannot be printed. checkSubmission bounds the sizes.
func sentOrigin(o *disdel.Origin) (*disdel.Origin, error) {
	if o == nil {
		return nil, nil
	}
	if o.Command != "" && !slices.Contains(report.Submitting, o.Command) && !slices.Contains(asking, o.Command) {
		return nil, wrongOrigin("command %.40q is none that submits a job or asks about one", o.Command)
	}
	out := &disdel.Origin{Command: o.Command, File: o.File, Sets: o.Sets}
	for _, v := range o.Options {
		own := slices.Contains(report.OwnOptions, v.Name)
		if !own && !addresses.IsPlaceFlag(v.Name) {
			return nil, wrongOrigin("there is no flag %.40q", v.Name)
		}
		if !printable(v.Value) {
			return nil, wrongOrigin("the value of --%s cannot be printed", v.Name)
		}
		if own && v.Name != "action" {
			out.Options = append(out.Options, v)
		}
	}
	for _, s := range append([]string{o.File}, o.Sets...) {
		if !printable(s) {
			return nil, wrongOrigin("%.40q cannot be printed", s)
		}
	}
	return out, nil
}

// asking are the commands that send a submission without running it.
var asking = []string{"init", "estimate", "validate"}

// printable reports whether a text can be printed. Line breaks and tabs are allowed, since YAML values may have them.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != '\n' && r != '\t'
	})
}

func wrongOrigin(format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read origin", Msg: fmt.Sprintf(format, args...),
		Hint: "leave the field origin out: the server can do without it",
	}
}
