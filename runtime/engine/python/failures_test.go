package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// What goes wrong in a user's program has the right class, and the user's own line first.
func TestFailuresHaveTheirClassAndTheUsersLine(t *testing.T) {
	for name, c := range map[string]struct {
		forward string
		kind    disdel.Kind
		words   []string
	}{
		"exception": {"raise ValueError('wrong rows')", disdel.Invalid, []string{
			"net.py:", "in forward: ValueError: wrong rows",
		}},
		"exit":        {"sys.exit(3)", disdel.Invalid, []string{"net.py:", "ended by itself with code 3"}},
		"hard exit":   {"os._exit(4)", disdel.Invalid, []string{"ended by itself with code 4"}},
		"crash":       {"import ctypes\nctypes.string_at(0)", disdel.Crashed, []string{"net.py:", "in forward", "signal 11"}},
		"abort":       {"os.abort()", disdel.Crashed, []string{"net.py:", "in forward", "signal 6"}},
		"killed":      {"os.kill(os.getpid(), 9)", disdel.Crashed, []string{"killed"}},
		"memory":      {"torch.zeros(2**40)", disdel.OOM, []string{"net.py:", "in forward", "allocate memory"}},
		"MemoryError": {"raise MemoryError()", disdel.OOM, []string{"net.py:", "MemoryError"}},
		"fork": {"raise OSError(12, 'Cannot allocate memory')", disdel.OOM, []string{
			"net.py:", "Cannot allocate memory",
		}},
		"threads": {
			"import threading\nfor _ in range(1000): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
			disdel.OOM,
			[]string{"net.py:", "in forward", "can't start new thread", "threading.stack_size"},
		},
		"not finite":    {"x = x * float('nan')", disdel.Diverged, []string{"loss"}},
		"import":        {"import no_such_package.part", disdel.Invalid, []string{"net.py:", "no_such_package"}},
		"other outputs": {"return x.flatten(1)[:, :2]", disdel.Invalid, []string{"net.py:"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := misbehaving(t, "", c.forward)
			out := new(log)
			s := d.spec(adam)
			s.Memory = disdel.GB
			e, err := newTestEngine(t, Backend{Stdout: out, Stderr: out}, s)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Init(disdel.Init{Seed: 7}); err != nil {
				t.Fatal(err)
			}
			before := everything(e)
			_, err = e.Step(batch(0))
			wants(t, err, c.kind, c.words...)
			if disdel.AsError(err).Hint == "" {
				t.Error("nothing is said of what to do")
			}
			if c.kind == disdel.Diverged {
				same(t, "after a loss that is not finite", before, everything(e))
			}
			if name == "import" && !strings.Contains(disdel.AsError(err).Hint, "add no_such_package to requirements.txt") {
				t.Errorf("hint %q", disdel.AsError(err).Hint)
			}
			if name == "exception" && !strings.Contains(out.String(), "Traceback") {
				t.Errorf("the log has no traceback: %s", out)
			}
		})
	}
}

// Weights that are not finite are told by their name at the end of the round, although each loss was finite.
func TestWeightsThatAreNotFiniteEndTheRound(t *testing.T) {
	for _, value := range []string{"inf", "-inf", "nan"} {
		t.Run(value, func(t *testing.T) {
			e := start(t, misbehaving(t, "", "self.norm.running_mean[2] = float('"+value+"')").spec(adam))
			steps(t, e, 0, 1)
			wants(t, e.EndRound(), disdel.Diverged, "norm.running_mean is not finite")
		})
	}
}

// What goes wrong while a program is loaded is told before anything is trained.
func TestFailuresOfLoading(t *testing.T) {
	d := describe(t, small, adam)
	for name, c := range map[string]struct {
		source string
		words  []string
	}{
		"syntax":  {small + "\ndef oops(:\n", []string{"net.py:", "syntax"}},
		"import":  {"import no_such_package\n" + small, []string{"net.py:1", "no_such_package"}},
		"raises":  {small + "\nraise RuntimeError('at once')\n", []string{"net.py:", "at once"}},
		"exits":   {small + "\nos._exit(5)\n", []string{"ended by itself with code 5"}},
		"changed": {strings.Replace(small, "nn.Linear(64, 3)", "nn.Linear(64, 3, bias=False)", 1), []string{"out.bias"}},
		"no file": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := d.spec(adam)
			s.Code = t.TempDir()
			if c.source != "" {
				if err := os.WriteFile(filepath.Join(s.Code, "net.py"), []byte(c.source), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := newTestEngine(t, Backend{}, s)
			wants(t, err, disdel.Invalid, c.words...)
		})
	}
	s := d.spec(adam)
	s.Code = ""
	if _, err := (Backend{}).New(s); err == nil {
		t.Error("a program without files was started")
	}
	python := *d.python.Network.Python
	python.Interpreter = "/no/such/python"
	network := *d.python.Network
	network.Python = &python
	_, err := newEngine(d.spec(adam), &network, Backend{Stdout: new(log), Stderr: new(log)})
	wants(t, err, disdel.Invalid, "/no/such/python")
}

