package disdel_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/disdel/disdel"

// house is who may import whom, folder by folder, besides the root package and the standard library. "..." stands for
// every package below. A folder that is not here fails until someone decides what it may import.
var house = map[string][]string{
	".":                          {},
	"model":                      {"internal/spelling"},
	"runtime/engine/native/plan": {"model", "runtime/engine/native/winograd"},
	"estimator":                  {"model", "runtime/engine/footprint", "internal/spelling"},
	"dataset":                    {"internal/..."},
	"dataset/dense":              {"dataset", "internal/files", "internal/safetensors"},
	"dataset/sparse":             {"dataset"},
	"dataset/text":               {"dataset", "internal/files"},
	"controller":                 {"scheduler", "model", "dataset", "estimator", "internal/spelling", "internal/advice"},
	"controller/jobfile":         {"internal/spelling", "internal/terminal", "model", "scheduler"},
	"controller/simulate":        {"controller", "scheduler", "scheduler/sim", "estimator", "model"},
	"executor":                   {"internal/..."},
	"aggregator":                 {"internal/safetensors"}, // values as bytes without a copy
	"aggregator/embedded":        {},
	"aggregator/exchange":        {"runtime/engine/native/kernel"}, // one pass over all weights a step, by vectors
	"runtime":                    {"internal/secrets"},
	"runtime/engine/footprint":   {"model"},
	"runtime/engine": { // kernel: it reads all weights of a round, by vectors
		"model", "dataset", "runtime/engine/footprint", "runtime/engine/native/kernel",
	},
	"runtime/engine/backends": {
		"runtime/engine", "runtime/engine/native", "runtime/engine/gorgonia", "runtime/engine/sparse", "runtime/engine/gpu",
		"runtime/engine/python",
	},
	"runtime/engine/gpu": {
		"runtime/engine", "runtime/engine/cuda/driver",
		"runtime/engine/cuda", "runtime/engine/cuda/device", // with the tag nvidia
		"internal/test/emulated", // with the tag emulated, of tests
	},
	"runtime/engine/cuda": {
		"model", "dataset", "runtime/engine", "runtime/engine/footprint", "runtime/engine/native/plan",
		"runtime/engine/cuda/driver", "runtime/engine/cuda/kernel",
	},
	"runtime/engine/cuda/driver": {},
	"runtime/engine/cuda/kernel": {"runtime/engine/cuda/driver", "runtime/engine/native/plan"},
	"runtime/engine/cuda/ptx":    {},
	"runtime/engine/cuda/device": {
		"runtime/engine/cuda/driver", "runtime/engine/cuda/kernel", "runtime/engine/cuda/ptx",
	},
	"runtime/engine/slab": {},
	"runtime/engine/python": {
		"model", "dataset", "runtime/engine", "runtime/engine/footprint", "runtime/engine/native/kernel", "clients/python",
	},
	"runtime/engine/sparse": {
		"model", "dataset", "runtime/engine", "runtime/engine/footprint", "runtime/engine/slab",
		"runtime/engine/native/kernel",
	},
	"runtime/engine/native": {
		"model", "dataset", "runtime/engine", "runtime/engine/footprint", "runtime/engine/slab",
		"runtime/engine/native/plan", "runtime/engine/native/kernel",
	},
	"runtime/engine/native/winograd": {},
	"runtime/engine/native/kernel":   {"runtime/engine/native/plan", "runtime/engine/native/winograd"},
	"runtime/engine/native/checkup":  {"runtime/engine/native/plan", "runtime/engine/native/kernel"},
	"runtime/engine/gorgonia": {
		"model", "dataset", "runtime/engine", "runtime/engine/footprint",
		"runtime/engine/native/plan", "runtime/engine/native/kernel",
	},
	"actions": {
		"runtime/engine", "runtime/engine/footprint", "aggregator", "aggregator/exchange", "dataset", "model",
		"internal/modelstore",
	},
	"actions/serve":      {"actions", "runtime", "runtime/engine"},
	"actions/custom":     {"actions/serve", "aggregator", "runtime/engine/gorgonia", "runtime/engine/backends"},
	"examples":           {},
	"examples/gorgonia":  {"actions/custom", "model", "runtime/engine/gorgonia"},
	"history":            {"history/couchlite", "internal/process", "internal/spelling"},
	"history/couchlite":  {"internal/boltcheck"},
	"platform":           {"internal/boltcheck"},
	"platform/clients":   {}, // tests alone
	"internal/addresses": {},
	"internal/render": {
		"controller", "controller/simulate", "dataset", "internal/addresses", "internal/files",
		"internal/modelstore", "internal/plot", "internal/report", "internal/terminal", "model", "scheduler",
		"service", "service/batch", "service/infer", "service/tenant",
	},
	"internal/report":  {"internal/addresses", "internal/advice", "internal/plot", "internal/terminal"},
	"internal/secrets": {},
	"internal/export":  {"internal/files", "internal/safetensors", "model"},
	"internal/advice":  {"scheduler"},
	"internal/blobs":   {},
	"internal/client": {
		"controller/jobfile", "dataset", "history", "internal/addresses", "internal/render", "internal/files",
		"internal/secrets", "internal/modelstore", "internal/apitypes", "service", "service/batch",
		"service/infer", "service/program", "service/tenant",
	},

	"internal/promtext":   {},
	"internal/files":      {},
	"internal/fullscreen": {"history", "internal/client", "internal/render", "internal/terminal", "service"},
	"platform/local": {
		"internal/addresses", "internal/files", "internal/process", "platform", "runtime/engine/native/kernel",
	},
	"scheduler":            {"estimator", "model", "scheduler/schedule"},
	"scheduler/schedule":   {},
	"scheduler/sim":        {"scheduler"},
	"internal/modelstore":  {"internal/blobs", "internal/safetensors"},
	"internal/spelling":    {},
	"internal/plot":        {},
	"internal/process":     {},
	"internal/safetensors": {},
	"internal/boltcheck":   {},
	"internal/terminal":    {"internal/addresses", "internal/files"},
	"internal/apitypes": {
		"history", "internal/render", "internal/modelstore", "scheduler", "service", "service/infer", "service/tenant",
	},
	// All below it, and what serves as a container of the embedded platform.
	"service": {
		"actions/serve", "aggregator", "aggregator/embedded", "aggregator/exchange", "controller", "controller/jobfile",
		"controller/simulate", "dataset", "deploy/clusterfacts", "estimator", "executor", "history", "history/couchlite",
		"internal/...", "model", "platform", "platform/local", "runtime/engine/backends", "runtime/engine/gpu",
		"scheduler", "scheduler/sim", "service/infer", "service/lease", "service/program", "service/queue",
		"service/tenant",
	},
	// Parts of a service, each of which knows only those above it in this list.
	"service/tenant": {"aggregator", "history", "internal/files", "scheduler"},
	"service/lease":  {"history", "internal/files", "internal/process"},
	"service/queue":  {"controller", "history", "scheduler", "service/lease"},
	"service/infer": {
		"dataset", "dataset/dense", "dataset/sparse", "dataset/text", "estimator", "executor", "history",
		"internal/modelstore", "model",
		"runtime/engine/backends", "scheduler", "service/lease", "service/queue",
	},
	"service/program": {
		"clients/python", "dataset", "internal/files", "internal/safetensors", "internal/terminal", "model", "runtime/engine",
		"runtime/engine/native", // translated networks are compared with it
	},
	// Many jobs as one experiment: a caller of service like any other.
	"service/batch": {"controller/jobfile", "service"},
	// A service over HTTP.
	"service/api": {
		"controller/jobfile", "dataset", "history", "internal/...", "scheduler", "service", "service/infer",
		"service/program", "service/tenant", "service/web",
	},
	// The same for a browser, mounted by service/api.
	"service/web": {
		"controller/jobfile", "dataset", "dataset/dense", "estimator", "history", "internal/...", "scheduler", "service",
		"service/infer", "service/queue",
		"service/tenant",
	},
	// Flags and printing over service. It lists data sets, networks and records by their own packages, serves the platform
	// to others, and is the action runtime, whose kernels it names.
	"internal/cli": {
		"actions/serve", "aggregator", "controller/jobfile", "controller/simulate", "dataset", "dataset/dense",
		"dataset/sparse", "dataset/text", "deploy", "deploy/...", "estimator", "examples", "executor", "history",
		"history/couchlite",
		"internal/...", "platform", "platform/local", "runtime/engine/gpu", "runtime/engine/native/checkup",
		"runtime/engine/native/kernel", "scheduler", "scheduler/sim", "service", "service/api", "service/batch",
		"service/infer", "service/tenant",
	},
	"cmd/disdel":     {"internal/cli"},
	"clients/python": {},
	// An image's entry point: what trains, and nothing of what plans, prints or serves a platform.
	"cmd/disdel-runtime": {
		"actions/serve", "aggregator", "runtime/engine", "runtime/engine/gpu", "runtime/engine/native",
		"runtime/engine/python", "runtime/engine/sparse",
	},

	// The package of actions is the executor's side of OpenWhisk; checks of a cluster are callers of service.
	"deploy":              {"executor"},
	"deploy/gpu":          {},
	"deploy/clusterfacts": {"internal/files"},
	"deploy/image":        {},
	"deploy/doctor":       {"executor", "deploy/clusterfacts", "service"},
	"deploy/verify":       {"controller/jobfile", "executor", "service"},
	"examples/embed":      {"controller/jobfile", "service"},
	// Support of tests and benches: no part of the product imports it, only a build with the tag emulated.
	"internal/test/deploytest":  {"actions/serve", "executor", "platform", "runtime/engine/backends"},
	"internal/test/emulated":    {"runtime/engine/cuda/driver", "runtime/engine/cuda/kernel"},
	"internal/test/enginetest":  {"model", "dataset", "runtime/engine", "runtime/engine/footprint"},
	"internal/test/faults":      {"internal/safetensors"},
	"internal/test/historytest": {"history"},
	"internal/test/onnxtest":    {"dataset", "internal/export", "model", "runtime/engine", "runtime/engine/native"},
	"internal/test/transcripts": {},
	"internal/test/golden":      {},
	"internal/test/rehearse":    {"scheduler", "scheduler/sim"},
	"internal/test/race":        {},
	"internal/test/wait":        {},
	"internal/test/jsonshape":   {"internal/test/golden"},
	"examples/policy":           {"scheduler", "scheduler/sim"},
}

