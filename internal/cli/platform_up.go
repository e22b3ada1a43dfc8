package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service"
)

// runPlatform is `disdel platform up`.
func runPlatform(c *cli.Context, u *ui) error {
	if err := checkPlatform(c); err != nil {
		return err
	}
	dir, err := home(c)
	if err != nil {
		return err
	}
	if c.Bool("detach") && os.Getenv(local.DetachedVariable) == "" {
		return detachPlatform(c, u, dir)
	}
	return servePlatform(c, u, dir)
}

func checkPlatform(c *cli.Context) error {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint}
	}
	if err := checkOperands(c, 0, 0); err != nil {
		return err
	}
	host := c.String("host")
	switch port := c.Int("port"); {
	case port < 0 || port > 65535:
		return bad(fmt.Sprintf("there is no port %d", port), "use --port with 1 to 65535, or 0 for any that is free")
	case c.Int("per-minute") <= 0 || c.Int("concurrent") <= 0:
		return bad("--per-minute and --concurrent must be at least 1", "disdel platform up --help")
	case c.Int("action-concurrency") <= 0:
		return bad("--action-concurrency must be at least 1", "disdel platform up --help")
	case c.Bool("guest-key") && !addresses.Loopback(host):
		return bad("the guest key is known to everyone, who could run programs on this machine through "+host,
			"leave --guest-key out, or --host")
	case !c.Bool("insecure") && !addresses.Loopback(host):
		return bad("on "+cmp.Or(host, "every address")+
			" the key, the code of actions and what they are given would travel unencrypted: "+
			"who reads the key runs programs as you",
			"leave --host out and let others in by ssh -L 3233:127.0.0.1:3233 THIS-MACHINE, or say --insecure where every "+
				"machine that can listen is trusted")
	}
	return nil
}

// warnOfExposure warns about a platform that other machines can reach.
func warnOfExposure(c *cli.Context, u *ui, address string) {
	if !addresses.Loopback(c.String("host")) {
		u.Say("disdel: warning: other machines can reach %s, and nothing is encrypted: the key, the code and the "+
			"parameters of actions", address)
		u.Say("disdel: warning: can be read on the way, and who has the key runs programs as you (--insecure was said)")
	}
}

// acceptedHosts are host names that requests may use besides the address: those of the flags, and this machine's own if
// others can reach it.
func acceptedHosts(c *cli.Context) []string {
	names := c.StringSlice("allow-host")
	if host := c.String("host"); !addresses.Loopback(host) {
		names = append(names, local.OwnNames(host)...)
	}
	out := []string{}
	for _, name := range names {
		if name != "" {
			out = append(out, strings.ToLower(strings.TrimSuffix(name, ".")))
		}
	}
	return out
}

// servePlatform serves until the user ends it.
func servePlatform(c *cli.Context, u *ui, dir string) (err error) {
	cfg, err := platformConfig(c, u, dir)
	if err != nil {
		return err
	}
	how := local.Serving{
		Home: dir, Host: c.String("host"), Port: c.Int("port"), Properties: c.String("wskprops"), Platform: cfg,
		Catalog: c.Bool("catalog"),
	}
	if how.Namespaces, err = namespacesOf(c.StringSlice("namespace")); err != nil {
		return err
	}
	if c.Bool("log-requests") {
		how.Requests = requestLogger(u)
	}
	server, err := local.Serve(how)
	if err != nil {
		return err
	}
	defer func() {
		if ended := server.Close(); err == nil {
			err = ended
		}
	}()
	if err := announce(u, dir, server.State); err != nil {
		return err
	}
	warnOfExposure(c, u, server.State.Address)
	<-c.Context.Done()
	u.Say("disdel: the platform ends")
	return nil
}

