package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/api"
	"github.com/disdel/disdel/service/tenant"
)

var admissionFlag = &cli.StringFlag{
	Name: "admission", EnvVars: []string{"DISDEL_ADMISSION"}, Value: scheduler.AdmissionGang,
	Usage: "queueing `ORDER`: gang (all actions of a job start together), fifo or greedy",
}

// queueFlags decide the place of a job in the queue.
var queueFlags = []cli.Flag{
	&cli.IntFlag{
		Name: "priority", Usage: "`NUMBER` from -1000000 to 1000000; higher goes first in the queue",
	},
	&cli.StringFlag{
		Name: "idempotency-key", Usage: "idempotency `KEY`: a submit with the same key returns the same job",
	},
}

// serving is what serve prints with -o json once it serves.
type serving struct {
	URL  string `json:"url"`
	Home string `json:"home,omitempty"`
}

func serveCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "run a server that queues and runs the jobs of a team", ArgsUsage: " ",
		Description: "Serves the API at /api/v1 (see /openapi.json) and a page at /ui, until Ctrl-C. It also continues " +
			"jobs of\nthis home whose process has died. When the server stops, running jobs return to the queue; the " +
			"next server\ncontinues them. Your own token is in server.token in the home folder; disdel tenant create makes " +
			"tokens for others.\n\n" +
			"   disdel serve\n" +
			"   disdel serve --listen 0.0.0.0:7070 --tls-cert c.pem --tls-key k.pem --host-name train.example",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:7070", Usage: "`ADDRESS` to listen on"},
			&cli.StringSliceFlag{Name: "host-name", Usage: "host `NAME` to accept (repeatable)"},
			&cli.StringFlag{Name: "tls-cert", TakesFile: true, Usage: "PEM `FILE` of the certificate"},
			&cli.StringFlag{Name: "tls-key", TakesFile: true, Usage: "PEM `FILE` of the certificate's key"},
			&cli.BoolFlag{Name: "insecure", Usage: "allow other machines without TLS"},
			&cli.DurationFlag{
				Name: "drain", Value: 10 * time.Second, Usage: "`TIME` that running requests have to finish at shutdown",
			},
			&cli.StringFlag{
				Name: "package-index", EnvVars: []string{"DISDEL_PACKAGE_INDEX"},
				Usage: "install packages for clients' Python programs from this `URL`, or a folder of wheels",
			},
			admissionFlag,
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			l, err := api.Listen(c.String("listen"), c.String("tls-cert"), c.String("tls-key"), c.Bool("insecure"))
			if err != nil {
				return err
			}
			defer l.Close()
			limitGarbage()
			return withOwnHome(c, u, allParts|takeOverJobs, func(ctx context.Context, s *service.Service) error {
				dir, err := home(c)
				if err != nil {
					return err
				}
				log := newLog(c, u)
				log.SetLevel(max(log.GetLevel(), logrus.InfoLevel)) // who asked for what is always told
				cfg := api.Config{
					Service: s, Hosts: c.StringSlice("host-name"), Log: log, Audit: s.Audit(), SlowSignIn: slowSignIn,
				}
				if cfg.Operator, err = api.OperatorToken(dir); err != nil {
					return err
				}
				if err := s.Attend(ctx); err != nil {
					return err
				}
				apart, err := s.Isolation(ctx)
				if err != nil {
					return err
				}
				u.Say("tenants   are kept apart by %s", apart)
				u.Say("audit log %s", filepath.Join(dir, tenant.AuditFile))
				u.Say("serves %s", l.URL())
				if err := u.Show(serving{URL: l.URL(), Home: dir}, func(io.Writer) {}); err != nil {
					return err
				}
				return api.Serve(ctx, l, cfg, c.Duration("drain"))
			})
		},
	}
}

// slowSignIn is the longest delay of the answer to a wrong token.
const slowSignIn = 2 * time.Second

// serverGarbage is the server's garbage target as GOGC counts it: 50 lets the heap grow by half of its live memory
// before the next collection. Go's default of 100 would double what requests hold. The server sets no limit of its
// heap: the embedded store keeps weights there, and a heap above its limit collects garbage all the time.
const serverGarbage = 50

// limitGarbage lets the runtime collect garbage earlier, unless GOGC or GOMEMLIMIT is set. Actions are processes of
// their own.
func limitGarbage() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(serverGarbage)
	}
}

func pageCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "ui", Aliases: []string{"dashboard"}, ArgsUsage: " ",
		Usage: "show jobs, models and data sets of this home in a browser",
		Description: "Serves the page of disdel serve, only for this machine, until Ctrl-C. The printed address signs\n" +
			"you in once.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "`ADDRESS` to listen on"}},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			l, err := api.Listen(c.String("listen"), "", "", false)
			if err != nil {
				return err
			}
			defer l.Close()
			return withOwnHome(c, u, allParts, func(ctx context.Context, s *service.Service) error {
				cfg := api.Config{Service: s, Operator: api.Key(), Enter: api.Key(), Log: newLog(c, u)}
				at := serving{URL: l.URL() + "/ui/enter?key=" + cfg.Enter}
				u.Say("open %s", at.URL)
				if err := u.Show(at, func(io.Writer) {}); err != nil {
					return err
				}
				return api.Serve(ctx, l, cfg, time.Second)
			})
		},
	}
}
