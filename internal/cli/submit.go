package cli

import (
	"context"
	_ "embed"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

var setFlag = &cli.StringSliceFlag{
	Name:  "set",
	Usage: "set a field: `PATH=VALUE`, for example training.batchSize=32 (repeatable)",
}

var backendFlag = &cli.StringFlag{
	Name:  "backend",
	Usage: "training `ENGINE`: native or gorgonia; short for --set training.backend=ENGINE",
}

// overrides are the fields that flags set, --backend last. Its value is quoted, so that YAML takes it as a word.
func overrides(c *cli.Context) []string {
	sets := c.StringSlice("set")
	if c.IsSet("backend") {
		sets = append(sets, "training.backend="+strconv.Quote(c.String("backend")))
	}
	return sets
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
		Name:  "risk",
		Usage: "accepted `CHANCE` that an action runs out of memory, at most 0.05 (default: 0.001)",
	},
}

// planOptions reads the flags that choose how a job is planned.
func planOptions(c *cli.Context) service.Options {
	o := service.Options{Estimator: c.String("estimator"), Probe: c.Bool("probe")}
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

func readInput(u *ui, name string) ([]byte, error) {
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
	if errors.As(err, &all) && u.Format == "table" {
		u.Faults(all, src.text)
		return terminal.Reported(err)
	}
	return err
}

// follow starts a job, prints its progress until its end, and prints its result. A failed job is reported and sets the
// exit code.
func follow(c *cli.Context, u *ui, begin func(observe func(service.Event)) (client.Run, error)) (*disdel.Record,
	error,
) {
	f, seen := render.NewFollower(u), 0
	run, err := begin(func(e service.Event) {
		seen = e.Number
		f.Follow(e)
	})
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(c.Context)
	defer context.AfterFunc(c.Context, func() { run.Cancel(context.Cause(c.Context)) })()
	for e := range run.EventsAfter(ctx, seen) {
		f.Follow(e)
	}
	f.Done()
	rec, err := run.Wait(ctx)
	if err != nil {
		return &rec, err
	}
	u.Place = placeOfJob(c, &rec)
	return &rec, render.ShowOutcome(u, &rec, f.Notes())
}

// submitAndFollow submits a job and follows it.
func submitAndFollow(ctx context.Context, c *cli.Context, u *ui, jobs client.Jobs, src source) (*disdel.Record, error) {
	rec, err := follow(c, u, func(observe func(service.Event)) (client.Run, error) {
		req := src.request(c)
		req.Preparing = observe
		return jobs.Submit(ctx, req)
	})
	return rec, src.showFaults(u, err)
}

func submitCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "submit", Usage: "run a job and show its progress", ArgsUsage: "FILE",
		Description: "FILE is a job file, or - for standard input. Ctrl-C stops the job cleanly.\n\n" +
			"   disdel submit examples/lenet-fashion.yaml\n" +
			"   disdel submit job.yaml --set training.epochs=10 -o json\n" +
			"   disdel submit job.yaml --backend gorgonia\n" +
			"   disdel submit examples/gorgonia/job.yaml --action bin/digits-gorgonia",
		Flags: slices.Concat([]cli.Flag{setFlag, actionFlag, backendFlag, probeFlag, admissionFlag}, queueFlags,
			estimatorFlags),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			src, err := readJob(c, u, c.Args().First())
			if err != nil {
				return err
			}
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				rec, err := submitAndFollow(ctx, c, u, at.Jobs, src)
				if err == nil {
					render.SayModel(u, rec)
				}
				return err
			})
		},
	}
}

//go:embed quickstart.yaml
var quickstartJob []byte

func quickstartCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "quickstart", Usage: "train a small network on real data in under a minute",
		Description: "Trains a convolutional network on 1,797 handwritten digits, " +
			"with two train actions and an aggregation.\n" +
			"OpenWhisk, Redis and the history are embedded: it needs no set-up and no internet.",
		Flags: append([]cli.Flag{setFlag, backendFlag}, estimatorFlags...),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				rec, err := quickstart(ctx, c, u, at)
				if err == nil {
					u.Say("%s", quickstartNext(u, rec))
				}
				return err
			})
		},
	}
}

func quickstart(ctx context.Context, c *cli.Context, u *ui, at client.Client) (*disdel.Record, error) {
	if _, err := at.Data.AddKnown(ctx, "digits", true); err != nil {
		return nil, err
	}
	file, err := jobfile.ParseWith("quickstart.yaml", quickstartJob, overrides(c), filesBeside("-"))
	if err != nil {
		return nil, err
	}
	return submitAndFollow(ctx, c, u, at.Jobs, source{text: quickstartJob, file: file})
}

func quickstartNext(u *ui, r *disdel.Record) string {
	const file = "digit.json"
	return "next:  " + strings.Join([]string{
		u.Command("dataset", "sample", "digits", "--row", "7") + " > " + file,
		u.Command("infer", r.Model.Name, "--input", file),
		u.Command("jobs", "show", string(r.ID)),
		u.Command("dataset", "add", "fashion-mnist"),
		u.Command("submit", "examples/lenet-fashion.yaml"),
	}, "\n       ")
}

func resumeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "resume", Aliases: []string{"retry"}, ArgsUsage: "JOB",
		Usage: "continue a job from its newest checkpoint",
		Description: "JOB is an id, the start of an id, a name or @last. " +
			"A job that failed, was stopped or lost its controller\n" +
			"continues from its newest complete checkpoint, with the limits that disdel learned from its failures.\n" +
			"It ends with the same weights as without the interruption.\n\n" +
			"   disdel resume @last\n" +
			"   disdel resume @last --set resources.memory=512MB\n\n" +
			"The job continues where it ran: disdel takes the addresses from its record. With --move, the addresses that\n" +
			"you give replace those of the record; --apihost '' is the embedded platform.",
		Flags: append([]cli.Flag{
			setFlag, actionFlag, backendFlag, probeFlag,
			&cli.BoolFlag{Name: "move", Usage: "continue at the given addresses, though the job ran at others"},
			&cli.BoolFlag{Name: "from-start", Usage: "start over if no checkpoint of the job is found"},
		}, estimatorFlags...),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if err := useJobsPlace(c, u); err != nil {
				return err
			}
			return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
				rec, err := resumeAndFollow(ctx, c, u, at.Jobs)
				if err == nil {
					render.SayModel(u, rec)
				}
				return err
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
	return follow(c, u, func(observe func(service.Event)) (client.Run, error) {
		return jobs.Resume(ctx, service.ResumeRequest{
			Job: c.Args().First(), Sets: overrides(c), Open: filesBeside("-"), Description: network,
			Origin: originOf(c, overrides(c)), Options: planOptions(c), Preparing: observe,
			FromStart: c.Bool("from-start"), Move: c.Bool("move"),
		})
	})
}
