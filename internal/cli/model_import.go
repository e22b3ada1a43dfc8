package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// modelImport stores a model of another program.
func modelImport(u *ui) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "store an ONNX model, or a hub's folder, as a trained model",
		ArgsUsage: "NAME FILE.onnx|FOLDER|hf://ORG/NAME",
		Description: "The model becomes the next version of NAME: docs/reference/weights.md, " +
			"docs/how-to/use-a-hub-model.md.\n\n   disdel model import shop shop.onnx --job tune.yaml --data digits\n" +
			"   disdel model import reviews hf://ORG/NAME@COMMIT --classes 2 --positions 128",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "show the layers with shapes and counts, and store nothing"},
			&cli.BoolFlag{Name: "keep-output", Usage: "answer what the file answers: add no softmax"},
			&cli.StringFlag{Name: "input", Usage: "`SIDES` of a row that an ONNX file leaves open, such as 3x48x192"},
			&cli.StringFlag{
				Name: "output", Usage: "`NAME` of the ONNX graph's value that is the answer, if there are several",
			},
			&cli.StringFlag{Name: "job", Usage: "also write a job `FILE` that trains the model further"},
			&cli.StringFlag{Name: "data", Usage: "data set `NAME` of that job"},
			&cli.IntFlag{Name: "classes", Usage: "`NUMBER` of classes for a folder without a classifier"},
			&cli.IntFlag{Name: "positions", Usage: "`NUMBER` of tokens of a row, if fewer than the folder's"},
			hubFlag,
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 1 {
				return badImport(fmt.Sprintf("a NAME for the model and its file are needed, and only %.80q is given",
					c.Args().First()), "write the name first: disdel model import shop shop.onnx")
			}
			if err := checkOperands(c, 2, 2); err != nil {
				return err
			}
			name, file := c.Args().Get(0), c.Args().Get(1)
			if (c.String("job") == "") != (c.String("data") == "") || strings.Contains(name, ":") {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "import model", Msg: "give a NAME without a version, and --job together with --data",
					Hint: "disdel model import --help",
				}
			}
			from, err := fetchFromHub(c.Context, c, u, file)
			if err != nil {
				return err
			}
			in, err := readModel(c, from.path)
			if err != nil {
				return err
			}
			for _, note := range in.Notes {
				u.Say("note   %s", note)
			}
			if c.Bool("dry-run") {
				doc, err := render.ImportedNetwork(in.Network, file, in.title)
				if err != nil {
					return err
				}
				return u.Show(doc, func(w io.Writer) { render.PrintNetwork(w, doc) })
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				m, err := at.Models.Add(ctx, modelstore.Model{
					ModelRef: disdel.ModelRef{Name: name}, Created: time.Now().UTC(), Network: in.Network, Labels: in.Labels,
				}, in.Weights, modelstore.HubFiles{Tokenizer: in.Tokenizer, Origin: in.Origin})
				if err != nil {
					return err
				}
				if c.String("job") != "" {
					if err := writeImportJob(u, c.String("job"), c.String("data"), &m); err != nil {
						return err
					}
				}
				return errors.Join(from.done(),
					u.Show(m, func(w io.Writer) { fmt.Fprintf(w, "%s: %v of weights\n", m.Ref(), m.Size) }))
			})
		},
	}
}

func badImport(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "import model", Msg: msg, Hint: hint}
}

// importedModel is a model of another program.
type importedModel struct {
	export.HubModel
	title string
}

