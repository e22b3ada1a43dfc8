package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

// The scripts run the real main; the embedded platform starts the test binary as its containers, so that they are
// whole.
func TestMain(m *testing.M) {
	testscript.Main(tidied{m}, map[string]func(){"disdel": Main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	hub, err := filepath.Abs(filepath.Join("..", "export", "testdata", "hub"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"record": keepRecord, "damage": damageCheckpoint, "near": near, "document": oneDocument, "idx": writeIDX,
			"serve": serveForScript, "table": writeTable, "array": writeArray, "torch": useTorch,
			"hub": serveHub,
		},
		Condition: scriptCondition,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DISDEL_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("NO_COLOR", "1")
			e.Setenv("HUB", hub) // folders as a hub has them
			e.Defer(func() { endLeftPlatform(filepath.Join(e.WorkDir, "home")) })
			return writePages(filepath.Join(e.WorkDir, "guide"))
		},
	})
}

// tool starts the built program, as a user does.
type tool struct {
	t    *testing.T
	path string
	home string
	temp string
	env  []string // variables of its commands, besides those of the test
}

func build(t *testing.T, environment ...string) *tool {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and trains")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "disdel")
	if err := compiled(path, environment); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	return &tool{t: t, path: path, home: filepath.Join(dir, "home"), temp: temp}
}

// compiled puts the program at path. It is compiled once for all tests, but for one that wants another environment;
// each has a name of its own for it, by which its processes are known.
func compiled(path string, environment []string) error {
	if len(environment) > 0 {
		return compile(path, environment)
	}
	once, err := sharedProgram()
	if err != nil {
		return err
	}
	return link(once, path)
}

// link gives a program a second name. Where the folders are of different file systems it is a copy.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}

func compile(path string, environment []string) error {
	c := exec.Command("go", "build", "-o", path, "../../cmd/disdel")
	c.Env = append(os.Environ(), environment...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// programFolder has the program that all tests share; main removes it.
var programFolder string

var sharedProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "disdel-test-")
	if err != nil {
		return "", err
	}
	programFolder = dir
	path := filepath.Join(dir, "disdel")
	return path, compile(path, nil)
})

// tidied are the tests, and what they leave to be removed.
type tidied struct{ *testing.M }

func (t tidied) Run() int {
	defer func() { os.RemoveAll(programFolder) }() // "": nothing
	return t.M.Run()
}

func (d *tool) command(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.Command(d.path, args...)
	cmd.Env = slices.Concat(os.Environ(), []string{"DISDEL_HOME=" + d.home, "TMPDIR=" + d.temp}, d.env)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return cmd, &out, &errs
}

func (d *tool) run(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	cmd, out, errs := d.command(args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// nothingStays looks for what a run may leave: processes of this binary and temporary files.
func (d *tool) nothingStays() {
	d.t.Helper()
	if left := d.children(); len(left) > 0 {
		d.t.Errorf("processes left: %v", left)
	}
	if left, _ := os.ReadDir(d.temp); len(left) > 0 {
		d.t.Errorf("temporary files left: %v", left)
	}
}

// children finds the containers of this binary.
func (d *tool) children() []int {
	var out []int
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		data, _ := os.ReadFile(f)
		if bytes.HasPrefix(data, []byte(d.path+"\x00runtime\x00")) {
			var pid int
			for _, c := range strings.Split(f, "/")[2] {
				pid = 10*pid + int(c-'0')
			}
			out = append(out, pid)
		}
	}
	return out
}

// resultDocument is the part of -o json that the documentation promises.
type resultDocument struct {
	ID       string             `json:"id"`
	Status   string             `json:"status"`
	Accuracy float64            `json:"accuracy"`
	Loss     float64            `json:"loss"`
	Phases   map[string]float64 `json:"phases"`
	Actions  []struct {
		Task          string `json:"task"`
		Level         int    `json:"level"`
		Member        int    `json:"member"`
		Round         int    `json:"round"`
		EstimateBytes int64  `json:"estimateBytes"`
		LimitBytes    int64  `json:"limitBytes"`
		PeakBytes     int64  `json:"peakBytes"`
		TimeoutMs     int64  `json:"timeoutMs"`
		DurationMs    int64  `json:"durationMs"`
		Outcome       string `json:"outcome"`
		Start         string `json:"start"`
	} `json:"actions"`
	Failure *disdel.Error    `json:"failure"`
	Stopped string           `json:"stopped"`
	Model   *disdel.ModelRef `json:"model"`
}

func parse(t *testing.T, out string) resultDocument {
	t.Helper()
	var doc resultDocument
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("%v in %.300s", err, out)
	}
	if d.More() {
		t.Errorf("more than one JSON document: %.300s", out)
	}
	return doc
}

