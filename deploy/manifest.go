package deploy

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
)

//go:embed manifest.yaml
var manifest []byte

// StandardManifest is the manifest of disdel's own actions, deploy/manifest.yaml.
func StandardManifest() []byte { return slices.Clone(manifest) }

// blackbox is the kind of actions with a container image.
const blackbox = "blackbox"

// file is a manifest of wskdeploy with actions of images and kinds.
type file struct {
	Packages map[string]struct {
		Version     string            `yaml:"version"`
		Annotations map[string]any    `yaml:"annotations"`
		Actions     map[string]action `yaml:"actions"`
	} `yaml:"packages"`
}

type action struct {
	Runtime string `yaml:"runtime"`
	Docker  string `yaml:"docker"`
	Code    string `yaml:"code"`
	Main    string `yaml:"main"`
	Limits  struct {
		Memory  int64 `yaml:"memorySize"` // MB
		Timeout int64 `yaml:"timeout"`    // ms
		Logs    int64 `yaml:"logSize"`    // MB
	} `yaml:"limits"`
	Annotations map[string]any `yaml:"annotations"`
}

// Options change a manifest for one cluster.
type Options struct {
	Package string // name of the package; "": the manifest's
	Image   string // container image of every action; "": the kinds that the manifest names
}

// Read parses a manifest. It returns Invalid for unknown keys: an action may have code, a kind or an image, and limits.
func Read(name string, text []byte, o Options) (executor.Deployment, error) {
	var f file
	bad := func(msg string, err error) (executor.Deployment, error) {
		return executor.Deployment{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "read manifest " + name, Msg: msg, Err: err,
			Hint: "deploy/manifest.yaml of disdel's source is an example; wskdeploy accepts other manifests too",
		}
	}
	if err := yaml.Load(text, &f, yaml.WithKnownFields()); err != nil {
		return bad("", err)
	}
	if len(f.Packages) != 1 {
		return bad(fmt.Sprintf("it has %d packages, but one is deployed at a time", len(f.Packages)), nil)
	}
	var d executor.Deployment
	for pkg, p := range f.Packages {
		version, ok := fullVersion(p.Version)
		if !ok {
			return bad(fmt.Sprintf("package %s: version %q is not of the form 1.2.3", pkg, p.Version), nil)
		}
		d = executor.Deployment{Package: pkg, Version: version, Annotations: p.Annotations}
		for _, action := range slices.Sorted(maps.Keys(p.Actions)) {
			one, why := parseAction(action, p.Actions[action], o)
			if why != "" {
				return bad(fmt.Sprintf("action %s: %s", action, why), nil)
			}
			d.Actions = append(d.Actions, one)
		}
	}
	if o.Package != "" {
		d.Package = o.Package
	}
	return d, nil
}

// fullVersion is a package's version as OpenWhisk answers it: "1.0" is 1.0.0. It returns "" for "", and false for a
// version that OpenWhisk refuses.
func fullVersion(text string) (whole string, ok bool) {
	if text == "" {
		return "", true
	}
	numbers := [3]int{}
	parts := strings.Split(text, ".")
	if len(parts) > len(numbers) {
		return "", false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return "", false
		}
		numbers[i] = int(n)
	}
	if numbers == [3]int{} {
		return "", false
	}
	return fmt.Sprintf("%d.%d.%d", numbers[0], numbers[1], numbers[2]), true
}

// parseAction is one action of a manifest, or why it is invalid.
func parseAction(name string, a action, o Options) (d executor.DeployedAction, why string) {
	d = executor.DeployedAction{
		Name: name, Kind: a.Runtime, Image: a.Docker, Main: a.Main, Code: a.Code,
		Memory:      disdel.Bytes(a.Limits.Memory) * disdel.MB,
		Timeout:     time.Duration(a.Limits.Timeout) * time.Millisecond,
		Logs:        disdel.Bytes(a.Limits.Logs) * disdel.MB,
		Annotations: a.Annotations,
	}
	if o.Image != "" {
		d.Image = o.Image
	}
	if d.Image != "" {
		d.Kind = blackbox
	}
	switch {
	case d.Kind == "":
		return d, "it names no runtime and no docker image"
	case d.Code == "" && d.Image == "":
		return d, "it has no code, which an action of a kind needs"
	case d.Memory < 0 || d.Timeout < 0 || d.Logs < 0:
		return d, "a limit is below 0"
	}
	return d, ""
}
