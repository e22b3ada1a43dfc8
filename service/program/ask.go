package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Bounds of what a child process may say.
const (
	maxAnswer = 32 << 20
	maxPrints = 8 << 10
	// grace is how much longer than its own deadline a child may take to tell where it was.
	grace = 10 * time.Second
)

const prefix = "disdel-description: "

// refusal is an error of disdel.describe.
type refusal struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Place   string `json:"place"`
	Source  string `json:"source"`
	Module  string `json:"module"`
}

// ask runs disdel.describe with a request and returns its answer. The child has none of this process's secrets: its
// environment has a path and a home folder of its own.
func (d *description) ask(ctx context.Context, i interpreter, request map[string]any) (json.RawMessage, error) {
	return d.askIn(ctx, d.confined(), i, request)
}

func (d *description) askIn(ctx context.Context, s surroundings, i interpreter, request map[string]any) (json.RawMessage,
	error,
) {
	input, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	out, prints, err := d.run(ctx, s, d.Timeout+grace, input,
		i.path, "-s", "-B", "-X", "faulthandler", "-m", "disdel.describe")
	line, found := answerLine(out)
	switch {
	case ctx.Err() != nil:
		return nil, &disdel.Error{Kind: disdel.Canceled, Op: d.op(), Msg: "its description was stopped", Err: ctx.Err()}
	case errors.Is(err, context.DeadlineExceeded):
		return nil, d.late("")
	case !found:
		return nil, d.died(err, prints)
	}
	var answer struct {
		Error *refusal `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, d.died(err, prints)
	}
	if answer.Error != nil {
		return nil, d.refused(i, *answer.Error)
	}
	return line, nil
}

// surroundings are the folder and the environment of a child process.
type surroundings struct {
	dir       string
	variables []string
}

// run is a child process in a group of its own, which ends with everything that it started.
func (d *description) run(
	ctx context.Context, s surroundings, limit time.Duration, input []byte, name string, args ...string,
) (out, prints []byte, err error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	answer, lastPrints := &head{max: maxAnswer}, &tail{max: maxPrints}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = s.dir, s.variables
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(input), answer, lastPrints, time.Second
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // what it has started, if any is left
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return answer.Bytes(), lastPrints.data, err
}

// asUser surrounds tools that the user could call: they read the user's settings.
func (d *description) asUser() surroundings { return surroundings{d.Dir, os.Environ()} }

// confined surrounds the user's program: it sees no secret of this process.
func (d *description) confined() surroundings {
	threads := fmt.Sprint(max(d.Threads, 1))
	return surroundings{d.temp, []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + d.temp, "TMPDIR=" + d.temp, "PYTHONPATH=" + d.modules, "PYTHONHASHSEED=0",
		"PYTHONUNBUFFERED=1", "LANG=C.UTF-8",
		"MALLOC_MMAP_THRESHOLD_=65536", // freed memory leaves the process at once, which probes measure
		"OMP_NUM_THREADS=" + threads, "MKL_NUM_THREADS=" + threads,
	}}
}

func answerLine(out []byte) (json.RawMessage, bool) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return bytes.CutPrefix(lines[len(lines)-1], []byte(prefix))
}

// late is the error for a program that took too long; where is its own line, "" if it was at none.
func (d *description) late(where string) error {
	hint := "do downloads and long work in functions that training calls, not where the file is imported"
	if where == "" {
		hint = "try again when the machine is less busy"
	}
	return &disdel.Error{
		Kind: disdel.Timeout, Op: d.op(), Msg: fmt.Sprintf("it was not described within %v%s", d.Timeout, where), Hint: hint,
	}
}

// died is the error for a process that ended without an answer.
func (d *description) died(err error, prints []byte) error {
	e := &disdel.Error{Kind: disdel.Invalid, Op: d.op(), Msg: "its process ended without an answer", Err: err}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			e.Kind, e.Msg = disdel.OOM, "its process was killed: this machine has too little memory for trial steps"
		}
	}
	if last := strings.TrimSpace(terminal.Clean(string(prints))); last != "" {
		e.Msg += "; it printed last: " + last
	}
	e.Hint = "run the program's entry with the same Python by hand"
	return e
}

// refused is a refusal as an error, with what the user can do about it.
func (d *description) refused(i interpreter, r refusal) error {
	where := ""
	if r.Place != "" {
		where = " (" + r.Place
		if r.Source != "" {
			where += ": " + r.Source
		}
		where += ")"
	}
	e := &disdel.Error{Kind: disdel.Invalid, Op: d.op(), Msg: terminal.Clean(r.Message + where)}
	switch r.Kind {
	case "timeout":
		return d.late(terminal.Clean(where))
	case "memory":
		e.Kind, e.Hint = disdel.OOM, "make the network or the batch smaller, or describe it on a larger machine"
	case "import":
		e.Hint = d.install(i, []string{r.Module})
	case "arguments":
		e.Hint = "name the entry as FILE:NAME, and its arguments in model.python.arguments"
	case "syntax":
		e.Hint = "correct the line, or name another Python with --python"
	case "export":
		e.Hint = exportWeights
	case "exit":
		e.Hint = "keep what ends the program below: if __name__ == \"__main__\""
	default:
		e.Hint = "correct the line"
		if len(d.Input) > 0 {
			e.Hint += "; disdel tried two steps on rows of noise of the data's shape " + fmt.Sprint(d.Input)
		}
	}
	return e
}

// install says how to get packages.
func (d *description) install(i interpreter, packages []string) string {
	names := strings.Join(packages, " ")
	if d.Python.Requirements != "" {
		return fmt.Sprintf("add %s to %s", names, filepath.Base(d.Python.Requirements))
	}
	return fmt.Sprintf("run: %s -m pip install %s; or name them in a requirements.txt (model.python.requirements),"+
		" or another Python with --python", i.path, names)
}

// head keeps the first max bytes of a stream.
type head struct {
	bytes.Buffer
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(h.max-h.Len(), 0))])
	return len(p), nil
}

// tail keeps the last max bytes of a stream.
type tail struct {
	data []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if extra := len(t.data) - t.max; extra > 0 {
		t.data = append([]byte(nil), t.data[extra:]...)
	}
	return len(p), nil
}

// exportWeights is the hint for a model that is not written as ONNX.
const exportWeights = "export its weights: --to safetensors"

// ExportONNX has a Python program write its network with trained weights as ONNX, by torch.onnx.export. The graph gives
// the answers of infer. archive has the program's files, and weights is a safetensors file of all its arrays. The
// program runs as Describe runs it, by o.Interpreter or the one that described it; o needs nothing else. ExportONNX
// returns the errors of Describe, and Invalid for a model that is none of PyTorch and for operators that PyTorch does
// not write.
func ExportONNX(ctx context.Context, w io.Writer, o Options, n disdel.CustomNetwork, archive, weights []byte) error {
	files, err := os.MkdirTemp("", "disdel-export-")
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write ONNX", Err: err}
	}
	defer os.RemoveAll(files) //nolint:errcheck // what stays is in the temp folder
	p, code := n.Python, filepath.Join(files, "code")
	if err := unpack(archive, code); err != nil {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "unpack program", Err: err}
	}
	o.Python, o.Dir = disdel.Python{File: p.File, Entry: p.Entry, Arguments: p.Arguments}, code
	o.Interpreter = cmp.Or(o.Interpreter, p.Interpreter)
	d := description{Options: o}
	if err := d.prepare(); err != nil {
		return err
	}
	defer os.RemoveAll(d.temp) //nolint:errcheck // the same
	i, err := d.find(ctx)
	if err != nil {
		return err
	}
	from, to := filepath.Join(files, "weights"), filepath.Join(files, "network.onnx")
	if err := os.WriteFile(from, weights, 0o600); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write ONNX", Err: err}
	}
	_, err = d.ask(ctx, i, map[string]any{
		"folder": code, "file": p.File, "entry": p.Entry, "arguments": p.Arguments, "input": n.Input,
		"classes": n.Classes, "loss": p.Loss, "threads": 1, "timeoutS": d.Timeout.Seconds(), "weights": from, "onnx": to,
	})
	if err != nil {
		return err
	}
	f, err := os.Open(to)
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "PyTorch wrote no file of ONNX", Err: err}
	}
	defer f.Close() //nolint:errcheck // it was only read
	_, err = io.Copy(w, f)
	return err
}

// Rows are files with the rows of a program's own data set, as NumPy arrays.
type Rows struct {
	Images, Labels         string
	TestImages, TestLabels string // of held-out rows, "" where the program has none
}

// ReadRows has a program read its own data set (Task.dataset) and writes the rows into a folder. The program runs as
// the user does, in its own folder, since data may lie anywhere. o needs Python only; its Timeout counts for the whole
// data set. ReadRows returns the errors of Describe; Invalid also for rows that do not fit each other, with the number
// of the row.
func ReadRows(ctx context.Context, o Options, folder string) (rows Rows, err error) {
	d := description{Options: o}
	if d.Timeout == 0 {
		d.Timeout = installTimeout
	}
	if err := d.prepare(); err != nil {
		return rows, err
	}
	defer os.RemoveAll(d.temp) //nolint:errcheck // nothing in it is needed
	i, needs, err := d.environment(ctx)
	if err != nil {
		return rows, err
	}
	from := d.source
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		from = filepath.Dir(from)
	}
	s := d.asUser()
	s.dir, s.variables = from, append(s.variables, "PYTHONPATH="+d.modules)
	answer, err := d.askIn(ctx, s, i, map[string]any{
		"folder": from, "file": needs.File, "entry": d.Python.Entry, "arguments": d.Python.Arguments, "to": folder,
		"timeoutS": d.Timeout.Seconds(),
	})
	if err != nil {
		return rows, err
	}
	var counts struct{ Test int }
	if err := json.Unmarshal(answer, &counts); err != nil {
		return rows, &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "its answer cannot be read", Err: err}
	}
	file := func(name string) string { return filepath.Join(folder, name+".npy") }
	rows = Rows{Images: file("train-x"), Labels: file("train-y")}
	if counts.Test > 0 {
		rows.TestImages, rows.TestLabels = file("test-x"), file("test-y")
	}
	return rows, nil
}
