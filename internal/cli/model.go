package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/service/tenant"
)

func modelCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "model", Usage: "list, show, compare, import, export and share networks and trained models",
		Subcommands: append([]*cli.Command{
			modelList(u), modelShow(u), modelImport(u), modelExport(u), modelPromote(u), modelCompare(u), modelRemove(u),
		}, shareCommands(u, tenant.ItemModel, "model")...),
		Action: needSubcommand,
	}
}

func modelList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the built-in networks and the trained models",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				networks, err := render.Networks()
				if err != nil {
					return err
				}
				doc := render.ModelList{Networks: networks, Models: []modelstore.Model{}}
				trained, faults := at.Models.List(ctx)
				doc.Models = append(doc.Models, trained...)
				return errors.Join(u.Show(doc, func(w io.Writer) { render.PrintModels(w, doc, faults) }), faults)
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
				if err := checkOperands(c, 0, 0); err != nil {
					return err
				}
				return showKeras(c, u, c.String("keras"))
			}
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if slices.Contains([]string{".json", ".keras", ".h5", ".hdf5"}, strings.ToLower(filepath.Ext(c.Args().First()))) {
				return showKeras(c, u, c.Args().First())
			}
			if slices.Contains([]string{".py", ".pt", ".pth"}, strings.ToLower(filepath.Ext(c.Args().First()))) {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "read " + c.Args().First(), Msg: "disdel does not run Python or read its pickles",
					Hint: "from_torch of the Python client (clients/python) brings a PyTorch network; else it runs " +
						"as your own Python code: model.python, docs/reference/python-programs.md",
				}
			}
			return withClient(c, u, storage,
				func(ctx context.Context, at client.Client) error { return showModel(ctx, c, u, at.Models) })
		},
	}
}

// showKeras shows the network of a Keras file, which fixes its input and outputs.
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
	doc, err := render.KerasNetwork(text, file)
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { render.PrintNetwork(w, doc) })
}

// showModel shows a trained model or a network. It prefers the trained model, unless the flags ask for a network.
func showModel(ctx context.Context, c *cli.Context, u *ui, models client.Models) error {
	name := c.Args().First()
	var classes *int
	if c.IsSet("classes") {
		classes = new(c.Int("classes"))
	}
	m, err := models.Get(ctx, name)
	doc, unknown := render.NamedNetwork(name, c.String("input"), classes)
	isNetwork := disdel.KindOf(unknown) != disdel.NotFound
	switch {
	case err == nil && !(isNetwork && (c.IsSet("input") || c.IsSet("classes"))):
		return showTrained(c, u, &m)
	case !isNetwork && (strings.ContainsAny(name, ":/") || disdel.KindOf(err) != disdel.NotFound):
		return err
	case unknown != nil:
		return unknown
	}
	return u.Show(doc, func(w io.Writer) { render.PrintNetwork(w, doc) })
}

func showTrained(c *cli.Context, u *ui, m *modelstore.Model) error {
	doc, err := render.DescribeModel(m)
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { render.PrintTrainedModel(w, doc, c.Bool("layers")) })
}

// usualTag is the default tag of `model promote`.
const usualTag = "prod"

// mostModels is how many models `model compare` takes.
const mostModels = 100

func modelPromote(u *ui) *cli.Command {
	return &cli.Command{
		Name: "promote", ArgsUsage: "NAME:vN [TAG]", Usage: "give a tag to a version of a model (default: prod)",
		Description: "From now on, NAME:TAG means this version, and output.keep does not remove it. " +
			"NAME:best always means\nthe best version.\n\n   disdel model promote digits-cnn:v3\n   disdel infer " +
			"digits-cnn:prod --input digit.json",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 2); err != nil {
				return err
			}
			tag := cmp.Or(c.Args().Get(1), usualTag)
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				m, err := at.Models.Tag(ctx, c.Args().First(), tag)
				if err != nil {
					return err
				}
				return u.Show(m, func(w io.Writer) { fmt.Fprintf(w, "%s:%s is %s\n", m.Name, tag, m.Ref()) })
			})
		},
	}
}

// removedWeights is what `model remove` prints for a file of weights with -o json.
type removedWeights struct {
	Removed string `json:"removed"`
}

func modelRemove(u *ui) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "delete a version of a trained model", ArgsUsage: "NAME:vN",
		Description: "Versions with a tag are not deleted: give the tag to another version first. sha256:... is a file of " +
			"weights\nthat jobs started with; they have copies of it. On a terminal disdel asks first.\n\n" +
			"   disdel model remove digits-cnn:v1",
		Flags: []cli.Flag{yesFlag},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if name := c.Args().First(); !strings.Contains(name, ":") { // nobody deletes one by leaving something out
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "remove model", Msg: "give a version, for example " + name + ":v1",
					Hint: "disdel model compare " + name,
				}
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				if err := u.Confirm("Delete "+c.Args().First()+"?", c.Bool("yes")); err != nil {
					return err
				}
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