// owners is where a third party's packages may be imported; those not listed are free.
var owners = map[string][]string{
	"github.com/apache/openwhisk-client-go":  {"executor"},
	"github.com/redis/go-redis":              {"aggregator"},
	"github.com/alicebob/miniredis":          {"aggregator/embedded"},
	"github.com/go-kivik/kivik":              {"history"},
	"go.etcd.io/bbolt":                       {"history/couchlite", "platform"},
	"github.com/google/go-containerregistry": {"deploy/image"},
	"github.com/aws":                         {"internal/blobs"},
	"github.com/zalando/go-keyring":          {"internal/secrets"},
	"gorgonia.org/gorgonia":                  {"runtime/engine/gorgonia", "examples/gorgonia"},
	"gorgonia.org/tensor":                    {"runtime/engine/gorgonia", "examples/gorgonia"},
	"gorgonia.org/cu":                        {"runtime/engine/cuda/device"},
	"github.com/urfave/cli":                  {"internal/cli"},
	"github.com/chromedp":                    {}, // tests alone
	"github.com/cpuguy83/go-md2man":          {"internal/cli"},
	"github.com/itchyny/gojq":                {"internal/terminal"},
	"gonum.org/v1/plot":                      {"internal/plot"},
	"codeberg.org/go-fonts":                  {"internal/plot"},
	"github.com/parquet-go/parquet-go":       {"dataset/dense", "internal/export"},
	"golang.org/x/image":                     {"dataset/dense", "internal/plot"},
	"golang.org/x/text":                      {"dataset/text"},
	"go.yaml.in/yaml":                        {"controller/jobfile", "internal/cli", "deploy", "internal/terminal"},
}

