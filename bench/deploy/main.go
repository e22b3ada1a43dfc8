// Command deploy measures the action runtime as a cluster sees it: what a node pulls, how soon a container answers, and
// what it holds before its first action; how long a plan waits for what a large history knows; and how long disdel
// verify takes on a platform of this machine.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
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
	rig.Main(func() error {
		ctx := context.Background()
		return rig.RunParts([]rig.Part{
			{Name: "image", Run: func() error {
				return rig.Folder(func(folder string) error { return measure(*program, *certificates, *runs, folder) })
			}},
			{Name: "cold", Run: func() error { return cold(ctx, *whole, *program) }},
			{Name: "verify", Run: func() error { return verified(*whole) }},
			{Name: "history", Run: func() error { return ask(ctx, *records, *pouchdb) }},
		}, *parts)
	})
}

// measure measures the image, and what a container of it takes to start and to wait.
func measure(program, certificates string, runs int, folder string) error {
	made, err := image.Make(context.Background(), image.Options{Program: program, Certificates: certificates},
		image.Target{Layout: filepath.Join(folder, "layout")})
	if err != nil {
		return err
	}
	rig.Figure("image_mb", float64(made.Size)/1e6, "MB")
	rig.Figure("image_pull_mb", float64(made.Compressed)/1e6, "MB")
	var starts, held, own []float64
	for i := range runs {
		took, memory, err := answers(program, filepath.Join(folder, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		starts = append(starts, took.Seconds()*1e3)
		held, own = append(held, float64(memory[0])/1e6), append(own, float64(memory[1])/1e6)
	}
	rig.Figure("runtime_start_ms", rig.Median(starts), "ms")
	rig.Figure("runtime_idle_rss_mb", rig.Median(held), "MB")
	rig.Figure("runtime_idle_own_mb", rig.Median(own), "MB")
	return nil
}

// answers runs a container's process until /init is answered, and tells how long that took and what it then holds: all
// that is mapped, and what is its own. The rest is pages of its program, which the kernel shares among all containers
// of a machine and takes back when memory is short.
func answers(program, socket string) (time.Duration, []disdel.Bytes, error) {
	begun := time.Now()
	cmd := exec.Command(program, "--listen", "unix:"+socket)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	defer rig.Kill(cmd)
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
			return 0, nil, err
		}
		took := time.Since(begun)
		io.Copy(io.Discard, answer.Body) //nolint:errcheck // only its status counts
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return 0, nil, errors.New("init: " + answer.Status)
		}
		memory, err := rig.Memory(cmd.Process.Pid, "VmRSS", "RssAnon")
		return took, memory, err
	}
}
