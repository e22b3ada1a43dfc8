package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
)

func modelCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "model", Usage: "list, show, compare and export networks and trained models",
		Subcommands: append([]*cli.Command{modelList(u), modelShow(u)}, ModelCommands(u, reading(u, storage))...),
		Action:      NeedSubcommand,
	}
}

func modelList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the built-in networks and the trained models",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				networks, err := render.Networks()
				if err != nil {
					return err
				}
				doc := render.List{Networks: networks, Models: []modelstore.Model{}}
				trained, faults := at.Models.List(ctx)
				doc.Models = append(doc.Models, trained...)
				return errors.Join(u.Show(doc, func(w io.Writer) { render.PrintList(w, doc) }), faults)
			})
		},
	}
}

func modelShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a network's layers, or a trained model", ArgsUsage: "NAME",
		Description: "NAME is a built-in network or a trained model: NAME is its newest version that learned, NAME:vN one " +
			"version.\nA NAME that ends in .json, and --keras, mean a file of Keras' model.to_json().\n\n" +
			"   disdel model show lenet5 --input 1x28x28\n   disdel model show digits-cnn:v1\n   disdel model show --keras " +
			"my.json",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "input", Usage: "input shape `CxHxW` of a network"},
			&cli.IntFlag{Name: "classes", Usage: "`NUMBER` of outputs of a network"},
			&cli.BoolFlag{Name: "layers", Usage: "also show the layers and weight tensors of a trained model"},
			&cli.StringFlag{Name: "keras", Usage: "show the network of a Keras `FILE`"},
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("keras") {
				if err := Operands(c, 0, 0); err != nil {
					return err
				}
				return showKeras(c, u, c.String("keras"))
			}
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			if slices.Contains([]string{".json", ".keras", ".h5", ".hdf5"}, strings.ToLower(filepath.Ext(c.Args().First()))) {
				return showKeras(c, u, c.Args().First())
			}
			return withClient(c, u, storage,
				func(ctx context.Context, at client.Client) error { return showModel(ctx, c, u, at.Models) })
		},
	}
}

// showKeras shows a network at the only input and with the only outputs that its file gives.
func showKeras(c *cli.Context, u *ui, file string) error {
	for _, flag := range []string{"input", "classes"} {
		if c.IsSet(flag) {
			return &disdel.Error{
				Kind: disdel.Invalid,
				Msg:  fmt.Sprintf("--%s does not go with a file of Keras, which says it", flag),
			}
		}
	}
	text, err := readInput(u, file)
	if err != nil {
		return err
	}
	doc, err := render.OfKeras(text, file)
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { render.PrintNetwork(w, doc) })
}

// showModel prefers a trained model where both exist, unless the flags ask for a network.
func showModel(ctx context.Context, c *cli.Context, u *ui, models client.Models) error {
	name := c.Args().First()
	var classes *int
	if c.IsSet("classes") {
		classes = new(c.Int("classes"))
	}
	m, err := models.Get(ctx, name)
	doc, unknown := render.Named(name, c.String("input"), classes)
	isNetwork := disdel.KindOf(unknown) != disdel.NotFound
	switch {
	case err == nil && !(isNetwork && (c.IsSet("input") || c.IsSet("classes"))):
		return showTrained(c, u, &m)
	case !isNetwork && (strings.Contains(name, ":") || disdel.KindOf(err) != disdel.NotFound):
		return err
	case unknown != nil:
		return unknown
	}
	return u.Show(doc, func(w io.Writer) { render.PrintNetwork(w, doc) })
}

func showTrained(c *cli.Context, u *ui, m *modelstore.Model) error {
	doc, err := render.Of(m)
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { render.PrintTrained(w, doc, c.Bool("layers")) })
}
