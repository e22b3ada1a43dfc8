package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// ModelCommands are the commands about trained models.
func ModelCommands(u *terminal.UI, from Reading) []*cli.Command {
	return []*cli.Command{
		ModelExportCommand(u, from), modelPromoteCommand(u, from), modelCompareCommand(u, from), modelRemoveCommand(u, from),
	}
}

// usualTag is what a version in use is called by most people.
const usualTag = "prod"

// mostModels is how many models stand beside each other.
const mostModels = 100

func modelPromoteCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "promote", ArgsUsage: "NAME:vN [TAG]", Usage: "give a tag to a version of a model (default: prod)",
		Description: "From now on, NAME:TAG means this version, and output.keep does not remove it. " +
			"NAME:best always means\nthe best version.\n\n   disdel model promote digits-cnn:v3\n   disdel infer " +
			"digits-cnn:prod --input digit.json",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 2); err != nil {
				return err
			}
			tag := cmp.Or(c.Args().Get(1), usualTag)
			return from(c, func(ctx context.Context, at client.Client) error {
				m, err := at.Models.Tag(ctx, c.Args().First(), tag)
				if err != nil {
					return err
				}
				return u.Show(m, func(w io.Writer) { fmt.Fprintf(w, "%s:%s is %s\n", m.Name, tag, m.Ref()) })
			})
		},
	}
}

// removedWeights is what `model remove` says of a file of weights with -o json.
type removedWeights struct {
	Removed string `json:"removed"`
}

func modelRemoveCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "delete a version of a trained model", ArgsUsage: "NAME:vN",
		Description: "Versions with a tag are not deleted: give the tag to another version first. sha256:... is a file of " +
			"weights\nthat jobs started with; they have copies of it.\n\n" +
			"   disdel model remove digits-cnn:v1",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			if name := c.Args().First(); !strings.Contains(name, ":") { // nobody deletes one by leaving something out
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "remove model", Msg: "give a version, for example " + name + ":v1",
					Hint: "disdel model compare " + name,
				}
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				if ref := c.Args().First(); strings.HasPrefix(ref, "sha256:") {
					doc := removedWeights{ref}
					if err := at.Models.RemoveWeights(ctx, ref); err != nil {
						return err
					}
					return u.Show(doc, func(w io.Writer) { fmt.Fprintf(w, "removed weights %s\n", ref) })
				}
				m, err := at.Models.Remove(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(m, func(w io.Writer) { fmt.Fprintf(w, "removed model %s: %v\n", m.Ref(), m.Size) })
			})
		},
	}
}

func modelCompareCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "compare trained models", ArgsUsage: "MODEL MODEL...",
		Description: "MODEL is NAME, NAME:vN or NAME:TAG. A single NAME compares all its versions.\n\n" +
			"   disdel model compare digits-cnn\n   disdel model compare digits-cnn:prod digits-cnn",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, mostModels); err != nil {
				return err
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				list, err := compared(ctx, at.Models, c.Args().Slice())
				if err != nil {
					return err
				}
				doc := render.Comparison{Models: list}
				return u.Show(doc, func(w io.Writer) { render.PrintComparison(w, doc) })
			})
		},
	}
}

// compared is the models that were named, or all versions of a single name.
func compared(ctx context.Context, models client.Models, refs []string) (out []modelstore.Model, err error) {
	if len(refs) == 1 && !strings.Contains(refs[0], ":") {
		list, err := models.List(ctx)
		for i := range list {
			if list[i].Name == refs[0] {
				out = append(out, list[i])
			}
		}
		if len(out) > 0 {
			return out, nil // a damaged one of another name is none of these
		}
		if err != nil {
			return nil, err
		}
	}
	for _, ref := range refs {
		m, err := models.Get(ctx, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
