// Command deploy measures the action runtime as a cluster sees it: what a node pulls, how soon a container answers, and
// what it holds before its first action; how long a plan waits for what a large history knows; and how long disdel
// verify takes on a platform of this machine.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel/deploy/image"
)

func main() {
	program := flag.String("program", "bin/disdel-runtime", "the built runtime")
	certificates := flag.String("certificates", image.SystemCertificates, "authorities in PEM")
	runs := flag.Int("runs", 21, "starts, of which the median counts")
	whole := flag.String("disdel", "bin/disdel", "the built command line, which is verified")
	records := flag.Int("records", 100_000, "records of the histories that are asked; 0: none is")
	pouchdb := flag.String("pouchdb", ".cache/npm/node_modules/.bin/pouchdb-server",
		"a server of CouchDB's protocol; empty: none")
	parts := flag.String("parts", "image,cold,verify,history", "what is measured")
	flag.Parse()
	err := error(nil)
	for part := range strings.SplitSeq(*parts, ",") {
		switch {
		case err != nil:
		case part == "image":
			err = measure(*program, *certificates, *runs)
		case part == "history" && *records > 0:
			err = ask(context.Background(), *records, *pouchdb)
		case part == "cold":
			err = cold(context.Background(), *whole, *program)
		case part == "verify":
			err = verified(context.Background(), *whole)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}

func measure(program, certificates string, runs int) error {
	folder, err := os.MkdirTemp("", "bench-deploy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	made, err := image.Make(context.Background(), image.Options{Program: program, Certificates: certificates},
		image.Target{Layout: filepath.Join(folder, "layout")})
	if err != nil {
		return err
	}
	figure("image_mb", float64(made.Size)/1e6, "MB")
	figure("image_pull_mb", float64(made.Compressed)/1e6, "MB")
	var starts, held, own []float64
	for i := range runs {
		took, rss, err := answers(program, filepath.Join(folder, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		starts, held, own = append(starts, took.Seconds()*1e3), append(held, rss.all), append(own, rss.own)
	}
	slices.Sort(starts)
	slices.Sort(held)
	slices.Sort(own)
	figure("runtime_start_ms", starts[runs/2], "ms")
	figure("runtime_idle_rss_mb", held[runs/2], "MB")
	figure("runtime_idle_own_mb", own[runs/2], "MB")
	return nil
}

// resident is what a process holds, in MB: all that is mapped, and what is its own. The rest is pages of its program,
// which the kernel shares among all containers of a machine and takes back when memory is short.
type resident struct{ all, own float64 }

// answers runs a container's process until /init is answered, and tells how long that took and what it then holds.
func answers(program, socket string) (time.Duration, resident, error) {
	begun := time.Now()
	cmd := exec.Command(program, "--listen", "unix:"+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, resident{}, err
	}
	defer func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // killed
	}()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	for {
		body := strings.NewReader(`{"value":{"name":"train","main":"train","code":"disdel"}}`)
		answer, err := client.Post("http://runtime/init", "application/json", body)
		switch {
		case err != nil && time.Since(begun) < time.Minute:
			time.Sleep(200 * time.Microsecond) // another process, which has not opened its socket yet
			continue
		case err != nil:
			return 0, resident{}, err
		}
		took := time.Since(begun)
		io.Copy(io.Discard, answer.Body) //nolint:errcheck // only its status counts
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return 0, resident{}, errors.New("init: " + answer.Status)
		}
		rss, err := residentMB(cmd.Process.Pid)
		return took, rss, err
	}
}

// residentMB reads what a process holds.
func residentMB(pid int) (r resident, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, err
	}
	for name, into := range map[string]*float64{"VmRSS:": &r.all, "RssAnon:": &r.own} {
		_, rest, there := bytes.Cut(status, []byte(name))
		if !there {
			return r, errors.New("no " + name)
		}
		kb, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
		if err != nil {
			return r, err
		}
		*into = kb * 1024 / 1e6
	}
	return r, nil
}
