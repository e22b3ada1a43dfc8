package commandline

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/internal/files"
)

// sparseFiles are the flags that name a file of sparse rows; one of them is given.
var sparseFiles = []string{"libsvm", "csv", "ratings"}

// heldOutFlags say which rows are held out for good.
func heldOutFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{
			Name:  "held-out",
			Usage: "held-out `SHARE` of sparse rows (default: each job draws its own)",
		},
		&cli.StringFlag{
			Name: "held-out-by", Usage: "hold out a share of all rows (row), or of the ratings of each user (user): `UNIT`",
			Value: "row",
		},
		&cli.Int64Flag{Name: "seed", Usage: "`SEED` of the random numbers", Value: 1},
	}
}

// SparseFlags are the flags of `dataset add` for sparse rows.
func SparseFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "libsvm", Usage: "LIBSVM `FILE` of sparse rows, plain or gzip"},
		&cli.StringFlag{
			Name:  "csv",
			Usage: "CSV `FILE` of labelled rows, plain or gzip; with --schema, of sparse rows",
		},
		&cli.StringFlag{Name: "schema", Usage: "JSON `FILE` that describes the fields of --csv"},
		&cli.StringFlag{
			Name:  "ratings",
			Usage: "MovieLens `FILE` of user, item, rating and time, plain or gzip",
		},
		&cli.IntFlag{Name: "columns", Usage: "`NUMBER` of columns of --libsvm (default: as many as the file has)"},
	}, heldOutFlags()...)
}

func heldOut(c *cli.Context) (h sparse.HeldOut, err error) {
	h = sparse.HeldOut{Share: c.Float64("held-out"), ByUser: c.String("held-out-by") == "user", Seed: c.Int64("seed")}
	if by := c.String("held-out-by"); by != "row" && by != "user" {
		return h, &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set", Msg: fmt.Sprintf("rows are not held out by %q", by),
			Hint: "--held-out-by row or --held-out-by user",
		}
	}
	return h, nil
}

// SparseRows is the data set of sparse rows that the flags of `dataset add` name; named tells whether they do. It
// returns Invalid.
func SparseRows(c *cli.Context, name string) (in dataset.SparseInput, named bool, err error) {
	given := slices.DeleteFunc(slices.Clone(sparseFiles), func(f string) bool { return !c.IsSet(f) })
	if len(given) == 0 {
		return in, false, nil
	}
	bad := func(msg, hint string) (dataset.SparseInput, bool, error) {
		return in, true, &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
	}
	held, err := heldOut(c)
	if err != nil {
		return in, true, err
	}
	switch {
	case len(given) > 1 || NamesDataFiles(c):
		return bad("it names files of several kinds", "give one of --libsvm, --csv and --ratings")
	case c.IsSet("csv") != c.IsSet("schema"):
		return bad("--csv and --schema go together", "--csv FILE --schema FILE")
	case held.ByUser && !c.IsSet("ratings"):
		return bad("only ratings have users", "--held-out-by row")
	}
	from := dataset.FileSource(c.String(given[0]))
	switch given[0] {
	case "libsvm":
		in, err = sparse.Libsvm{Source: from, Columns: c.Int("columns"), HeldOut: held}.Input(name)
	case "ratings":
		in, err = sparse.Ratings{Source: from, HeldOut: held}.Input(name)
	default:
		in, err = csvRows(c, from, held, name)
	}
	return in, true, err
}

func csvRows(c *cli.Context, from dataset.Source, held sparse.HeldOut, name string) (
	in dataset.SparseInput, err error,
) {
	file := c.String("schema")
	f, err := os.Open(file)
	if err != nil {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Err: files.Plain(err), Hint: "check the file's name",
		}
	}
	defer f.Close()
	schema, err := sparse.ReadSchema(f, file)
	if err != nil {
		return in, err
	}
	return sparse.CSV{Source: from, Schema: schema, HeldOut: held}.Input(name)
}

// GenerateFlags are the flags of `dataset generate`.
func GenerateFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{
			Name: "like", Usage: "ratings: the size of `SET`: ml-100k, ml-1m, ml-10m or ml-20m",
			Value: "ml-100k",
		},
		&cli.IntFlag{Name: "users", Usage: "ratings: `NUMBER` of users"},
		&cli.IntFlag{Name: "items", Usage: "ratings: `NUMBER` of items"},
		&cli.IntFlag{Name: "rows", Usage: "`NUMBER` of ratings or clicks (default for clicks: 100000)"},
		&cli.IntFlag{Name: "features", Usage: "clicks: `NUMBER` of columns to hash categories to", Value: 100_000},
		&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"},
	}, heldOutFlags()...)
}

// defaultClicks is how many clicks are made.
const defaultClicks = 100_000

// MadeRows is the data set that the operands and flags of `dataset generate` describe. It returns Invalid.
func MadeRows(c *cli.Context) (in dataset.SparseInput, err error) {
	held, err := heldOut(c)
	if err != nil {
		return in, err
	}
	bad := func(msg, hint string) (dataset.SparseInput, error) {
		return in, &disdel.Error{Kind: disdel.Invalid, Op: "generate data set", Msg: msg, Hint: hint}
	}
	what, name := c.Args().Get(0), c.Args().Get(1)
	switch what {
	case "clicks":
		if held.ByUser {
			return bad("only ratings have users", "--held-out-by row")
		}
		return sparse.MadeClicks{
			Rows: cmp.Or(c.Int("rows"), defaultClicks), Features: c.Int("features"), Seed: c.Int64("seed"), HeldOut: held,
		}.Input(name)
	case "ratings":
		users, items, ratings, ok := sparse.MovieLensSize(c.String("like"))
		if !ok {
			return bad(fmt.Sprintf("no size is known as %q", c.String("like")), "ml-100k, ml-1m, ml-10m or ml-20m")
		}
		return sparse.MadeRatings{
			Users: cmp.Or(c.Int("users"), users), Items: cmp.Or(c.Int("items"), items), Ratings: cmp.Or(c.Int("rows"), ratings),
			Seed: c.Int64("seed"), HeldOut: held,
		}.Input(name)
	default:
		return bad(fmt.Sprintf("%q cannot be made", what), "disdel dataset generate ratings NAME, or clicks NAME")
	}
}
