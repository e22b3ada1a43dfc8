package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/localplatform"
)

// server is a `disdel platform up` with a home of its own.
type server struct {
	program, home string
	host, key     string
	pid           int
}

// start starts a platform in the background. action is the program of the containers, "" for disdel itself.
func start(program, action string, more ...string) (*server, error) {
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{program: program, home: home}
	args := []string{
		"platform", "up", "--detach", "--port", "0", "--pool-memory", "64GB", "--per-minute", "10000000",
		"--concurrent", "1000",
	}
	args = append(args, more...) // of a flag that is said twice the last counts
	if action != "" {
		args = append(args, "--action", action)
	}
	if err := s.disdel(args...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return s, s.look()
}

// look finds how to reach the platform, where any client finds it.
func (s *server) look() error {
	text, err := os.ReadFile(filepath.Join(s.home, "wskprops"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "APIHOST":
			s.host = value
		case "AUTH":
			s.key = value
		}
	}
	out, err := s.command("platform", "status", "-o", "json").Output()
	if err != nil {
		return err
	}
	_, rest, _ := bytes.Cut(out, []byte(`"pid": `))
	number, _, _ := bytes.Cut(rest, []byte(","))
	s.pid, err = strconv.Atoi(string(number))
	return err
}

func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+s.home)
	return cmd
}

func (s *server) disdel(args ...string) error {
	if out, err := s.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}

func (s *server) end() error {
	return errors.Join(s.disdel("platform", "down"), os.RemoveAll(s.home))
}

// client is OpenWhisk's own. It is for one goroutine.
func (s *server) client() (*whisk.Client, error) {
	return whisk.NewClient(&http.Client{Transport: &http.Transport{}, Timeout: 2 * time.Minute},
		&whisk.Config{Host: s.host, AuthToken: s.key, Namespace: "_"})
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

// resident is the memory of the platform's process.
func (s *server) resident() (disdel.Bytes, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "VmRSS:" {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			return disdel.Bytes(kb) * disdel.KB, err
		}
	}
	return 0, errors.New("no VmRSS")
}

// pool is what the platform's container pool holds.
func (s *server) pool() (localplatform.Pool, error) {
	out, err := s.command("platform", "status", "-o", "json").Output()
	if err != nil {
		return localplatform.Pool{}, err
	}
	var status struct{ Pool localplatform.Pool }
	err = json.Unmarshal(out, &status)
	return status.Pool, err
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
		if len(fields) > parent && fields[parent] == strconv.Itoa(s.pid) && fields[state] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			out = append(out, pid)
		}
	}
	return out
}
