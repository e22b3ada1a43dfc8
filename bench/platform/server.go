package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// server is a `disdel platform up` with a home of its own.
type server struct{ *rig.Platform }

// start starts a platform in the background. action is the program of the containers, "" for disdel itself.
func start(program, action string, more ...string) (*server, error) {
	args := []string{"--pool-memory", "64GB", "--per-minute", "10000000", "--concurrent", "1000"}
	args = append(args, more...) // of a flag that is said twice the last counts
	if action != "" {
		args = append(args, "--action", action)
	}
	p, err := rig.StartPlatform(program, args...)
	return &server{p}, err
}

// client is OpenWhisk's own. It is for one goroutine.
func (s *server) client() (*whisk.Client, error) {
	return whisk.NewClient(&http.Client{Transport: &http.Transport{}, Timeout: 2 * time.Minute},
		&whisk.Config{Host: s.Host, AuthToken: s.Key, Namespace: "_"})
}

// create makes an action of the kind disdel.
func create(c *whisk.Client, name, main string) error {
	memory, code := 128, "bench"
	_, _, err := c.Actions.Insert(&whisk.Action{
		Name: name, Exec: &whisk.Exec{Kind: disdel.RuntimeKind, Code: &code, Main: main},
		Limits: &whisk.Limits{Memory: &memory},
	}, true)
	return err
}

// children are the processes that the platform started.
func (s *server) children() (out []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		const state, parent = 0, 1
		if len(fields) > parent && fields[parent] == strconv.Itoa(s.PID) && fields[state] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			out = append(out, pid)
		}
	}
	return out
}
