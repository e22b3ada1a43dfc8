package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

// runPlatform is `disdel platform up`.
func runPlatform(c *cli.Context, u *ui) error {
	if err := checkPlatform(c); err != nil {
		return err
	}
	return withStack(c, u, func(ctx context.Context, s *stack) error {
		if c.Bool("detach") && os.Getenv(detachedVariable) == "" {
			return s.detachPlatform(ctx, u)
		}
		return s.servePlatform(ctx, u)
	})
}

func checkPlatform(c *cli.Context) error {
	bad := func(msg, hint string) error {
		return usageError{&disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint}}
	}
	if err := operands(c, 0, 0); err != nil {
		return err
	}
	switch port := c.Int("port"); {
	case port < 0 || port > 65535:
		return bad(fmt.Sprintf("there is no port %d", port), "use --port with 1 to 65535, or 0 for any that is free")
	case c.Int("per-minute") <= 0 || c.Int("concurrent") <= 0:
		return bad("--per-minute and --concurrent must be at least 1", "disdel platform up --help")
	case c.Bool("guest-key") && !loopback(c.String("host")):
		return bad("the guest key is known to everyone, who could run programs on this machine through "+c.String("host"), "leave --guest-key out, or --host")
	case !c.Bool("insecure") && !loopback(c.String("host")):
		return bad("on "+cmp.Or(c.String("host"), "every address")+" the key, the code of actions and what they are given would travel unencrypted: who reads the key runs programs as you",
			"leave --host out and let others in by ssh -L 3233:127.0.0.1:3233 THIS-MACHINE, or say --insecure where every machine that can listen is trusted")
	}
	return nil
}

// warnOfExposure says what a platform that others can reach exposes.
func (s *stack) warnOfExposure(u *ui, address string) {
	if host := s.cli.String("host"); !loopback(host) {
		u.say("disdel: warning: other machines can reach %s, and nothing is encrypted: the key, the code and the parameters of actions", address)
		u.say("disdel: warning: can be read on the way, and who has the key runs programs as you (--insecure was said)")
	}
}

// hosts are the names that requests may call a platform by beside its address: what was asked for, and, where other machines
// can reach it, the machine's own.
func (s *stack) hosts() []string {
	names := s.cli.StringSlice("allow-host")
	if host := s.cli.String("host"); !loopback(host) {
		names = append(names, host)
		if own, err := os.Hostname(); err == nil {
			names = append(names, own)
		}
	}
	out := []string{}
	for _, name := range names {
		if name != "" {
			out = append(out, strings.ToLower(strings.TrimSuffix(name, ".")))
		}
	}
	return out
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// servePlatform serves until the user ends it.
func (s *stack) servePlatform(ctx context.Context, u *ui) error {
	file, err := claim(s.home)
	if err != nil {
		return err
	}
	s.atEnd(func() error { return unclaim(file) }) // last: while it is there, containers may be
	l, err := listen(s.cli.String("host"), s.cli.Int("port"))
	if err != nil {
		return err
	}
	s.atEnd(func() error {
		l.Close() // closed by the platform, if there came to be one
		return nil
	})
	state, err := s.startPlatform(l, u)
	if err != nil {
		return err
	}
	if err := tell(file, state); err != nil {
		return err
	}
	if err := announce(u, s.home, state); err != nil {
		return err
	}
	s.warnOfExposure(u, state.Address)
	<-ctx.Done()
	u.say("disdel: the platform ends")
	return nil
}

func listen(host string, port int) (net.Listener, error) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "start platform", Msg: address + " is in use",
			Hint: "end what listens there, or take another port: --port 0 finds a free one",
		}
	}
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Err: err, Hint: "name an address of this machine with --host"}
	}
	return l, nil
}

// startPlatform serves the API on l and tells clients of it.
func (s *stack) startPlatform(l net.Listener, u *ui) (platformState, error) {
	state := platformState{PID: os.Getpid(), Address: reachable(l.Addr()), Started: time.Now(), Boot: bootID(), StartTicks: startTicks(os.Getpid())}
	var err error
	if state.Properties, err = absolute(cmp.Or(s.cli.String("wskprops"), propertiesFile(s.home))); err != nil {
		return state, err
	}
	if state.Data, err = absolute(cmp.Or(s.cli.String("data-dir"), filepath.Join(s.home, "platform"))); err != nil {
		return state, err
	}
	p, err := s.sharedPlatform(state.Data)
	if err != nil {
		return state, err
	}
	handler := http.Handler(&front{api: p.Handler(), platform: p, started: state.Started})
	if s.cli.Bool("log-requests") {
		handler = platform.LogRequests(handler, requestLogger(u))
	}
	p.Serve(l, handler)
	for _, path := range propertiesFiles(propertiesFile(s.home), state.Properties) {
		if err := writeProperties(path, [][2]string{{"APIHOST", state.Address}, {"AUTH", p.AuthKey()}, {"NAMESPACE", "_"}}); err != nil {
			return state, err
		}
	}
	return state, nil
}

// absolute is a path for whoever stands in another folder.
func absolute(path string) (string, error) {
	out, err := filepath.Abs(path)
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "find " + path, Err: err}
	}
	return out, nil
}

// sharedPlatform is the embedded platform as several processes use it, with what it keeps.
func (s *stack) sharedPlatform(data string) (*platform.Platform, error) {
	pool, err := s.embeddedPool()
	if err != nil {
		return nil, err
	}
	cfg, err := s.platformConfig(pool)
	if err != nil {
		return nil, err
	}
	if most := cfg.Limits.Memory.Max; most > pool {
		if s.cli.IsSet("action-memory") {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "start platform", Msg: fmt.Sprintf("--action-memory %v is above the pool's %v: such an action would wait for ever", most, pool),
				Hint: fmt.Sprintf("--pool-memory %dMB, or a smaller --action-memory", most.MB()),
			}
		}
		cfg.Limits.Memory.Max = pool
	}
	cfg.AuthKey, cfg.DataDir = s.platformKey(), data
	if like := s.cli.String("like"); like != "" {
		if cfg.Likeness, err = platform.LikenessOf(like); err != nil {
			return nil, err
		}
	}
	cfg.Hosts, cfg.Origins = s.hosts(), s.cli.StringSlice("allow-origin")
	cfg.Kinds = platform.DefaultKinds(cfg.Kinds[disdel.RuntimeKind].Command[0])
	cfg.Limits.FiresPerMinute = s.cli.Int("per-minute")
	cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = s.cli.Int("per-minute"), s.cli.Int("concurrent")
	return s.newPlatform(cfg)
}

// platformKey stays the same from start to start, so that clients set up once need not be again. The empty key is the
// platform's default, OpenWhisk's guest.
func (s *stack) platformKey() string {
	if s.cli.Bool("guest-key") {
		return ""
	}
	if key := readProperties(propertiesFile(s.home))["AUTH"]; key != "" && key != platform.DefaultConfig().AuthKey {
		return key
	}
	return randomKey()
}

// reachable is the URL of an address, on this machine if it is every address.
func reachable(a net.Addr) string {
	host, port, _ := net.SplitHostPort(a.String()) // net made it
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// propertiesFiles are the home's own, which the key is kept in, and the one that was asked for.
func propertiesFiles(own, asked string) []string {
	if own == asked {
		return []string{own}
	}
	return []string{own, asked}
}

func requestLogger(u *ui) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(u.err)
	log.SetFormatter(&logrus.TextFormatter{DisableColors: true, FullTimestamp: true, TimestampFormat: time.RFC3339Nano})
	return log
}