// readModel reads an ONNX file, or a folder as a hub has it.
func readModel(c *cli.Context, name string) (m importedModel, err error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		for _, flag := range []string{"classes", "positions"} {
			if c.IsSet(flag) {
				return m, badImport("--"+flag+" goes with a hub's folder", "leave it out")
			}
		}
		opt := export.ONNXOptions{KeepOutput: c.Bool("keep-output"), Output: c.String("output")}
		if text := c.String("input"); c.IsSet("input") {
			opt.Row, err = parseSides(text, 1+strings.Count(text, "x"))
			if err != nil || len(opt.Row) > 3 || slices.Max(opt.Row) > mostSide {
				return m, badImport(fmt.Sprintf("--input %q gives no sides of a row", text),
					"write channels x height x width: --input 3x48x192")
			}
		}
		m.Imported, err = readONNX(name, opt)
		m.title = "Network of ONNX"
		return m, err
	}
	for _, flag := range []string{"keep-output", "input", "output"} {
		if c.IsSet(flag) {
			return m, badImport("--"+flag+" goes with an ONNX file", "leave it out")
		}
	}
	opt := export.HubOptions{Classes: c.Int("classes"), Positions: c.Int("positions")}
	if opt.Classes < 0 || opt.Positions < 0 {
		return m, badImport("a folder takes --classes and --positions above 0", "disdel model import --help")
	}
	folder, err := os.OpenRoot(name)
	if err != nil {
		return m, err
	}
	defer folder.Close()
	m.HubModel, err = export.ImportHub(folder, opt)
	m.title = "Network of a hub's folder"
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		faults.File = name
	}
	return m, err
}

// readONNX reads a model, and data that it keeps in other files of its folder.
func readONNX(file string, opt export.ONNXOptions) (in export.Imported, err error) {
	wrong := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "import model", Msg: "read " + file, Err: err, Hint: "check the file's name",
		}
	}
	folder, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return in, wrong(err)
	}
	defer folder.Close()
	data, err := os.ReadFile(file)
	if err != nil {
		return in, wrong(err)
	}
	in, err = export.ImportONNX(data, folder, opt)
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		faults.File = file
	}
	return in, err
}

// writeImportJob writes a job file, in YAML's form of JSON, that starts from an imported model.
func writeImportJob(u *ui, file, data string, m *modelstore.Model) error {
	return newFile(u, "import model", file, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		network := map[string]any{"layers": m.Network.Layers, "init": map[string]string{"weights": m.Ref()}}
		if m.Network.Name != "" { // a file that disdel wrote of a network of the zoo
			delete(network, "layers")
			network["name"] = m.Network.Name
		}
		return out.Encode(map[string]any{
			"apiVersion": disdel.APIVersion, "kind": "TrainingJob", "metadata": map[string]string{"name": m.Name},
			"model": network,
			"data":  map[string]string{"source": "dataset://" + data}, "training": map[string]int{"epochs": 1},
		})
	})
}

var hubFlag = &cli.StringFlag{
	Name: "hub", EnvVars: []string{"HF_ENDPOINT"}, Usage: "`URL` of the hub, or a mirror, of hf:// addresses",
	DefaultText: "https://huggingface.co",
}

// fetched is a file or folder of a hub on this computer.
type fetched struct {
	path   string
	folder string // with nothing else; "": nothing was fetched
}

// done deletes what was fetched, after it was stored. What failed is kept, and a second try fetches only the rest.
func (f fetched) done() error {
	if f.folder == "" {
		return nil
	}
	return os.RemoveAll(f.folder)
}

// fetchFromHub fetches what an hf:// address names, and leaves other names as they are.
func fetchFromHub(ctx context.Context, c *cli.Context, u *ui, name string) (f fetched, err error) {
	if f.path = name; !export.IsHubRef(name) {
		return f, nil
	}
	ref, err := export.ParseHubRef(name)
	if err != nil {
		return f, err
	}
	dir, err := home(c)
	if err != nil {
		return f, err
	}
	hub := export.Hub{URL: c.String("hub"), Token: os.Getenv("HF_TOKEN"), Say: u.Say, Wait: time.Second}
	parent, commit := filepath.Join(dir, "hub"), ""
	if ref.Dataset {
		f.path, commit, err = hub.FetchData(ctx, ref, parent)
	} else {
		f.path, commit, err = hub.FetchModel(ctx, ref, parent)
	}
	if err != nil {
		return f, err
	}
	f.folder = filepath.Join(parent, export.HubFolder(ref))
	u.Say("note   %s is at commit %s; write @%.12s to name it", terminal.OneLine(ref.Repo), commit, commit)
	return f, nil
}
