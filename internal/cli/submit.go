package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/examples"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

var setFlag = &cli.StringSliceFlag{
	Name:  "set",
	Usage: "set a field: `PATH=VALUE`, for example training.batchSize=32 (repeatable)",
}

var probeFlag = &cli.BoolFlag{
	Name:  "probe",
	Usage: "measure the speed for two seconds if no earlier job shows it",
}

var actionFlag = &cli.StringFlag{
	Name: "action", TakesFile: true,
	Usage: "program `FILE` with its own network, to run as the job's actions (examples/gorgonia)",
}

// estimatorFlags choose how memory is estimated.
var estimatorFlags = []cli.Flag{
	&cli.StringFlag{
		Name: "estimator", Value: estimator.MethodPlanned,
		Usage: "`METHOD` of memory estimates: planned, learned (planned, corrected by earlier peaks) or paper (Eq. 1-5 " +
			"of DiSDeL)",
	},
	&cli.Float64Flag{
		Name: "risk", DefaultText: "0.001",
		Usage: "accepted `CHANCE` that an action runs out of memory, at most 0.05",
	},
}

// planOptions reads the flags that choose how a job is planned.
func planOptions(c *cli.Context) service.Options {
	o := service.Options{Probe: c.Bool("probe")}
	if c.IsSet("estimator") { // else the plan chooses: learned for Python programs that ran before
		o.Estimator = c.String("estimator")
	}
	if c.IsSet("risk") {
		o.Risk = new(c.Float64("risk"))
	}
	return o
}

// describeAction asks the program of --action for its network. It is nil without --action.
func describeAction(c *cli.Context) (*disdel.CustomNetwork, error) {
	name := c.String("action")
	if name == "" {
		return nil, nil
	}
	if c.String("apihost") != "" && c.String("image") == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Msg: "a cluster cannot run the program of --action",
			Hint: "build an image whose entry point it is, and name it too: --image IMAGE",
		}
	}
	return service.Describe(c.Context, name)
}

// source is a job file that was read.
type source struct {
	text   []byte
	file   jobfile.File
	faults []disdel.Fault // that its own check found; the service adds those that it finds
}

// readJob reads and checks a job file; "-" is standard input.
func readJob(c *cli.Context, u *ui, name string) (src source, err error) {
	if err := checkShorthands(c); err != nil {
		return src, err
	}
	if src.text, err = readInput(u, name); err != nil {
		return src, err
	}
	src.file, err = jobfile.ParseWith(name, src.text, overrides(c), filesBeside(name))
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		src.faults, err = faults.Faults, nil
	}
	if err == nil {
		src.file.Job.Model.Description, err = describeAction(c)
	}
	return src, err
}

// filesBeside reads files that a job file names. Relative paths start from the job file's folder, or from the current
// folder if the job came from standard input.
func filesBeside(job string) func(file string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		if job != "-" && !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(job), file)
		}
		return files.Read(file)
	}
}

// readInput reads a job file; "-" is standard input. A Python program gets a job file.
func readInput(u *ui, name string) ([]byte, error) {
	if file, entry, ok := programOperand(name); ok {
		return programJob(file, entry), nil
	}
	if name == "-" {
		return files.ReadAll(name, u.In)
	}
	return files.Read(name)
}

// request is the request that submits the job file.
func (src source) request(c *cli.Context) service.Request {
	return service.Request{
		Job: src.file.Job, Options: planOptions(c), Origin: originOf(c, overrides(c)),
		Priority: c.Int("priority"), Key: c.String("idempotency-key"),
		Source: service.Source{Name: src.file.Name, Locate: src.file.Locate, Faults: src.faults},
	}
}

// showFaults prints every fault of a job file with its line.
func (src source) showFaults(u *ui, err error) error {
	var all *disdel.Faults
	if _, _, ok := programOperand(src.file.Name); ok && errors.As(err, &all) && u.Format == "table" {
		return programMistakes(u, all)
	}
	if errors.As(err, &all) && u.Format == "table" {
		u.Faults(all, src.text)
		return terminal.Reported(err)
	}
	return err
}

func submitCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "submit", Usage: "run a job and show its progress", ArgsUsage: "FILE | PROGRAM.py[:ENTRY]",
		Description: "FILE is a job file, or - for standard input. PROGRAM.py is a Python program, which needs no job file. If a server runs the job, Ctrl-C ends only the view. " +
			"For a\n" +
			"local job it asks whether the job goes on in the background; without a terminal it cancels the job. A closed\n" +
			"terminal ends no job. --detach prints the id and returns at once.\n\n" +
			"   disdel example lenet-fashion > job.yaml\n   disdel submit job.yaml\n" +
			"   disdel submit job.yaml --dry-run\n" +
			"   disdel submit job.yaml --detach\n" +
			"   disdel submit job.yaml --fail-if 'accuracy < 0.9' --fail-if 'did not learn'\n" +
			"   disdel submit job.yaml --name second --epochs 10 --set training.batchSize=32 -o json\n" +
			"   disdel submit net.py:Net --data digits --loss crossEntropy --epochs 5\n" +
			"   disdel submit examples/gorgonia/job.yaml --action bin/digits-gorgonia",
		Flags: slices.Concat([]cli.Flag{dryRunFlag, setFlag}, shorthandFlags, programFlags,
			[]cli.Flag{actionFlag, probeFlag, admissionFlag}, queueFlags, estimatorFlags, leaveFlags,
			[]cli.Flag{failIfFlag}),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if err := checkRules(c); err != nil {
				return err
			}
			if detachesHere(c) {
				return detach(c, u)
			}
			src, err := readJob(c, u, c.Args().First())
			if err != nil {
				return err
			}
			if c.Bool(dryRunFlag.Name) {
				return dryRun(c, u, src)
			}
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				rec, err := submitAndFollow(ctx, c, u, at.Jobs, src)
				return sayResult(u, rec, err)
			})
		},
	}
}

func quickstartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "quickstart", Usage: "train a small network on real data in under a minute",
		Description: "Trains a convolutional network on 1,797 handwritten digits, " +
			"with two train actions and an aggregation.\n" +
			"OpenWhisk, Redis and the history are embedded: it needs no set-up and no internet.\n" +
			"--python trains a small PyTorch program instead, and needs Python with PyTorch.\n\n" +
			"   disdel quickstart\n   disdel quickstart --python",
		Flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "python", Usage: "train a PyTorch program; DISDEL_PYTHON names an interpreter"}, setFlag,
		}, shorthandFlags, estimatorFlags),
		Action: func(c *cli.Context) error {
			if err := errors.Join(checkOperands(c, 0, 0), checkShorthands(c)); err != nil {
				return err
			}
			if c.Bool("python") && !c.IsSet("action-memory") { // PyTorch alone fills the usual limit
				if err := c.Set("action-memory", pythonMemory); err != nil {
					return err
				}
			}
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				rec, err := quickstart(ctx, c, u, at)
				if err == nil && rec.Model != nil {
					u.Say("%s", quickstartNext(u, rec))
				}
				return err
			})
		},
	}
}

func quickstart(ctx context.Context, c *cli.Context, u *ui, at client.Client) (*disdel.Record, error) {
	if _, err := at.Data.AddKnown(ctx, "digits", false); err != nil {
		var own *disdel.Error
		if disdel.KindOf(err) == disdel.Conflict && errors.As(err, &own) {
			own.Hint = "quickstart trains on the digits of disdel. To replace yours: disdel dataset add digits --overwrite"
		}
		return nil, err
	}
	name, text, done, err := quickstartJob(c)
	if err != nil {
		return nil, err
	}
	defer done()
	file, err := jobfile.ParseWith(name, text, overrides(c), filesBeside("-"))
	if err != nil {
		return nil, err
	}
	return submitAndFollow(ctx, c, u, at.Jobs, source{text: text, file: file})
}

// pythonMemory is the largest limit of an action of quickstart --python.
const pythonMemory = "2GB"

