package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What no platform can be faster than on this machine, in the same run: processes that answer the same client with the
// same bytes and do nothing else. An echo answers at once; a relay first asks a third process, which is what a
// container is, over a connection that it keeps.
const (
	echoRole  = "echo"
	relayRole = "relay"
)

// floor takes the figures of an echo and of a relay.
func floor(self string) error {
	dir, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return err
	}
	return errors.Join(echoFloor(self, dir), relayFloor(self, dir), os.RemoveAll(dir))
}

func echoFloor(self, dir string) error {
	return measureRole(self, dir, "floor", echoRole)
}

// relayFloor starts as many containers as there are clients, as a platform does.
func relayFloor(self, dir string) (err error) {
	args := []string{relayRole}
	for i := range clients {
		socket := filepath.Join(dir, fmt.Sprint("c", i))
		container := exec.Command(self, "runtime", "--listen", "unix:"+socket) //nolint:gosec // this program
		if err := container.Start(); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, container.Process.Kill())
			container.Wait() //nolint:errcheck // it was killed
		}()
		args = append(args, socket)
	}
	return measureRole(self, dir, "floor_container", args...)
}

// measureRole measures this program in a role as if it were a platform.
func measureRole(self, dir, name string, args ...string) (err error) {
	address := filepath.Join(dir, "address-"+args[0])
	cmd := exec.Command(self, append([]string{args[0], address}, args[1:]...)...) //nolint:gosec // this program
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cmd.Process.Kill())
		cmd.Wait() //nolint:errcheck // it was killed
	}()
	host, err := awaitFile(address)
	if err != nil {
		return err
	}
	s := &server{host: host, key: "a:b"}
	times, err := s.times()
	if err != nil {
		return err
	}
	figure("noop_"+name+"_ms", quantile(times, 0.5), "ms")
	rate, err := s.rate()
	if err == nil {
		figure(name+"_per_s", rate, "1/s")
	}
	return err
}

// awaitFile reads a file once it is there.
func awaitFile(path string) (string, error) {
	for end := time.Now().Add(settleWithin); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(path)
		if err == nil {
			return string(text), nil
		}
		if time.Now().After(end) {
			return "", err
		}
	}
}

// answered is what a warm invocation of the action noop is answered with, with its headers' length.
const answered = `{"done":true}`

// play answers every request as a platform answers an invocation that went well, after one of the containers has been
// asked, if there are any. It writes its address into a file.
func play(file string, containers []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	pool := make(chan *line, len(containers))
	for _, socket := range containers {
		c, err := dial(socket)
		if err != nil {
			return err
		}
		pool <- c
	}
	draft := file + "-new"
	if err := errors.Join(os.WriteFile(draft, []byte("http://"+l.Addr().String()), 0o600),
		os.Rename(draft, file)); err != nil {
		return err
	}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // of one client
		if drain(r.Body) != nil {
			return
		}
		if len(containers) > 0 {
			c := <-pool
			err := c.ask("/run", `{"value":{},"namespace":"guest","action_name":"/guest/noop"}`)
			pool <- c
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Openwhisk-Activation-Id", strings.Repeat("0", 32))
		io.WriteString(w, answered) //nolint:errcheck // the client went away
	}))
}

// line is a kept connection to a container.
type line struct {
	conn   net.Conn
	reader *bufio.Reader
}

// dial connects to a container that may not listen yet, and initialises it.
func dial(socket string) (*line, error) {
	for end := time.Now().Add(settleWithin); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			c := &line{conn, bufio.NewReader(conn)}
			return c, c.ask("/init", `{"value":{"main":"noop","sentinels":false}}`)
		}
		if time.Now().After(end) {
			return nil, err
		}
	}
}

func (c *line) ask(path, body string) error {
	_, err := io.WriteString(c.conn, "POST "+path+" HTTP/1.1\r\nHost: container\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+body)
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	if err := drain(res.Body); err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d, %v", path, res.StatusCode, err)
	}
	return nil
}
