package service

import (
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/test/wait"
)

// redisServer is a real redis-server that asks for a password.
func redisServer(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("there is no redis-server here")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	server := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "",
		"--requirepass", "operator-only", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	wait.Until(t, "answer of redis-server", func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "redis://:operator-only@" + address + "/0"
}

// On a real Redis each tenant's jobs run as a user of its own, which reaches the tenant's keys alone; the password of
// the servers is in nothing that actions are given.
func TestTenantsHaveUsersOfTheirOwnOnRedis(t *testing.T) {
	t.Parallel()
	address := redisServer(t)
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir(), Redis: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	ann, bob := s.Tenant("ann"), s.Tenant("bob")
	if err := ann.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := submit(t, ann, small(t))
	if rec, err := run.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
	parts, err := ann.Parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if given := strings.Join(parts.Store.URLs, " "); strings.Contains(given, "operator-only") ||
		!strings.Contains(given, "disdel-tenant-ann:") {
		t.Errorf("actions of ann are given %s", given)
	}
	if _, err := parts.Board.Progress(t.Context(), "job-1"); err != nil {
		t.Errorf("ann's own keys: %v", err)
	}
	others, err := bob.Parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]disdel.Store{
		"bob's keys":   {URLs: parts.Store.URLs, Prefix: others.Store.Prefix},
		"nobody's":     {URLs: parts.Store.URLs, Prefix: "disdel"},
		"another name": {URLs: parts.Store.URLs, Prefix: parts.Store.Prefix + "x"},
	} {
		theirs, err := aggregator.Open(t.Context(), at)
		if err == nil {
			_, err = theirs.Progress(t.Context(), "job-1")
			theirs.Close()
		}
		if !errors.Is(err, disdel.Denied) {
			t.Errorf("%s, with ann's user: %v", what, err)
		}
	}
	// Another server of the same Redis.
	again, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir(), Redis: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if p, err := again.Tenant("ann").Parts(t.Context()); err != nil || p.Store.URLs[0] != parts.Store.URLs[0] {
		t.Errorf("another server of the same Redis has another user: %v", err)
	}
	if _, err := parts.Board.Progress(t.Context(), "job-1"); err != nil {
		t.Errorf("after another server came: %v", err)
	}
}