func modelCompare(u *ui) *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "compare trained models", ArgsUsage: "MODEL MODEL...",
		Description: "MODEL is NAME, NAME:vN or NAME:TAG. A single NAME compares all its versions.\n\n" +
			"   disdel model compare digits-cnn:prod digits-cnn",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, mostModels); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				list, err := modelsToCompare(ctx, at.Models, c.Args().Slice())
				if err != nil {
					return err
				}
				doc := render.ModelComparison{Models: list}
				return u.Show(doc, func(w io.Writer) { render.PrintModelComparison(w, doc) })
			})
		},
	}
}

// modelsToCompare are the named models, or all versions of a single name.
func modelsToCompare(ctx context.Context, models client.Models, refs []string) (out []modelstore.Model, err error) {
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

// The formats of `model export`.
const (
	toSafetensors = "safetensors"
	toONNX        = "onnx"
	toHub         = "hf"        // a folder as the Hugging Face hub has it
	toAdapter     = "adapter"   // a folder as PEFT has it
	toTokenizer   = "tokenizer" // the tokenizer.json that made the tokens
)

// modelExport writes a model for other programs.
func modelExport(u *ui) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write a trained model as safetensors (weights), ONNX or a hub's folder", ArgsUsage: "NAME",
		Description: "NAME is the newest version that learned, NAME:vN one version. Layouts: docs/reference/weights.md.\n\n" +
			"   disdel model export digits-cnn --file digits.onnx\n" +
			"   disdel model export reviews --to hf --file ./reviews",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "to", DefaultText: "as the file's extension says, else safetensors", Value: toSafetensors,
				Usage: "`FORMAT`: safetensors, onnx, hf (a folder for transformers), adapter (only LoRA) or tokenizer",
			},
			pythonFlag,
		}, fileFlags("new `FILE` to write, or - for standard output")...),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			format, err := formatOf(c, "export model", toSafetensors, toONNX)
			if err != nil {
				return err
			}
			doc := exportDocument{Format: format, File: fileOf(c)}
			switch {
			case !slices.Contains([]string{toSafetensors, toONNX, toHub, toAdapter, toTokenizer}, doc.Format):
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "export model", Msg: fmt.Sprintf("there is no format %q", doc.Format),
					Hint: "use safetensors, onnx, hf, adapter or tokenizer",
				}
			case doc.File == "":
				return missingFlag(c, "--file FILE")
			case doc.File == standardOutput && (doc.Format == toHub || doc.Format == toAdapter):
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "export model", Msg: doc.Format + " is several files",
					Hint: "name a folder with --file",
				}
			case doc.File == standardOutput:
				if err := twoFormats(u, "export model", "--file -"); err != nil {
					return err
				}
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				m, err := at.Models.Get(ctx, c.Args().First())
				if err == nil {
					err = doc.export(ctx, u, at.Models, &m, programs(c))
				}
				if err != nil || doc.File == standardOutput {
					return err
				}
				return u.Show(doc, func(w io.Writer) { fmt.Fprintf(w, "%s: %v in %s\n", doc.Model, doc.Size, doc.File) })
			})
		},
	}
}

// exportDocument is what `model export` prints with -o json.
type exportDocument struct {
	Model    string       `json:"model"`
	Format   string       `json:"format"`
	File     string       `json:"file"`
	Size     disdel.Bytes `json:"sizeBytes"`
	Checksum string       `json:"checksum"`
}

// export writes the complete file or nothing.
func (d *exportDocument) export(ctx context.Context, u *ui, models client.Models, m *modelstore.Model,
	python *client.Programs,
) error {
	switch d.Format {
	case toHub:
		return d.exportToHub(ctx, models, m)
	case toAdapter:
		return d.exportAdapter(ctx, models, m)
	}
	out := &checksumWriter{sum: sha256.New()}
	if err := newFile(u, "export model", d.File, func(w io.Writer) error {
		out.to = w
		switch d.Format {
		case toONNX:
			return writeONNX(ctx, out, models, m, python)
		case toTokenizer:
			return writeTokenizer(ctx, out, models, m)
		}
		return models.CopyWeights(ctx, out, m)
	}); err != nil {
		return err
	}
	d.Model, d.Size, d.Checksum = m.Ref(), out.size, "sha256:"+hex.EncodeToString(out.sum.Sum(nil))
	return nil
}

