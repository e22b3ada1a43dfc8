package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/api"
)

var admissionFlag = &cli.StringFlag{
	Name: "admission", EnvVars: []string{"DISDEL_ADMISSION"}, Value: scheduler.AdmissionGang,
	Usage: "`HOW` jobs that wait for the pool come to run: gang, fifo or greedy (the platform makes them wait)",
}

// queueFlags say where a job stands in the queue.
var queueFlags = []cli.Flag{
	&cli.IntFlag{
		Name: "priority", Usage: "`NUMBER` from -1000000 to 1000000: a job with a higher one goes first in the queue",
	},
	&cli.StringFlag{
		Name: "idempotency-key", Usage: "`KEY`: a repeated submit with the same one is the same job, whatever became of it",
	},
}

// serving is what serve says with -o json, once it serves.
type serving struct {
	URL  string `json:"url"`
	Home string `json:"home,omitempty"`
}

func serveCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "queue and run jobs for others, over HTTP", ArgsUsage: " ",
		Description: "Serves /api/v1 (described at /openapi.json) and a page at /ui until Ctrl-C, and goes on " +
			"with jobs of\nthis home whose process is no more. Jobs that run when it ends go back to the queue, and the next " +
			"one goes on with\nthem. The token of who runs it is in server.token in the home folder; others " +
			"have theirs from disdel\ntenant create.\n\n" +
			"   disdel serve\n" +
			"   disdel serve --listen 0.0.0.0:7070 --tls-cert c.pem --tls-key k.pem --host-name train.example",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:7070", Usage: "`ADDRESS` to listen on"},
			&cli.StringSliceFlag{Name: "host-name", Usage: "`NAME` that clients may call the server by (repeatable)"},
			&cli.StringFlag{Name: "tls-cert", TakesFile: true, Usage: "`FILE` of the certificate, in PEM"},
			&cli.StringFlag{Name: "tls-key", TakesFile: true, Usage: "`FILE` of its key, in PEM"},
			&cli.BoolFlag{Name: "insecure", Usage: "listen for other machines without TLS"},
			&cli.DurationFlag{Name: "drain", Value: 10 * time.Second, Usage: "`TIME` that requests have to end in"},
			admissionFlag,
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			l, err := api.Listen(c.String("listen"), c.String("tls-cert"), c.String("tls-key"), c.Bool("insecure"))
			if err != nil {
				return err
			}
			defer l.Close()
			limitGarbage()
			return withService(c, u, wholeJob|takingOver, func(ctx context.Context, s *service.Service) error {
				dir, err := home(c)
				if err != nil {
					return err
				}
				log := newLog(c, u)
				log.SetLevel(max(log.GetLevel(), logrus.InfoLevel)) // who asked for what is always told
				cfg := api.Config{Service: s, Hosts: c.StringSlice("host-name"), Log: log}
				if cfg.Operator, err = api.OperatorToken(dir); err != nil {
					return err
				}
				if err := s.Attend(ctx); err != nil {
					return err
				}
				u.Say("serves %s", l.URL())
				if err := u.Show(serving{URL: l.URL(), Home: dir}, func(io.Writer) {}); err != nil {
					return err
				}
				return api.Serve(ctx, l, cfg, c.Duration("drain"))
			})
		},
	}
}

// serverGarbage is the server's garbage target as GOGC counts it: 50 lets the heap grow by half of its live memory before
// the next collection. Go's default of 100 would double what requests hold. The server sets no limit of its heap: the
// embedded store keeps weights there, and a heap above its limit collects garbage all the time.
const serverGarbage = 50

// limitGarbage has the runtime collect garbage earlier, unless GOGC or GOMEMLIMIT says how. Actions run in processes of
// their own.
func limitGarbage() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(serverGarbage)
	}
}