// platformConfig is the configuration of a platform that several processes use.
func platformConfig(c *cli.Context, u *ui, dir string) (cfg platform.Config, err error) {
	config := service.Config{Home: dir}
	if err := readPool(c, &config); err != nil {
		return cfg, err
	}
	if err := readEmbedded(c, &config); err != nil {
		return cfg, err
	}
	pool := cmp.Or(config.Pool, local.DefaultPool())
	cfg, err = local.Config(local.Settings{
		Home: dir, Program: config.Program, Pool: pool,
		ActionMemory: config.ActionMemory, ActionTimeout: config.ActionTimeout,
		Log: newLog(c, u), CPUScaling: c.String("cpu-scaling"), Devices: service.Devices(config.GPUs),
	})
	if err != nil {
		return cfg, err
	}
	if maximum := cfg.Limits.Memory.Max; maximum > pool {
		if c.IsSet("action-memory") {
			return cfg, &disdel.Error{
				Kind: disdel.Invalid, Op: "start platform",
				Msg:  fmt.Sprintf("--action-memory %v is above the pool's %v: such an action would wait for ever", maximum, pool),
				Hint: fmt.Sprintf("--pool-memory %dMB, or a smaller --action-memory", maximum.MB()),
			}
		}
		cfg.Limits.Memory.Max = pool
	}
	cfg.AuthKey, cfg.DataDir = "", c.String("data-dir") // the empty key is the platform's default, OpenWhisk's guest
	if !c.Bool("guest-key") {
		cfg.AuthKey = local.LastingKey(dir)
	}
	if like := c.String("like"); like != "" {
		if cfg.Emulation, err = platform.ParseEmulation(like); err != nil {
			return cfg, err
		}
	}
	cfg.AllowRoot = c.Bool("allow-root")
	cfg.Hosts, cfg.Origins = acceptedHosts(c), c.StringSlice("allow-origin")
	cfg.Kinds = platform.DefaultKinds(cfg.Kinds[disdel.RuntimeKind].Command[0])
	cfg.Images = platform.DefaultImages(cfg.Kinds)
	if err := readContainers(c, &cfg); err != nil {
		return cfg, err
	}
	cfg.Limits.Concurrency.Max = c.Int("action-concurrency")
	cfg.Limits.FiresPerMinute = c.Int("per-minute")
	cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = c.Int("per-minute"), c.Int("concurrent")
	return cfg, nil
}

// readContainers reads the flags of containers.
func readContainers(c *cli.Context, cfg *platform.Config) error {
	if folder := c.String("node-modules"); folder != "" {
		if err := platform.AddNodeModules(cfg.Kinds, folder); err != nil {
			return err
		}
	}
	local.PassOn(cfg.Kinds, c.StringSlice("action-env"))
	for _, text := range c.StringSlice("prewarm") {
		w, err := platform.ParsePrewarm(text)
		if err != nil {
			return err
		}
		cfg.Prewarm = append(cfg.Prewarm, w)
	}
	return nil
}

func requestLogger(u *ui) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(u.Err)
	log.SetFormatter(&logrus.TextFormatter{DisableColors: true, FullTimestamp: true, TimestampFormat: time.RFC3339Nano})
	return log
}

// detachPlatform starts this program again in a session of its own and waits until it serves.
func detachPlatform(c *cli.Context, u *ui, dir string) error {
	if _, running := local.Find(dir); running {
		return announceRunning(c.Context, u, dir)
	}
	state, ended, err := local.Detach(c.Context, dir, os.Args[1:])
	if err != nil {
		return detachFailed(u, err, ended)
	}
	warnOfExposure(c, u, state.Address)
	return announce(u, dir, state)
}

// announceRunning prints the shell commands for a platform that runs already.
func announceRunning(ctx context.Context, u *ui, dir string) error {
	state, err := local.AwaitAddress(ctx, dir)
	if err != nil {
		return err
	}
	u.Say("a platform runs in %s already (process %d): what this command asked for beyond it was not looked at", dir,
		state.PID)
	return announce(u, dir, state)
}

// detachFailed prints what the process in the background printed before it ended.
func detachFailed(u *ui, err error, ended *local.Ended) error {
	if ended == nil || ended.Said == "" {
		return err
	}
	io.WriteString(u.Err, terminal.Clean(ended.Said)) //nolint:errcheck // there is no better place to tell
	kind := terminal.KindOf(ended.ExitCode, disdel.KindOf(err))
	return terminal.Reported(&disdel.Error{Kind: kind, Op: "start platform in the background", Err: err})
}