// writeTokenizer writes the tokenizer.json of a model of texts: texts for fine-tuning must become the same tokens.
func writeTokenizer(ctx context.Context, w io.Writer, models client.Models, m *modelstore.Model) error {
	files, err := models.HubFiles(ctx, m)
	if err != nil {
		return err
	}
	if files.Tokenizer == nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export model", Msg: m.Ref() + " has no tokenizer, since it did not learn from texts",
			Hint: "disdel model list shows models; models of --text and --text-files have a tokenizer",
		}
	}
	_, err = w.Write(files.Tokenizer)
	return err
}

// exportToHub writes a folder; the size and the checksum are those of its weights.
func (d *exportDocument) exportToHub(ctx context.Context, models client.Models, m *modelstore.Model) error {
	files, err := models.HubFiles(ctx, m)
	if err != nil {
		return err
	}
	weights, err := readWeights(ctx, models, m)
	if err != nil {
		return err
	}
	if err := export.ExportHub(d.File, export.HubExport{
		Network: m.Network, Weights: weights, Labels: m.Labels, Tokenizer: files.Tokenizer, Origin: files.Origin,
		Card: render.ModelCard(m),
	}); err != nil {
		return err
	}
	return d.wrote(m, export.HubWeightsFile)
}

// exportAdapter writes the adapters that the model's training added to another model, as a folder.
func (d *exportDocument) exportAdapter(ctx context.Context, models client.Models, m *modelstore.Model) error {
	base := m.Network.Init.Weights
	if m.Adapter == nil || base == "" || strings.HasPrefix(base, "sha256:") {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export model", Msg: m.Ref() + " has no adapters beside the weights of a model",
			Hint: "train with model.lora and model.init.weights: MODEL, or write all weights: --to safetensors",
		}
	}
	from, err := models.Get(ctx, base)
	if err != nil {
		return err
	}
	out := export.AdapterExport{Adapter: *m.Adapter, BaseName: from.Ref()}
	if out.Base, err = readWeights(ctx, models, &from); err != nil {
		return err
	}
	if out.Trained, err = readWeights(ctx, models, m); err != nil {
		return err
	}
	if err := export.ExportAdapter(d.File, out); err != nil {
		return err
	}
	return d.wrote(m, export.AdapterWeightsFile)
}

// readWeights reads all weights of a model.
func readWeights(ctx context.Context, models client.Models, m *modelstore.Model) (disdel.Weights, error) {
	var data bytes.Buffer
	if err := models.CopyWeights(ctx, &data, m); err != nil {
		return nil, err
	}
	f, err := safetensors.Parse(data.Bytes())
	if err != nil {
		return nil, err
	}
	return safetensors.ToWeights(f)
}

// wrote notes the size and the checksum of the file of weights in a folder.
func (d *exportDocument) wrote(m *modelstore.Model, file string) error {
	out := &checksumWriter{to: io.Discard, sum: sha256.New()}
	written, err := os.Open(filepath.Join(d.File, file))
	if err != nil {
		return err
	}
	defer written.Close()
	if _, err := io.Copy(out, written); err != nil {
		return err
	}
	d.Model, d.Size, d.Checksum = m.Ref(), out.size, "sha256:"+hex.EncodeToString(out.sum.Sum(nil))
	return nil
}

// checksumWriter counts the written bytes and computes their checksum.
type checksumWriter struct {
	to   io.Writer
	sum  hash.Hash
	size disdel.Bytes
}

func (m *checksumWriter) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.sum.Write(p[:n])
	m.size += disdel.Bytes(n)
	return n, err
}

// writeONNX writes the network, its weights, and the names that answers need. A program writes its own network.
func writeONNX(ctx context.Context, w io.Writer, models client.Models, m *modelstore.Model,
	python *client.Programs,
) error {
	var weights bytes.Buffer
	if err := models.CopyWeights(ctx, &weights, m); err != nil {
		return err
	}
	notes, err := export.ModelNotes(m.Ref(), m.Data.Name, m.Checksum, m.Labels)
	if err != nil {
		return err
	}
	custom := m.Network.Custom
	if custom == nil || custom.Python == nil {
		return export.ConvertONNX(w, m.Network, weights.Bytes(), notes)
	}
	archive, err := models.ReadProgram(ctx, m)
	if err != nil {
		return err
	}
	if err := python.WriteONNX(ctx, w, *custom, archive, weights.Bytes()); err != nil {
		return err
	}
	return export.AppendNotes(w, notes)
}
