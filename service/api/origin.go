package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/report"
)

// sentOrigin checks how a client says that it submitted a job: disdel prints commands for other people from that. It
// drops flags of a place, and the client's own program. Otherwise such a command could lead other people, with their
// credentials, to a stranger's server, folder or program. It returns Invalid for unknown commands and flags, and for
// text that cannot be printed. checkSubmission bounds the sizes.
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

// asking are the commands that send a submission to ask about it.
var asking = []string{"estimate", "validate"}

// printable lets line breaks and tabs of YAML values pass.
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
