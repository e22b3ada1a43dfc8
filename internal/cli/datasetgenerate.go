package cli

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
)

func datasetGenerate(u *ui) *cli.Command {
	return &cli.Command{
		Name: "generate", Usage: "generate ratings or clicks from a seed, as sparse rows", ArgsUsage: "ratings|clicks NAME",
		Description: "   disdel dataset generate ratings films --like ml-1m\n   disdel dataset generate clicks ads --rows 200000",
		Flags:       GenerateFlags(),
		Action: func(c *cli.Context) error {
			if err := Operands(c, 2, 2); err != nil {
				return err
			}
			in, err := MadeRows(c)
			if err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				set, err := at.Data.AddSparse(ctx, in, c.Bool("overwrite"))
				if err != nil {
					return err
				}
				return u.Show(set, func(w io.Writer) { render.PrintSet(w, set.Manifest) })
			})
		},
	}
}
