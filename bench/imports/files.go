package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
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

// shard is a data set that is larger than an action.
type shard struct {
	megabytes int
	columns   int // bytes of a row
	copies    int // of the rows; more than one share the files of the store
}

// shardJob trains one epoch on the whole shard in one action.
const shardJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: shard}
model: {layers: [{dense: {units: 2, activation: softmax}}]}
data: {source: dataset://shard, split: {train: 0.99, validation: 0.01}}
training: {epochs: 1, batchSize: 256}
distribution: {workers: 1}
output: {model: shard}
`

// streamedShard trains on a shard that is larger than its action, from a disk. Rows without copies also train from
// memory, and it compares the bits of the weights.
func streamedShard(t *tools, of shard) error {
	return rig.Folder(func(folder string) error {
		p := rig.Program{Path: t.disdel, Home: filepath.Join(folder, "home")}
		job := filepath.Join(folder, "shard.yaml")
		rows, err := of.add(p, folder)
		if err == nil {
			err = os.WriteFile(job, []byte(shardJob), 0o600)
		}
		if err != nil {
			return err
		}
		onDisk, disk, err := trainShard(p, job, "data.keep=disk", "resources.memory=512MB")
		if err != nil {
			return err
		}
		rig.Figure("streamed_shard_gb", float64(rows)*float64(of.columns)*0.99/1e9, "GB")
		rig.Figure("streamed_shard_rss_mb", float64(onDisk.peak)/1e6, "MB")
		rig.Figure("streamed_shard_s", onDisk.seconds, "s")
		if of.copies > 1 {
			return nil
		}
		inMemory, memory, err := trainShard(p, job, "data.keep=memory", fmt.Sprintf("resources.memory=%dMB", 2*of.megabytes))
		if err != nil {
			return err
		}
		rig.Figure("streamed_shard_memory_rss_mb", float64(inMemory.peak)/1e6, "MB from memory")
		rig.Figure("streamed_shard_memory_s", inMemory.seconds, "s from memory")
		rig.Figure("streamed_shard_bytes_differ", float64(unequal(disk, memory)), "bytes of the weights")
		return nil
	})
}

// add adds the data set to the home of a program, and returns its rows.
func (of shard) add(p rig.Program, folder string) (rows int, err error) {
	rows = of.megabytes * 1_000_000 / of.columns
	images, labels := filepath.Join(folder, "x.npy"), filepath.Join(folder, "y.npy")
	if err := of.draw(images, labels, rows); err != nil {
		return rows, err
	}
	_, err = p.Run(nil, "dataset", "add", "shard", "--images", images, "--labels", labels, "--format", "npy", "-q")
	if err == nil {
		err = os.Remove(images)
	}
	if err != nil || of.copies < 2 {
		return rows, err
	}
	return of.repeat(filepath.Join(p.Home, "datasets"))
}

// repeat lets the data set have its rows several times. The store has further names of the files, and no copies. The
// last file has fewer rows than the others, and stays out. repeat returns the rows.
func (of shard) repeat(store string) (rows int, err error) {
	var m dataset.Manifest
	manifest := filepath.Join(store, "shard", "manifest.json")
	data, err := os.ReadFile(manifest)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil || len(m.Train.Chunks) < 2 {
		return m.Train.Rows, err
	}
	once := m.Train.Chunks[:len(m.Train.Chunks)-1]
	m.Train = dataset.Part{}
	for range of.copies {
		for _, chunk := range once {
			from := filepath.Join(store, chunk.Key)
			chunk.Key = fmt.Sprintf("shard/train-%05d.safetensors", len(m.Train.Chunks))
			to := filepath.Join(store, chunk.Key)
			if from != to {
				os.Remove(to) //nolint:errcheck // the last file of the rows
				if err := os.Link(from, to); err != nil {
					return 0, err
				}
			}
			m.Train.Chunks, m.Train.Rows = append(m.Train.Chunks, chunk), m.Train.Rows+chunk.Rows
		}
	}
	if data, err = json.MarshalIndent(m, "", "  "); err != nil {
		return 0, err
	}
	return m.Train.Rows, errors.Join(os.WriteFile(manifest, append(data, '\n'), 0o600),
		os.WriteFile(manifest+".sha256", []byte(m.Checksum()+"\n"), 0o600))
}

// shardUse is what the largest train action of a job took.
type shardUse struct {
	peak    disdel.Bytes
	seconds float64
}

// trainShard runs a job, and returns its weights without the header, which has the job's id.
func trainShard(p rig.Program, job string, settings ...string) (use shardUse, weights []byte, err error) {
	args := []string{"submit", job, "--action-memory", "64GB", "--action-timeout", "2h"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	rec, err := p.Job(nil, args...)
	if err != nil {
		return use, nil, err
	}
	for _, x := range rec.Activations {
		if x.Task == disdel.TaskTrain {
			use.peak, use.seconds = max(use.peak, x.Peak), max(use.seconds, x.Duration.Seconds())
		}
	}
	file := filepath.Join(filepath.Dir(job), strings.ReplaceAll(settings[0], "=", "-")+".safetensors")
	if _, err = p.Run(nil, "model", "export", "shard", "--file", file); err != nil {
		return use, nil, err
	}
	if weights, err = os.ReadFile(file); err != nil {
		return use, nil, err
	}
	const length = 8 // of the header's own length
	if len(weights) < length || uint64(len(weights)) < length+binary.LittleEndian.Uint64(weights) {
		return use, nil, fmt.Errorf("%s is no safetensors file", file)
	}
	return use, weights[length+binary.LittleEndian.Uint64(weights):], nil
}

// draw writes arrays of drawn bytes, whose first one decides the label.
func (of shard) draw(images, labels string, rows int) (err error) {
	var files [2]*bufio.Writer
	for i, name := range []string{images, labels} {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		files[i] = bufio.NewWriterSize(f, 1<<20)
	}
	npyHead(files[0], fmt.Sprintf("(%d, %d)", rows, of.columns))
	npyHead(files[1], fmt.Sprintf("(%d,)", rows))
	rng, row := rand.NewChaCha8([32]byte{37}), make([]byte, of.columns)
	for range rows {
		rng.Read(row) //nolint:errcheck // it has no error
		_, err = files[0].Write(row)
		if err = errors.Join(err, files[1].WriteByte(row[0]>>7)); err != nil {
			return err
		}
	}
	return errors.Join(files[0].Flush(), files[1].Flush())
}

// npyHead writes the head of a NumPy array of bytes.
func npyHead(to io.Writer, shape string) {
	const size = 118
	head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", shape)
	fmt.Fprintf(to, "\x93NUMPY\x01\x00%c\x00%-*s\n", size, size-1, head) //nolint:errcheck // a later Flush returns it
}
