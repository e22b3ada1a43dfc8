package main

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/localplatform"
)

// defaultPort is that of OpenWhisk's standalone server.
const defaultPort = 3233

func platformCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "platform", Usage: "run an OpenWhisk on this machine, for disdel, wsk and other clients",
		Description: "   disdel platform up --pool-memory 2GB\n   eval \"$(disdel platform up --detach)\"; wsk action " +
			"list\n   disdel platform status\n   disdel platform down",
		Subcommands: []*cli.Command{platformUp(u), platformStatus(u), platformDown(u), platformUser(u)},
		Action:      commandline.NeedSubcommand,
	}
}

func platformUp(u *ui) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "start it; Ctrl-C ends it",
		Description: "   disdel platform up\n   eval \"$(disdel platform up --detach)\"    # and set up this shell for wsk " +
			"and disdel",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "host", Value: "127.0.0.1", Usage: "`ADDRESS` to serve on"},
			&cli.IntFlag{Name: "port", Value: defaultPort, Usage: "`NUMBER`, 0 for any that is free"},
			&cli.BoolFlag{
				Name: "detach", Aliases: []string{"d"},
				Usage: "run in the background, with platform.log in the home folder",
			},
			&cli.StringFlag{
				Name: "wskprops", TakesFile: true,
				Usage: "`FILE` of wsk's to set up as well, such as ~/.wskprops (always: wskprops in the home folder)",
			},
			&cli.StringFlag{
				Name: "data-dir", TakesFile: true,
				Usage: "`FOLDER` of actions, triggers, rules and activations, which outlive it (default: platform in the home " +
					"folder)",
			},
			&cli.BoolFlag{
				Name:  "guest-key",
				Usage: "take OpenWhisk's well-known guest key instead of one that only this home knows",
			},
			&cli.BoolFlag{Name: "insecure", Usage: "serve on another address than loopback although nothing is encrypted"},
			&cli.StringSliceFlag{Name: "allow-host", Usage: "further `NAME` that requests may call it by"},
			&cli.StringSliceFlag{Name: "allow-origin", Usage: "web pages of `http://HOST:PORT` may call it (default: none may)"},
			&cli.BoolFlag{Name: "log-requests", Usage: "log every request"},
			&cli.IntFlag{
				Name: "per-minute", Value: localplatform.PerMinute,
				Usage: "`NUMBER` of invocations, and of fired triggers, in a minute (OpenWhisk: 60)",
			},
			&cli.IntFlag{
				Name: "concurrent", Value: localplatform.Concurrent,
				Usage: "`NUMBER` of invocations at once (OpenWhisk: 30)",
			},
			&cli.IntFlag{
				Name: "action-concurrency", Value: 1,
				Usage: "the largest `NUMBER` of activations at once in one container that an action may allow " +
					"(Node.js, and infer of disdel:1)",
			},
			&cli.StringFlag{
				Name:  "cpu-scaling",
				Usage: "give containers a quota, `MILLICPUS/MEMORY[:MOST]` as OpenWhisk on Kubernetes: 300/256MB:4000",
			},
			&cli.StringFlag{
				Name: "like",
				Usage: "behave like `NAME`, to hold clients against it: openwhisk, standalone or kubernetes, or single parts as " +
					"late-records=3s,refused-init,count-refused,no-evidence,retry-warm",
			},
			&cli.StringSliceFlag{
				Name:  "namespace",
				Usage: "a further `NAME[:UUID:SECRET]`, whose key is kept; without one it is made up",
			},
			&cli.BoolFlag{Name: "catalog", Usage: "have the packages /whisk.system/utils and /whisk.system/samples"},
			&cli.StringSliceFlag{
				Name:  "prewarm",
				Usage: "keep started containers ready: `KIND@MEMORY=COUNT`, such as nodejs:20@256MB=2",
			},
			&cli.StringSliceFlag{
				Name:  "action-env",
				Usage: "`NAME` of a variable of this process that every container finds in its own, such as AWS_ACCESS_KEY_ID",
			},
			&cli.BoolFlag{
				Name:  "allow-root",
				Usage: "run scripts as root where they cannot have users of their own (default: refuse them)",
			},
			&cli.StringFlag{
				Name: "node-modules", TakesFile: true,
				Usage: "`FOLDER` that `npm install --prefix FOLDER openwhisk` has put packages into, for actions of Node.js",
			},
			actionFlag,
		},
		Action: func(c *cli.Context) error { return runPlatform(c, u) },
	}
}

func platformStatus(u *ui) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "tell whether it runs, where, and what it uses; exits with 3 if it does not run",
		Action: func(c *cli.Context) error { return showPlatform(c, u) },
	}
}

func platformDown(u *ui) *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "end it, and wait until it has ended",
		Action: func(c *cli.Context) error { return endPlatform(c, u) },
	}
}
