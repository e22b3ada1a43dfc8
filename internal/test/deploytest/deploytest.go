// Package deploytest starts OpenWhisks for tests of what is deployed to them. The test binary is the containers'
// program too: a TestMain begins with Served.
package deploytest

import (
	"context"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// Served tells whether this process was started as a container, in which case it has served actions until it was ended.
func Served() bool {
	at := slices.Index(os.Args, "--listen")
	if len(os.Args) < 3 || os.Args[1] != "runtime" || at < 0 {
		return false
	}
	if err := serve.Serve(context.Background(), os.Args[at+1], serve.NewHost(backends.Standard(nil))); err != nil {
		os.Exit(1)
	}
	return true
}

// Platform starts an OpenWhisk for a test, with a pool of 2 GB and quotas that no test reaches. change may change its
// configuration; nil changes nothing.
func Platform(t *testing.T, change func(*platform.Config)) *platform.Platform {
	t.Helper()
	cfg := platform.DefaultConfig()
	cfg.TempDir = t.TempDir()
	cfg.PoolMemory = 2 * disdel.GB
	cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = 6000, 300
	cfg.Kinds = map[string]platform.Kind{
		disdel.RuntimeKind: {Command: []string{os.Args[0], "runtime", "--listen", "{listen}"}},
	}
	if change != nil {
		change(&cfg)
	}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// Executor is a client of a platform with a key, which is patient with it for so long.
func Executor(t *testing.T, host, key string, patience time.Duration) *executor.Executor {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	e, err := executor.New(executor.Config{
		APIHost: host, AuthKey: key, Logger: log, Patience: patience, PollEvery: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
