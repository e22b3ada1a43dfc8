package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel/bench/rig"
)

// folders has a hub's folders come in and go out again, and counts the bytes that differ.
func folders(t *tools) error {
	const testdata = "internal/export/testdata/hub"
	total, differ := 0, 0
	err := rig.Folder(func(home string) error {
		p := rig.Program{Path: t.disdel, Home: home}
		for _, name := range []string{"bert", "gpt2", "gpt2-body", "gpt2-classes", "vit"} {
			from, to := filepath.Join(testdata, name), filepath.Join(home, "out-"+name)
			if _, err := p.Run(nil, "model", "import", name, from); err != nil {
				return err
			}
			if _, err := p.Run(nil, "model", "export", name, "--to", "hf", "--file", to); err != nil {
				return err
			}
			for _, file := range []string{"config.json", "model.safetensors"} {
				want, err := os.ReadFile(filepath.Join(from, file))
				if err != nil {
					return err
				}
				got, err := os.ReadFile(filepath.Join(to, file))
				if err != nil {
					return err
				}
				total, differ = total+len(want), differ+unequal(got, want)
			}
		}
		return nil
	})
	rig.Figure("hf_bytes", float64(total), "bytes")
	rig.Figure("hf_round_trip", float64(differ), "bytes that differ")
	return err
}

// unequal counts the bytes of which only one file has, or that differ.
func unequal(a, b []byte) int {
	n, both := max(len(a), len(b)), min(len(a), len(b))
	for i := range both {
		if a[i] == b[i] {
			n--
		}
	}
	return n
}

// columns are those of the Parquet table, beside the label.
const columns = 20

// tables adds a large Parquet table, and has PyArrow read it into arrays.
func tables(ctx context.Context, t *tools, megabytes int) error {
	return rig.Folder(func(folder string) error {
		file := filepath.Join(folder, "table.parquet")
		_, err := t.run(ctx, "parquet_table.py", "write", file, strconv.Itoa(megabytes), strconv.Itoa(columns))
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		text, err := t.run(ctx, "parquet_table.py", "read", file)
		if err != nil {
			return err
		}
		peer, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return fmt.Errorf("parquet_table.py says %q", text)
		}
		cmd := exec.CommandContext(ctx, t.disdel, "dataset", "add", "table", "--table", file, "--quiet")
		cmd.Env = append(os.Environ(), "DISDEL_HOME="+filepath.Join(folder, "home"))
		cmd.Stderr = os.Stderr
		use, err := rig.Measure(cmd)
		if err != nil {
			return err
		}
		size := float64(info.Size()) / 1e6
		rig.Figure("parquet_mb", size, "MB")
		rig.Figure("parquet_add_mb_per_s", size/use.Wall.Seconds(), "MB/s")
		rig.Figure("parquet_pyarrow_mb_per_s", size/peer, "MB/s")
		rig.Figure("parquet_mb_per_s", peer/use.Wall.Seconds(), "of PyArrow's")
		rig.Figure("parquet_rss_mb", float64(use.Peak)/1e6, "MB")
		return nil
	})
}