type importEdge struct{ from, file, path string }

// imports reads the imports of every file that is no test.
func imports(t *testing.T) []importEdge {
	t.Helper()
	var edges []importEdge
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." &&
			(strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools" || d.Name() == "gen"):
			return filepath.SkipDir
		case d.IsDir() && path != "." && isModule(path):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			edges = append(edges, importEdge{filepath.ToSlash(filepath.Dir(path)), path, name})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return edges
}

// isModule says whether a folder is a module of its own: another program's build, not of this house.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func allowed(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		base, below := strings.CutSuffix(p, "...")
		ofTests := strings.HasPrefix(folder, "internal/test/") && base == "internal/"
		return p == folder || below && !ofTests && strings.HasPrefix(folder+"/", base)
	})
}

func TestImportsFollowTheHouse(t *testing.T) {
	seen := 0
	for _, e := range imports(t) {
		rule, known := house[e.from]
		if !known {
			t.Errorf("%s: folder %q is not in the table of the house: decide what it may import", e.file, e.from)
			continue
		}
		folder, ours := strings.CutPrefix(e.path, module+"/")
		if ours {
			seen++
		}
		if ours && !allowed(rule, folder) {
			t.Errorf("%s: %s may not import %s", e.file, e.from, folder)
		}
	}
	if seen == 0 {
		t.Error("no import of our own was seen: the test does not look")
	}
}

func TestThirdPartiesStayWithTheirOwner(t *testing.T) {
	for _, e := range imports(t) {
		for prefix, folders := range owners {
			if strings.HasPrefix(e.path, prefix) && !slices.Contains(folders, e.from) {
				t.Errorf("%s: %s belongs to %v", e.file, e.path, folders)
			}
		}
	}
}

func TestRootPackageDoesNoIO(t *testing.T) {
	for _, e := range imports(t) {
		if e.from != "." {
			continue
		}
		if first, _, _ := strings.Cut(e.path, "/"); strings.Contains(first, ".") ||
			slices.Contains([]string{"os", "net", "io/ioutil", "os/exec"}, e.path) {
			t.Errorf("%s imports %s: the vocabulary is pure", e.file, e.path)
		}
	}
}
