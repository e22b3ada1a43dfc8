package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

// devices is the piece that all others need: that there is a GPU.
const devices = "devices"

// pieces are what a part of the report is made of, nil for what is no part.
func pieces(part string) []string {
	switch part {
	case "check":
		return []string{"promises", "steps", "torch", "curves", "bits"}
	case "figures":
		out := make([]string, len(measured))
		for i, m := range measured {
			out[i] = m.name()
		}
		return out
	case "sharing":
		return []string{"sharing"}
	}
	return nil
}

// do does a piece in this process.
func do(piece string, out io.Writer, python string) error {
	if piece == devices {
		return look(out)
	}
	b := pair(backends.Standard(nil))
	switch piece {
	case "promises":
		return promises(out)
	case "steps":
		return check(out, b, slices.DeleteFunc(model.Zoo(), func(e model.Entry) bool { return e.VariantOf != "" }))
	case "torch":
		return againstTorch(out, b[1], python, peers)
	case "curves":
		return curves(out, b)
	case "bits":
		return sameBits(out, b[1])
	case "sharing":
		return sharing(out, b[1])
	}
	for _, m := range measured {
		if m.name() == piece {
			return figures(out, b, python, m)
		}
	}
	return &disdel.Error{Kind: disdel.Invalid, Op: "read -piece", Msg: piece}
}

// look writes which GPUs there are.
func look(out io.Writer) error {
	found := gpu.Inspect(gpu.ThisMachine())
	found.Print(out)
	if len(found.Missing) > 0 {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "find a GPU", Msg: "there is none to check: " + strings.Join(found.Missing, "; "),
		}
	}
	return nil
}

// reporter makes a report of pieces, each of a process of its own: a call of CUDA that does not come back, and a
// process that goes down with its driver, cost their piece and no other.
type reporter struct {
	out     io.Writer
	command func(piece string) *exec.Cmd
	silence time.Duration // after which a piece is taken to hang
	until   time.Time     // nothing is begun then; zero: there is time
}

// report does all parts, whatever comes of one of them: a machine with a GPU may be there for this once.
func (r reporter) report(ctx context.Context, parts []string) error {
	if err := r.piece(ctx, devices); err != nil {
		return err
	}
	var failed []error
	for _, part := range parts {
		list := pieces(part)
		if list == nil {
			failed = append(failed, &disdel.Error{
				Kind: disdel.Invalid, Op: "read -parts", Msg: part, Hint: "check, figures, sharing",
			})
		}
		for _, name := range list {
			if ctx.Err() != nil {
				return errors.Join(append(failed, ctx.Err())...)
			}
			if !r.late(name) {
				failed = append(failed, r.piece(ctx, name))
			}
		}
	}
	return errors.Join(failed...)
}

// piece has a process do a piece. What keeps it from its end is in the report where it was.
func (r reporter) piece(ctx context.Context, name string) error {
	err := watched(ctx, r.out, r.command(name), r.silence)
	if err == nil {
		return nil
	}
	fmt.Fprintf(r.out, "\nFAILED: %s: %s\n", name, withHint(err))
	return fmt.Errorf("%s: %w", name, err)
}

// late says in the report that something was not begun, where the time is over.
func (r reporter) late(what string) bool {
	over := !r.until.IsZero() && time.Now().After(r.until)
	if over {
		fmt.Fprintf(r.out, "\nleft out for want of time: %s\n", what)
	}
	return over
}
