package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
)

var setFlag = &cli.StringSliceFlag{Name: "set", Usage: "override a field: `PATH=VALUE`, such as training.batchSize=32 (repeatable)"}

var backendFlag = &cli.StringFlag{Name: "backend", Usage: "`ENGINE` that trains: native or gorgonia; short for --set training.backend=ENGINE"}

// overrides is what the command line says about fields of the job file, --backend last. Its value is quoted, so that it
// is taken as the word it is, not as YAML.
func overrides(c *cli.Context) []string {
	sets := c.StringSlice("set")
	if c.IsSet("backend") {
		sets = append(sets, "training.backend="+strconv.Quote(c.String("backend")))
	}
	return sets
}

// source is a job file as it was read.
type source struct {
	name string
	text []byte
	file jobfile.File
}

// readJob reads and checks a job file, "-" being standard input. Faults are kept for resolve, which adds its own.
func readJob(u *ui, name string, sets []string) (source, []disdel.Fault, error) {
	text, err := readInput(u, name)
	if err != nil {
		return source{}, nil, err
	}
	file, err := jobfile.ParseWith(name, text, sets, beside(name))
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		return source{name, text, file}, faults.Faults, nil
	}
	return source{name, text, file}, nil, err
}

// beside reads the files that a job file names: those of a relative path from the job file's own folder, or from the
// current one where the job comes from standard input.
func beside(job string) func(file string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if job != "-" && !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(job), file)
		}
		return readFile(file)
	}
}

// maxInput bounds what is read from a file or a pipe into memory before anyone has looked at it.
const maxInput = 64 << 20

func readInput(u *ui, name string) ([]byte, error) {
	if name == "-" {
		return readAll(name, u.in)
	}
	return readFile(name)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: plainPathError(err), Hint: "check the file's name"}
	}
	defer f.Close()
	return readAll(name, f)
}

func readAll(name string, in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("it is larger than %v", disdel.Bytes(maxInput))
	}
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: plainPathError(err)}
	}
	return data, nil
}