// A step that never returns is ended before the deadline, with the line where it hangs.
func TestAHangEndsAtTheDeadline(t *testing.T) {
	for name, forward := range map[string]string{"sleep": "time.sleep(10**6)", "loop": "while True: pass"} {
		t.Run(name, func(t *testing.T) {
			begun := filepath.Join(t.TempDir(), "begun")
			d := misbehaving(t, "", fmt.Sprintf("open(%q, 'w')\n%s", begun, forward))
			e, late, err := hangs(t, d, 4*time.Second)
			// On a busy machine the deadline may come before the step has begun, or before its end is told.
			for within := 16 * time.Second; within < 5*time.Minute; within *= 4 {
				if _, missing := os.Stat(begun); missing == nil && !late {
					break
				}
				e, late, err = hangs(t, d, within)
			}
			wants(t, err, disdel.Timeout, "net.py:", "in forward", "did not return")
			if late {
				t.Error("it was told too late")
			}
			if e.control.process.alive() {
				t.Error("the process is still there")
			}
			if _, err := e.Step(batch(0)); !errors.Is(err, disdel.Crashed) {
				t.Errorf("the next step returns %v", err)
			}
		})
	}
}

// hangs returns an engine whose step had a deadline, whether the step ended after it, and the error of the step.
func hangs(t *testing.T, d described, within time.Duration) (e *Engine, late bool, err error) {
	t.Helper()
	e = start(t, d.spec(adam))
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	e.Until(ctx)
	_, err = e.Step(batch(0))
	return e, ctx.Err() != nil, err
}

// A job that is stopped ends a step at once, with the reason.
func TestAStepEndsWithItsContext(t *testing.T) {
	d := misbehaving(t, "", "open(os.environ['HOME'] + '/there', 'w')\ntime.sleep(10**6)")
	e := start(t, d.spec(adam))
	stopped := &disdel.Error{Kind: disdel.Canceled, Msg: "the job was stopped"}
	ctx, stop := context.WithCancelCause(t.Context())
	e.Until(ctx)
	home := e.control.process.home
	go func() {
		wait.Until(t, "step that has begun", func() bool {
			_, err := os.Stat(filepath.Join(home, "there"))
			return err == nil
		})
		stop(stopped)
	}()
	if _, err := e.Step(batch(0)); !errors.Is(err, stopped) {
		t.Errorf("error %v, want %v", err, stopped)
	}
}

// Whatever a program prints, its action's log is bounded, and its messages do not reach the worker's socket.
func TestPrintsAreBounded(t *testing.T) {
	d := misbehaving(t, "", `print("hello from", os.getpid(), flush=True)
for _ in range(100): sys.stdout.write("x" * 10**6)
print("to stderr", file=sys.stderr)
os.write(1, b'{"id": 2, "loss": 1}\n')
try: os.write(3, b'{"id": 2, "loss": 1}\n')
except OSError: pass`)
	out := new(log)
	s := d.spec(adam)
	s.Place = 2
	e, err := newTestEngine(t, Backend{Stdout: out, Stderr: out}, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Init(disdel.Init{Seed: 7}); err != nil {
		t.Fatal(err)
	}
	steps(t, e, 0, 2)
	if err := e.EndRound(); err != nil {
		t.Fatal(err)
	}
	// A line is read a moment after it was printed. Its label may have the next step.
	for _, want := range []string{
		`\[worker 2, step [12]\] hello from `, `\[worker 2, step [12]\] to stderr`, `bytes of output were left out`,
	} {
		line := regexp.MustCompile(want)
		wait.Until(t, "line of the log like "+want, func() bool { return line.MatchString(out.String()) })
	}
	text := out.String()
	if len(text) > 3*maxOutput {
		t.Errorf("the log has %d bytes", len(text))
	}
}

// A program learns no address and no password, and what it has started ends with its engine.
func TestAProgramIsConfinedAndLeavesNothing(t *testing.T) {
	t.Setenv("REDIS_PASSWORD", "secret-of-the-store")
	d := misbehaving(t, "import subprocess\n", `print("environment", sorted(os.environ), flush=True)
a = subprocess.Popen(["sleep", "100000"])
b = subprocess.Popen(["sleep", "100000"], start_new_session=True)
c = os.fork()
if c == 0: os.setsid(); time.sleep(100000)
with open(os.environ["HOME"] + "/started", "w") as f: f.write(f"{a.pid} {b.pid} {c} {os.getpid()}")`)
	out := new(log)
	e, err := newTestEngine(t, Backend{Stdout: out, Stderr: out}, d.spec(adam))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Init(disdel.Init{Seed: 7}); err != nil {
		t.Fatal(err)
	}
	steps(t, e, 0, 1)
	home := e.control.process.home
	started, err := os.ReadFile(filepath.Join(home, "started"))
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(started))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, word := range pids {
		pid, _ := strconv.Atoi(word)
		wait.Until(t, "end of process "+word, func() bool { return !alive(pid) })
	}
	if _, err := os.Stat(home); err == nil {
		t.Error("its folder is still there")
	}
	if text := out.String(); strings.Contains(text, "REDIS") || !strings.Contains(text, "PYTHONHASHSEED") {
		t.Errorf("it was told %s", text)
	}
	if err := e.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// Memory that grows step by step ends at the user's line, below the limit of the action.
func TestALeakEndsAtTheUsersLine(t *testing.T) {
	d := misbehaving(t, "kept = []\n", "kept.append(torch.ones(4 * 2**20))")
	s := d.spec(adam)
	s.Memory = 500 * disdel.MB
	e := start(t, s)
	for i := range 100 {
		if _, err := e.Step(batch(i)); err != nil {
			wants(t, err, disdel.OOM, "net.py:", "in forward", "it asked for")
			return
		}
	}
	t.Error("it took more than its limit")
}