// The first promise: quickstart trains to 0.95 on embedded defaults, shows every figure, and the commands it names
// work.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	d := build(t)
	out, errs, code := d.run("quickstart", "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	doc := parse(t, out)
	if doc.Status != "succeeded" || doc.Accuracy < 0.95 || doc.Loss <= 0 || doc.Phases["trainMs"] <= 0 ||
		doc.Phases["totalMs"] <= 0 {
		t.Errorf("%s, accuracy %g, loss %g, phases %v", doc.Status, doc.Accuracy, doc.Loss, doc.Phases)
	}
	workers := map[int]bool{}
	for _, a := range doc.Actions {
		if a.EstimateBytes <= 0 || a.LimitBytes < a.EstimateBytes || a.PeakBytes <= 0 || a.PeakBytes > a.LimitBytes ||
			a.TimeoutMs <= 0 || a.DurationMs < 0 {
			t.Errorf("%+v", a)
		}
		if a.Task == "train" {
			workers[a.Member] = true
		}
	}
	if len(workers) != 2 {
		t.Errorf("%d workers, want 2", len(workers))
	}
	d.nothingStays()

	digit := filepath.Join(t.TempDir(), "digit.json")
	sample, _, _ := d.run("dataset", "sample", "digits", "--row", "7")
	if err := os.WriteFile(digit, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	var labels struct{ Labels []int }
	if err := json.Unmarshal([]byte(sample), &labels); err != nil {
		t.Fatal(err)
	}
	answer, errs, code := d.run("infer", "digits-cnn", "--input", digit, "-o", "json")
	var inference struct {
		Classes       []int
		Probabilities [][]float64
	}
	if err := json.Unmarshal([]byte(answer), &inference); err != nil || code != 0 {
		t.Fatalf("infer: exit %d, %v\n%s", code, err, errs)
	}
	if diff := cmp.Diff(labels.Labels, inference.Classes); diff != "" {
		t.Errorf("row 7 (-label +class):\n%s", diff)
	}
	shown, errs, code := d.run("history", "show", doc.ID, "-o", "json")
	if again := parse(t, shown); code != 0 || again.Accuracy != doc.Accuracy || len(again.Actions) != len(doc.Actions) {
		t.Errorf("history show: exit %d\n%s", code, errs)
	}
	if out, errs, code := d.run("model", "show", "digits-cnn:v1"); code != 0 || !strings.Contains(out, doc.ID) {
		t.Errorf("model show: exit %d\n%s%s", code, out, errs)
	}
	exported := filepath.Join(t.TempDir(), "digits.safetensors")
	if out, errs, code := d.run("model", "export", "digits-cnn", "--output", exported); code != 0 ||
		!strings.Contains(out, exported) {
		t.Errorf("model export: exit %d\n%s%s", code, out, errs)
	}
	if _, errs, code := d.run("model", "export", "digits-cnn", "--output", exported); code == 0 ||
		!strings.Contains(errs, "does not exist yet") {
		t.Errorf("model export over a file: exit %d\n%s", code, errs)
	}
	if data, err := os.ReadFile(exported); err != nil ||
		!strings.Contains(string(data[:min(len(data), 400)]), `"conv1.weight"`) {
		t.Errorf("exported file: %v", err)
	}
	// The same seed gives the same bits, and the second job's timeouts come from the first.
	second, errs, code := d.run("quickstart", "-o", "json")
	if doc2 := parse(t, second); code != 0 || doc2.Accuracy != doc.Accuracy || doc2.Loss != doc.Loss ||
		doc2.Actions[0].TimeoutMs >= doc.Actions[0].TimeoutMs {
		t.Errorf("second run: accuracy %g and %g, timeout %d and %d\n%s", doc.Accuracy, doc2.Accuracy,
			doc.Actions[0].TimeoutMs, doc2.Actions[0].TimeoutMs, errs)
	}
	d.nothingStays()
}

// The other ways through the house: a tree of two levels, one-shot averaging, both early stops, a network of one's own.
func TestOtherWaysThroughTheHouse(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte(ownJob), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args  []string
		check func(doc resultDocument) bool
	}{
		"two levels": {[]string{
			"quickstart", "--set", "distribution.workers=4", "--set", "distribution.aggregation.fanIn=2",
			"--set", "training.epochs=2",
		}, func(doc resultDocument) bool {
			return doc.count("train", 0) == 8 && doc.count("aggregate", 1) == 4 && doc.count("aggregate", 2) == 2 &&
				doc.count("evaluate", 0) == 2
		}},
		"sync end": {
			[]string{
				"quickstart", "--set", "distribution.workers=2", "--set", "distribution.sync=end", "--set", "training.epochs=3",
			},
			func(doc resultDocument) bool {
				return doc.count("train", 0) == 2 && doc.count("aggregate", 1) == 1 && doc.Stopped == ""
			},
		},
		"int8 on the wire": {
			[]string{"quickstart", "--set", "distribution.aggregation.wire=int8", "--epochs", "6"},
			func(doc resultDocument) bool {
				return doc.Accuracy > 0.9
			},
		},
		"bfloat16, states kept": {[]string{
			"quickstart", "--set",
			"distribution.aggregation={wire: bfloat16, optimizer: keep}", "--epochs", "6",
		}, func(doc resultDocument) bool {
			return doc.Accuracy > 0.9
		}},
		"int8, momentum averaged": {[]string{
			"quickstart", "--set",
			"distribution.aggregation={wire: int8, optimizer: average}", "--set",
			"training.optimizer={sgd: {learningRate: 0.02, momentum: 0.9}}", "--epochs", "6",
		}, func(doc resultDocument) bool {
			return doc.Accuracy > 0.9
		}},
		"loss target": {
			[]string{"quickstart", "--set", "training.earlyStop={metric: loss, target: 0.5}"},
			func(doc resultDocument) bool {
				return doc.rounds() < 12 && strings.Contains(doc.Stopped, "loss is at most 0.5")
			},
		},
		"patience": {[]string{
			"quickstart", "--set", "training.earlyStop={metric: valLoss, patience: 1}", "--set",
			"training.optimizer={sgd: {learningRate: 0.4}}", "--set", "training.epochs=40",
		}, func(doc resultDocument) bool {
			return doc.count("train", 0) < 80 && strings.Contains(doc.Stopped, "no better held-out loss") && doc.Model != nil
		}},
		"own layers": {[]string{"submit", file}, func(doc resultDocument) bool { return doc.Accuracy > 0.8 }},
	} {
		out, errs, code := d.run(append(c.args, "-o", "json", "-q")...)
		if code != 0 {
			t.Errorf("%s: exit %d\n%s", name, code, errs)
			continue
		}
		if doc := parse(t, out); !c.check(doc) || doc.Status != "succeeded" {
			t.Errorf("%s: %s, accuracy %g, stopped %q, %d actions", name, doc.Status, doc.Accuracy, doc.Stopped,
				len(doc.Actions))
		}
	}
	if out, errs, code := d.run("infer", "own", "-i", filepath.Join("testdata", "zeros.json")); code != 0 ||
		!strings.Contains(out, "PROBABILITY") {
		t.Errorf("infer with a network of one's own: exit %d\n%s%s", code, out, errs)
	}
	d.nothingStays()
}

