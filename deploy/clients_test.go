package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/internal/test/deploytest"
	"github.com/disdel/disdel/platform"
)

// tool runs one of the programs that scripts/test-deps.sh installs, against a platform.
type tool struct {
	t       *testing.T
	program string
	folder  string
	env     []string
}

func newTool(t *testing.T, variable string, p *platform.Platform) tool {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skipf("%s is not set: scripts/test-deps.sh installs what it names, scripts/test.sh sets it", variable)
	}
	folder := t.TempDir()
	properties := filepath.Join(folder, ".wskprops")
	text := fmt.Sprintf("APIHOST=%s\nAUTH=%s\nNAMESPACE=_\n", p.URL(), p.AuthKey())
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+folder, "WSK_CONFIG_FILE="+properties, "__OW_API_HOST="+p.URL(),
		"__OW_API_KEY="+p.AuthKey())
	return tool{t, program, folder, env}
}

func (x tool) run(args ...string) string {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), x.program, args...)
	cmd.Dir, cmd.Env = x.folder, x.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("%s %v: %v\n%s", filepath.Base(x.program), args, err, out)
	}
	return string(out)
}

// wskdeploy deploys the manifest as it is, and what it has deployed is what `deploy up` would.
func TestWskdeployDeploysTheSameManifest(t *testing.T) {
	p := deploytest.Platform(t, nil)
	x := newTool(t, "DISDEL_TEST_WSKDEPLOY", p)
	file := filepath.Join(x.folder, "manifest.yaml")
	if err := os.WriteFile(file, deploy.StandardManifest(), 0o600); err != nil {
		t.Fatal(err)
	}
	x.run("-m", file)
	c := cluster(t, p, p.AuthKey())
	plan, err := c.Preview(t.Context(), standard(t))
	if diff := cmp.Diff(every(deploy.Keep), changes(plan)); diff != "" || err != nil {
		t.Fatalf("%v (-want +got)\n%s%+v", err, diff, plan)
	}
	x.run("undeploy", "-m", file)
	plan, err = c.Preview(t.Context(), standard(t))
	if diff := cmp.Diff(every(deploy.Create), changes(plan)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// example is one of the files of docs/how-to/keep-a-cluster.md: a name in a line of its own, and the JSON below.
var example = regexp.MustCompile("(?s)\n`([a-z0-9-]+\\.json)`[^\n]*:\n\n```json\n(.*?)```")

// wsk carries out the round of docs/how-to/keep-a-cluster.md: two train actions, their mean, an evaluation and an
// answer, all with the parameters that the page has.
func TestARoundWithoutAController(t *testing.T) {
	p := deploytest.Platform(t, nil)
	x := newTool(t, "DISDEL_TEST_WSK", p)
	c := cluster(t, p, p.AuthKey())
	if _, err := c.Up(t.Context(), standard(t)); err != nil {
		t.Fatal(err)
	}
	checksum := addDigits(t, x.folder)
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	text, err := os.ReadFile("../docs/how-to/keep-a-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	write := func(weights string) (names []string) {
		replace := strings.NewReplacer("file:///shared", "file://"+x.folder, "CHECKSUM", checksum, "WEIGHTS", weights,
			"redis://redis.example:6379/0", redis.URL())
		for _, m := range example.FindAllStringSubmatch(string(text), -1) {
			if err := os.WriteFile(filepath.Join(x.folder, m[1]), []byte(replace.Replace(m[2])), 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, m[1])
		}
		return names
	}
	if got := write(""); len(got) != 5 {
		t.Fatalf("the page has %v", got)
	}
	if list := x.run("action", "list"); strings.Count(list, "/disdel/") != 4 {
		t.Errorf("wsk action list:\n%s", list)
	}
	var trained disdel.TrainResult
	for _, name := range []string{"train-0.json", "train-1.json"} {
		invoke(x, "train", name, &trained)
		if trained.Samples != 700 || trained.Epochs != 2 || trained.Duplicate {
			t.Errorf("%s: %+v", name, trained)
		}
	}
	if invoke(x, "train", "train-1.json", &trained); !trained.Duplicate {
		t.Error("the same work was done twice")
	}
	var mean disdel.AggregateResult
	if invoke(x, "aggregate", "aggregate.json", &mean); mean.Weight != 1400 || mean.Checksum == "" {
		t.Errorf("%+v", mean)
	}
	var measured disdel.EvaluateResult
	if invoke(x, "evaluate", "evaluate.json", &measured); measured.Samples != 300 || measured.Accuracy < 0.5 {
		t.Errorf("%+v", measured)
	}
	write(mean.Checksum)
	var answer disdel.InferResult
	if invoke(x, "infer", "infer.json", &answer); len(answer.Classes) != 1 || len(answer.Probabilities[0]) != 10 {
		t.Errorf("%+v", answer)
	}
}

func invoke[T any](x tool, action, parameters string, result *T) {
	x.t.Helper()
	out := x.run("action", "invoke", "disdel/"+action, "-P", parameters, "--result")
	*result = *new(T)
	if err := json.Unmarshal([]byte(out), result); err != nil {
		x.t.Fatalf("%v\n%s", err, out)
	}
}

// addDigits is the checksum of the data set digits, put into a folder of data sets.
func addDigits(t *testing.T, folder string) string {
	t.Helper()
	store, err := dataset.OpenStore(t.Context(), "file://"+filepath.Join(folder, "datasets"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	in, err := dataset.Digits()
	if err != nil {
		t.Fatal(err)
	}
	in.Name = "digits"
	m, err := store.Add(t.Context(), in, true)
	if err != nil {
		t.Fatal(err)
	}
	return m.Checksum()
}
