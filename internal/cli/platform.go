package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/platform/local"
)

// defaultPort is that of OpenWhisk's standalone server.
const defaultPort = 3233

func platformCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "platform", Usage: "run an OpenWhisk on this machine, for disdel, wsk and other clients",
		Description: "   disdel platform up --pool-memory 2GB\n   eval \"$(disdel platform up --detach)\"; wsk action " +
			"list\n   disdel platform status\n   disdel platform down",
		Subcommands: []*cli.Command{platformUp(u), platformStatus(u), platformDown(u), platformUser(u)},
		Action:      NeedSubcommand,
	}
}

func platformUp(u *ui) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "start the platform; Ctrl-C stops it",
		Description: "   disdel platform up\n   eval \"$(disdel platform up --detach)\"    # and set up this shell for wsk " +
			"and disdel",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "host", Value: "127.0.0.1", Usage: "`ADDRESS` to serve on"},
			&cli.IntFlag{Name: "port", Value: defaultPort, Usage: "port `NUMBER`; 0 takes a free one"},
			&cli.BoolFlag{
				Name: "detach", Aliases: []string{"d"},
				Usage: "run in the background; the log is platform.log in the home folder",
			},
			&cli.StringFlag{
				Name: "wskprops", TakesFile: true,
				Usage: "also write this wsk properties `FILE`, for example ~/.wskprops",
			},
			&cli.StringFlag{
				Name: "data-dir", TakesFile: true,
				Usage: "`FOLDER` that stores actions, triggers, rules and activations (default: platform in the home " +
					"folder)",
			},
			&cli.BoolFlag{
				Name:  "guest-key",
				Usage: "use OpenWhisk's well-known guest key instead of a secret key",
			},
			&cli.BoolFlag{Name: "insecure", Usage: "allow other addresses than loopback without encryption"},
			&cli.StringSliceFlag{Name: "allow-host", Usage: "additional host `NAME` to accept (repeatable)"},
			&cli.StringSliceFlag{
				Name: "allow-origin", Usage: "allow requests from web pages of `http://HOST:PORT` (default: none)",
			},
			&cli.BoolFlag{Name: "log-requests", Usage: "log every request"},
			&cli.IntFlag{
				Name: "per-minute", Value: local.PerMinute,
				Usage: "`NUMBER` of invocations, and of fired triggers, per minute (OpenWhisk: 60)",
			},
			&cli.IntFlag{
				Name: "concurrent", Value: local.Concurrent,
				Usage: "`NUMBER` of concurrent invocations (OpenWhisk: 30)",
			},
			&cli.IntFlag{
				Name: "action-concurrency", Value: 1,
				Usage: "largest `NUMBER` of concurrent activations in one container " +
					"(Node.js, and infer of disdel:1)",
			},
			&cli.StringFlag{
				Name:  "cpu-scaling",
				Usage: "processor quota of containers, `MILLICPUS/MEMORY[:MOST]` as on Kubernetes: 300/256MB:4000",
			},
			&cli.StringFlag{
				Name: "like",
				Usage: "behave like `NAME`, to test clients: openwhisk, standalone or kubernetes, or single parts like " +
					"late-records=3s,refused-init,count-refused,no-evidence,retry-warm",
			},
			&cli.StringSliceFlag{
				Name:  "namespace",
				Usage: "additional namespace `NAME[:UUID:SECRET]`; without a key, one is created",
			},
			&cli.BoolFlag{Name: "catalog", Usage: "provide the packages /whisk.system/utils and /whisk.system/samples"},
			&cli.StringSliceFlag{
				Name:  "prewarm",
				Usage: "keep started containers ready: `KIND@MEMORY=COUNT`, for example nodejs:20@256MB=2",
			},
			&cli.StringSliceFlag{
				Name:  "action-env",
				Usage: "environment variable `NAME` to pass to all containers, for example AWS_ACCESS_KEY_ID",
			},
			&cli.BoolFlag{
				Name:  "allow-root",
				Usage: "run scripts as root if they cannot have their own users (default: refuse them)",
			},
			&cli.StringFlag{
				Name: "node-modules", TakesFile: true,
				Usage: "`FOLDER` of npm packages for Node.js actions, as npm install --prefix FOLDER fills it",
			},
			actionFlag,
		},
		Action: func(c *cli.Context) error { return runPlatform(c, u) },
	}
}

func platformStatus(u *ui) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show whether the platform runs, and where; exit with 3 if it does not",
		Action: func(c *cli.Context) error { return showPlatform(c, u) },
	}
}

func platformDown(u *ui) *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "stop the platform and wait for its end",
		Action: func(c *cli.Context) error { return endPlatform(c, u) },
	}
}
