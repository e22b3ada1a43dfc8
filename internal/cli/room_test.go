package cli

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel/internal/terminal"
)

// A Redis that is too small for a job refuses it before anything runs, with the arithmetic; a smaller job runs on it.
func TestATooSmallRedisRefusesTheJob(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	d := build(t)
	port := unusedPort(t)
	address := "127.0.0.1:" + port
	server := exec.Command(redis, "--port", port, "--bind", "127.0.0.1", "--save", "", "--maxmemory", "8mb", "--dir",
		t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for range 250 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	large := []string{
		"quickstart", "--redis", "redis://" + address + "/0", "--set", "training.epochs=1", "--set",
		"model={layers: [{dense: {units: 20000}}, {dense: {units: 10, activation: softmax}}]}",
	}
	_, errs, code := d.run(append(large, "--set", "distribution.workers=2")...)
	if code != terminal.ExitRefused {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, text := range []string{"2 updates of 5.72 MB", "2 references of 5.72 MB", "free of 8.00 MB", "maxmemory"} {
		if !strings.Contains(errs, text) {
			t.Errorf("it does not say %q:\n%s", text, errs)
		}
	}
	const warning = "set maxmemory-policy noeviction"
	if _, errs, code := d.run("quickstart", "--redis", "redis://"+address+"/0", "--set", "training.epochs=1"); code != 0 ||
		strings.Contains(errs, warning) {
		t.Errorf("exit %d\n%s", code, errs)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answer := make([]byte, 5)
	if _, err = c.Write([]byte("CONFIG SET maxmemory-policy allkeys-lru\r\n")); err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err != nil || string(answer) != "+OK\r\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	if _, errs, code := d.run("quickstart", "--redis", "redis://"+address+"/0", "--set", "training.epochs=1"); code != 0 ||
		!strings.Contains(errs, warning) {
		t.Errorf("a Redis that evicts: exit %d\n%s", code, errs)
	}
}
