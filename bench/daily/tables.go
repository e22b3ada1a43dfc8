package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/disdel/disdel/bench/rig"
)

// tables adds a large table as anybody would.
func tables(ctx context.Context, t *tools, megabytes int) (err error) {
	folder, err := os.MkdirTemp("", "bench-daily-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "table.csv")
	size, err := writeTable(file, megabytes)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, t.disdel, "dataset", "add", "table", "--csv", file, "--quiet")
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+filepath.Join(folder, "home"))
	cmd.Stderr = os.Stderr
	use, err := rig.Measure(cmd)
	if err != nil {
		return err
	}
	rig.Figure("csv_mb", float64(size)/1e6, "MB")
	rig.Figure("csv_mb_per_s", float64(size)/1e6/use.Wall.Seconds(), "MB/s")
	rig.Figure("csv_cpu_s", use.CPU.Seconds(), "s")
	rig.Figure("add_rss_mb", float64(use.Peak)/1e6, "MB")
	return nil
}

// columns of the table beside the label, and classes of that.
const (
	columns = 20
	classes = 10
)

// writeTable writes numbers as most tables have them; the rows of the first 32 MB come again and again.
func writeTable(name string, megabytes int) (size int64, err error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	for i := range columns {
		fmt.Fprintf(out, "value%d,", i)
	}
	out.WriteString("label\n")
	rng := rand.New(rand.NewPCG(1, 2))
	var rows bytes.Buffer
	for rows.Len() < 32<<20 {
		for range columns {
			fmt.Fprintf(&rows, "%.5f,", rng.NormFloat64())
		}
		fmt.Fprintf(&rows, "%d\n", rng.IntN(classes))
	}
	for size < int64(megabytes)<<20 {
		n, err := out.Write(rows.Bytes())
		if size += int64(n); err != nil {
			return size, err
		}
	}
	return size, out.Flush()
}