// quickstartJob is the job file of the quickstart. With --python, its program is in a folder that done removes.
func quickstartJob(c *cli.Context) (name string, text []byte, done func(), err error) {
	if !c.Bool("python") {
		job, err := examples.Get("digits-cnn")
		return "quickstart.yaml", []byte(job.File), func() {}, err
	}
	folder, err := os.MkdirTemp("", "disdel-quickstart-")
	if err != nil {
		return "", nil, nil, &disdel.Error{Kind: disdel.Unavailable, Op: "make a folder for the program", Err: err}
	}
	done = func() { os.RemoveAll(folder) }
	program, err := examples.Python(examples.PythonImages)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, examples.PythonImages), program, 0o600)
	}
	if err == nil {
		text, err = examples.Python(examples.PythonJob)
	}
	if err != nil {
		done()
		return "", nil, nil, err
	}
	return filepath.Join(folder, examples.PythonJob), text, done, nil
}

func quickstartNext(u *ui, r *disdel.Record) string {
	const file = "digit.json"
	lines := []string{
		u.Command("dataset", "sample", "digits", "--row", "7") + " > " + file,
		u.Command("infer", r.Model.Name, "--input", file),
		u.Command("jobs", "show", string(r.ID)),
	}
	if r.Job.Model.Python != nil {
		lines = append(lines, u.Command("init", "--python", "--dataset", "digits")+"   # the program and its job file, to change")
		return "next:  " + strings.Join(lines, "\n       ")
	}
	lines = append(lines,
		u.Command("dataset", "add", "fashion-mnist"),
		u.Command("example", "lenet-fashion")+" > job.yaml",
		u.Command("submit", "job.yaml"))
	return "next:  " + strings.Join(lines, "\n       ")
}

func resumeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "resume", Aliases: []string{"retry"}, ArgsUsage: "JOB",
		Usage: "continue a job from its newest checkpoint",
		Description: "JOB is an id, the start of an id, a name or @last. " +
			"A job that failed, was stopped or lost its controller\n" +
			"continues from its newest complete checkpoint, with the limits that disdel learned from its failures.\n" +
			"It ends with the same weights as without the interruption. A job that succeeded goes on for more epochs:\n" +
			"a new job starts from its model.\n\n" +
			"   disdel resume @last\n" +
			"   disdel resume @last --set resources.memory=512MB\n" +
			"   disdel resume @last --epochs 20\n\n" +
			"The job continues where it ran: disdel takes the addresses from its record. With --move, the addresses that\n" +
			"you give replace those of the record; --apihost '' is the embedded platform.",
		Flags: append([]cli.Flag{
			setFlag, actionFlag, probeFlag,
			&cli.BoolFlag{Name: "move", Usage: "continue at the given addresses, though the job ran at others"},
			&cli.BoolFlag{Name: "from-start", Usage: "start over if no checkpoint of the job is found"},
		}, slices.Concat(shorthandFlags[1:], estimatorFlags, leaveFlags, []cli.Flag{failIfFlag})...), // it keeps its name
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if err := errors.Join(checkRules(c), checkShorthands(c)); err != nil {
				return err
			}
			if detachesHere(c) {
				return detach(c, u)
			}
			if err := useJobsPlace(c, u); err != nil {
				return err
			}
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				rec, err := resumeAndFollow(ctx, c, u, at.Jobs)
				return sayResult(u, rec, err)
			})
		},
	}
}

// useJobsPlace lets the command work at the place where its job ran. A server already is that place.
func useJobsPlace(c *cli.Context, u *ui) error {
	at, err := serverOf(c)
	if err != nil || at != nil {
		return err
	}
	return withService(c, u, records, func(ctx context.Context, s *service.Service) error {
		rec, err := client.Local(s).Records.Get(ctx, c.Args().First())
		if err != nil {
			return err
		}
		err = returnTo(c, &rec, c.Bool("move"))
		if err != nil {
			u.Place = nil // the hint leads to another place than this command's
		}
		return err
	})
}

func resumeAndFollow(ctx context.Context, c *cli.Context, u *ui, jobs client.Jobs) (*disdel.Record, error) {
	network, err := describeAction(c)
	if err != nil {
		return nil, err
	}
	return follow(c, u, jobs, func(observe func(service.Event)) (client.Run, error) {
		return jobs.Resume(ctx, service.ResumeRequest{
			Job: c.Args().First(), Sets: overrides(c), Open: filesBeside("-"), Description: network,
			Origin: originOf(c, overrides(c)), Options: planOptions(c), Preparing: observe,
			FromStart: c.Bool("from-start"), Move: c.Bool("move"),
		})
	})
}