// plainPathError drops the path that the message names already.
func plainPathError(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// resolve checks the job against the networks and data sets there are, and shows every fault with its line.
func (src source) resolve(ctx context.Context, u *ui, data *dataset.Store, faults []disdel.Fault) (controller.Resolved, error) {
	r, err := controller.Resolve(ctx, src.file.Job, data, src.name, src.file.Locate, faults)
	var all *disdel.Faults
	if errors.As(err, &all) && u.format == "table" {
		jobfile.Render(all, src.text, u.err)
		return r, reported{err}
	}
	for _, note := range r.Notes {
		u.say("note   %s", note)
	}
	return r, err
}

// runJob plans and runs a job and shows what came of it. A job that failed is reported and gives its exit code.
func runJob(ctx context.Context, u *ui, s *stack, prepare func(ctx context.Context, j *jobStack) (controller.Resolved, error)) (*disdel.Record, error) {
	f := newFollower(u)
	c, j, err := s.controller(ctx, f.notice)
	if err != nil {
		return nil, err
	}
	r, err := prepare(ctx, j)
	if err != nil {
		return nil, err
	}
	in, err := j.input(ctx, u, c, newJobID(), r)
	if err != nil {
		return nil, err
	}
	p, err := j.planned(r, in)
	if err != nil {
		return nil, err
	}
	if err := j.room(ctx, p.spec, r.Graph); err != nil {
		return nil, err
	}
	if err := s.hold(in.ID); err != nil {
		return nil, err
	}
	p.spec.Origin = s.origin()
	rec, err := c.Run(ctx, p.spec, p.data)
	f.done()
	return rec, s.shown(u, rec, err)
}

// shown prints what came of a job. One that failed is reported and gives its exit code; one that was never begun has no record.
func (s *stack) shown(u *ui, rec *disdel.Record, err error) error {
	if err != nil && rec != nil {
		err = s.keep(rec, err)
	}
	if err != nil {
		return err
	}
	u.say("")
	if err := u.show(rec, func(w io.Writer) { printRecord(w, rec) }); err != nil {
		return err
	}
	for _, text := range rec.Warnings {
		if u.format != "table" { // which has them
			u.say("warning: %s", text)
		}
	}
	for _, note := range s.notes {
		u.say("%s", note)
	}
	if rec.Status == disdel.StatusSucceeded {
		return nil
	}
	if u.format != "table" { // an error is the last line of what programs read
		u.say("next:  %s %s", program(), afterwards(rec))
		return failure(rec)
	}
	u.fail(failure(rec))
	u.say("next:  %s %s%s", program(), afterwards(rec), s.whereRecordsAre())
	return reported{failure(rec)}
}

// afterwards is the command that is next for a job that did not succeed: what was only stopped goes on.
func afterwards(r *disdel.Record) string {
	if r.Status == disdel.StatusCanceled || r.Failure != nil && r.Failure.Code == disdel.CodeUnreachable {
		return "resume " + string(r.ID)
	}
	return "report " + string(r.ID)
}

func failure(r *disdel.Record) error {
	if r.Failure != nil {
		return r.Failure
	}
	return &disdel.Error{Kind: disdel.Internal, Op: "run job", Job: r.ID, Msg: "the job ended as " + r.Status.String()}
}

// withJob reads the job file that a command names and runs f with it on a stack.
func withJob(c *cli.Context, u *ui, f func(ctx context.Context, s *stack, src source, faults []disdel.Fault) error) error {
	if err := operands(c, 1, 1); err != nil {
		return err
	}
	src, faults, err := readJob(u, c.Args().First(), overrides(c))
	if err != nil {
		return err
	}
	if src.file.Job.Model.Description, err = describe(c); err != nil {
		return err
	}
	return withStack(c, u, func(ctx context.Context, s *stack) error { return f(ctx, s, src, faults) })
}

func submitCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "submit", Usage: "run a job and follow it to its end", ArgsUsage: "FILE",
		Description: "FILE is a job file, or - for standard input. Ctrl-C stops the job cleanly.\n\n" +
			"   disdel submit examples/lenet-fashion.yaml\n" +
			"   disdel submit job.yaml --set training.epochs=10 -o json\n" +
			"   disdel submit job.yaml --backend gorgonia\n" +
			"   disdel submit examples/gorgonia/job.yaml --action bin/digits-gorgonia",
		Flags: append([]cli.Flag{setFlag, actionFlag, backendFlag, probeFlag}, estimatorFlags...),
		Action: func(c *cli.Context) error {
			return withJob(c, u, func(ctx context.Context, s *stack, src source, faults []disdel.Fault) error {
				rec, err := runJob(ctx, u, s, func(ctx context.Context, j *jobStack) (controller.Resolved, error) {
					return src.resolve(ctx, u, j.data, faults)
				})
				if err == nil && rec.Model != nil {
					u.say("next:  %[1]s history show %[2]s\n       %[1]s model show %[3]s:v%[4]d", program(), rec.ID, rec.Model.Name, rec.Model.Version)
				}
				return err
			})
		},
	}
}

// quickstartName is the data set, and the stem of the model's name, of the first job anyone runs.
const quickstartName = "digits"

func quickstartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "quickstart", Usage: "train a small network on real data in under a minute",
		Description: "Trains a convolutional network on 1,797 handwritten digits as two concurrent train actions plus\n" +
			"aggregation, on embedded OpenWhisk, Redis and history. Needs no set-up and no network.",
		Flags: append([]cli.Flag{setFlag, backendFlag}, estimatorFlags...),
		Action: func(c *cli.Context) error {
			if err := operands(c, 0, 0); err != nil {
				return err
			}
			return withStack(c, u, func(ctx context.Context, s *stack) error {
				rec, err := runJob(ctx, u, s, func(ctx context.Context, j *jobStack) (controller.Resolved, error) {
					if err := ensureBuiltin(ctx, j.data, quickstartName); err != nil {
						return controller.Resolved{}, err
					}
					file, err := jobfile.ParseWith("quickstart.yaml", quickstartJob, overrides(c), beside("-"))
					if err != nil {
						return controller.Resolved{}, err
					}
					return source{"quickstart.yaml", quickstartJob, file}.resolve(ctx, u, j.data, nil)
				})
				if err == nil {
					u.say("%s", quickstartNext(rec))
				}
				return err
			})
		},
	}
}

func quickstartNext(r *disdel.Record) string {
	return fmt.Sprintf(`next:  %[4]s dataset sample digits --row 7 > %[1]s
       %[4]s infer %[2]s --input %[1]s
       %[4]s history show %[3]s
       %[4]s dataset add fashion-mnist
       %[4]s submit examples/lenet-fashion.yaml`, "digit.json", r.Model.Name, r.ID, program())
}

// program is what to type to run this program again: as it was called, through go run where that built it.
func program() string {
	path, err := os.Executable()
	if err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/disdel"
	}
	return os.Args[0]
}