// rounds is how many rounds there were. How many workers a job has goes by how long the jobs before it took.
func (doc *resultDocument) rounds() (n int) {
	for _, a := range doc.Actions {
		n = max(n, a.Round+1)
	}
	return n
}

// count is how many members of rounds have done a task at a level, however many activations each took: on busy machines
// some are retried, and some are paused and go on in others.
func (doc *resultDocument) count(task string, level int) int {
	type member struct{ round, member int }
	done := map[member]bool{}
	for _, a := range doc.Actions {
		if a.Task == task && a.Level == level && a.Outcome == disdel.OutcomeSuccess.String() {
			done[member{a.Round, a.Member}] = true
		}
	}
	return len(done)
}

const ownJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: own}
model:
  layers:
    - conv: {filters: 8, kernel: 3, padding: 1, activation: relu}
    - maxPool: {kernel: 2}
    - dense: {units: 48, activation: tanh}
    - dropout: {rate: 0.1}
    - dense: {units: 10, activation: softmax}
data: {source: dataset://digits}
training: {epochs: 6, batchSize: 32, optimizer: {adam: {learningRate: 0.004}}}
`

const longJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: long}
model: {name: digits-cnn}
data: {source: dataset://digits}
training: {epochs: 500, batchSize: 8, validateEvery: 0}
`

// start runs a job that would take minutes and returns once both its containers train.
func (d *tool) start(args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	d.t.Helper()
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		d.t.Fatal(errs)
	}
	file := filepath.Join(d.t.TempDir(), "long.yaml")
	if err := os.WriteFile(file, []byte(longJob), 0o600); err != nil {
		d.t.Fatal(err)
	}
	cmd, out, errs = d.command(append([]string{"submit", file}, args...)...)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	const training = 50 // hundredths of a second that a process computes when it trains; to start takes 10
	starts := func(pid int) bool { return computed(pid) < training }
	for i := 0; len(slices.DeleteFunc(d.children(), starts)) < 2; i++ {
		if i > 6000 {
			d.t.Fatalf("no two containers train\n%s", errs)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return cmd, out, errs
}

// computed is the processor time of a process, in hundredths of a second.
func computed(pid int) (user int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(rest); len(fields) > 11 {
		user, _ = strconv.Atoi(fields[11])
	}
	return user
}

// Killing one train process mid-epoch of a job that allows no retries gives a clear failure with its cause, and leaves
// nothing.
func TestAKilledTrainProcessIsReportedAsWhatItWas(t *testing.T) {
	t.Parallel()
	d := build(t)
	cmd, out, errs := d.start("-o", "json", "--set", "distribution.sync=end", "--set", "reliability.retries.limit=0")
	syscall.Kill(d.children()[0], syscall.SIGKILL)
	cmd.Wait()
	doc := parse(t, out.String())
	if code := cmd.ProcessState.ExitCode(); code != 1 || doc.Status != "failed" || doc.Failure == nil ||
		doc.Failure.Kind != disdel.Crashed {
		t.Fatalf("exit %d, %s, %v\n%s", code, doc.Status, doc.Failure, errs)
	}
	text := errs.String()
	for _, want := range []string{
		"train action of worker", "its process was killed or exited", "not for memory",
		`"hint":`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("stderr does not say %q:\n%s", want, text)
		}
	}
	if shown, _, code := d.run("history", "show", "@last"); code != 0 || !strings.Contains(shown, "killed or exited") ||
		!strings.Contains(shown, "evidence") {
		t.Errorf("history show: exit %d\n%s", code, shown)
	}
	d.nothingStays()
}

func TestCtrlCStopsCleanly(t *testing.T) {
	t.Parallel()
	d := build(t)
	cmd, out, errs := d.start("-o", "json")
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	doc := parse(t, out.String())
	if cmd.ProcessState.ExitCode() != 130 || doc.Status != "canceled" {
		t.Errorf("exit %d, %s\n%s", cmd.ProcessState.ExitCode(), doc.Status, errs)
	}
	if said := errs.String(); !strings.Contains(said, " resume "+doc.ID+"\n") {
		t.Errorf("no line says how to go on:\n%s", said)
	}
	if shown, _, _ := d.run("history", "-o", "json"); !strings.Contains(shown, `"status": "canceled"`) {
		t.Errorf("history: %.300s", shown)
	}
	d.nothingStays()
}

// A controller that is killed takes its containers with it.
func TestContainersDieWithTheirController(t *testing.T) {
	t.Parallel()
	d := build(t)
	cmd, _, _ := d.start()
	cmd.Process.Kill()
	cmd.Wait()
	for i := 0; len(d.children()) > 0; i++ {
		if i > 500 {
			t.Fatalf("containers outlive the controller: %v", d.children())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The Fashion-MNIST job of the examples comes to at least 0.88 on the embedded store, and its first epoch to the same
// on redis-server.
func TestFashionMNIST(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, err := os.Stat("/usr/share/datasets/fashion-mnist"); err != nil {
		t.Skip("the package dataset-fashion-mnist is not installed; scripts/test-deps.sh installs it")
	}
	if _, errs, code := d.run("dataset", "add", "fashion-mnist"); code != 0 {
		t.Fatal(errs)
	}
	embedded := d.fashion()
	if embedded.Accuracy < 0.88 {
		t.Errorf("accuracy %g, want at least 0.88", embedded.Accuracy)
	}
	if address, ok := redisServer(t); ok {
		redis := d.fashion("--redis", address, "--set", "training.epochs=1", "--set",
			fmt.Sprintf("distribution.workers=%d", embedded.Plan.Workers))
		if one, other := *embedded.Rounds[0].Accuracy, *redis.Rounds[0].Accuracy; one != other {
			t.Errorf("after one epoch the accuracy is %g on the embedded store, and %g on redis-server", one, other)
		}
	} else {
		t.Log("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	d.nothingStays()
}

// fashion submits the example, and returns its record.
func (d *tool) fashion(args ...string) disdel.Record {
	d.t.Helper()
	example, _ := filepath.Abs("../../examples/lenet-fashion.yaml")
	out, errs, code := d.run(append([]string{"submit", example, "-o", "json"}, args...)...)
	if code != 0 {
		d.t.Fatalf("%q: exit %d\n%s", args, code, errs)
	}
	doc := parse(d.t, out)
	for _, a := range doc.Actions {
		if a.PeakBytes > a.LimitBytes {
			d.t.Errorf("%q: %+v", args, a)
		}
	}
	d.t.Logf("%q: accuracy %g in %g s", args, doc.Accuracy, doc.Phases["totalMs"]/1000)
	return d.record()
}

func redisServer(t *testing.T) (address string, ok bool) {
	t.Helper()
	if address := os.Getenv("DISDEL_TEST_REDIS_URL"); address != "" {
		return address, true
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", false
	}
	socket := filepath.Join(t.TempDir(), "redis.sock")
	cmd := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			return "unix://" + socket, true
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("redis-server did not come up")
	return "", false
}

// Flags may stand before or after operands, on every level.
func TestNormalizeMovesFlagsAhead(t *testing.T) {
	app := newApp(terminal.New(nil, nil, nil))
	for in, want := range map[string]string{
		"submit job.yaml -o json":               "-o json submit job.yaml",
		"submit job.yaml --set a=b --quiet":     "--quiet submit --set a=b job.yaml",
		"history show x --logs -o=json":         "-o=json history show --logs x",
		"-o json history show x":                "-o json history show x",
		"infer m -i f":                          "infer -i f m",
		"submit -- -o json":                     "submit -- -o json",
		"submit - --set a=b":                    "submit --set a=b -",
		"estimate job.yaml --backend native":    "estimate --backend native job.yaml",
		"dataset add x --format idx --images a": "dataset add --format idx --images a x",
		"history show show":                     "history show show",
		"submit job.yaml --unknown":             "submit --unknown job.yaml",
		"model show lenet5 --input 1x28x28 -q":  "-q model show --input 1x28x28 lenet5",
	} {
		got := flagsFirst(app, append([]string{"disdel"}, strings.Fields(in)...))
		if diff := cmp.Diff(strings.Fields("disdel "+want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// Every kind of error has its exit code.
func TestExitCodes(t *testing.T) {
	for kind, want := range map[disdel.Kind]int{
		disdel.Invalid: 2, disdel.Unavailable: 3, disdel.Denied: 4, disdel.OverLimit: 5, disdel.Conflict: 6, disdel.OOM: 7,
		disdel.Canceled: 8, disdel.Timeout: 124, disdel.Crashed: 1, disdel.NotFound: 1, disdel.Internal: 1,
	} {
		if got := terminal.ExitCode(t.Context(), &disdel.Error{Kind: kind}); got != want {
			t.Errorf("%v: exit %d, want %d", kind, got, want)
		}
	}
	if got := terminal.ExitCode(t.Context(), &disdel.Faults{}); got != 2 {
		t.Errorf("faults: exit %d", got)
	}
	if got := terminal.ExitCode(t.Context(), nil); got != 0 {
		t.Errorf("no error: exit %d", got)
	}
}

// What came from outside cannot steer the terminal.
func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	if got := terminal.Clean("a\x1b[31mb\x07\u009bc\n"); got != "ab??c\n" {
		t.Errorf("%q", got)
	}
}
