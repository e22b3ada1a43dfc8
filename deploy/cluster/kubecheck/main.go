// Command kubecheck reads Kubernetes manifests strictly, as the API's own types have them: an unknown field, a field
// twice, a quantity or a number that is none are errors. It is a module of its own, so that nothing else has to know
// Kubernetes.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	split "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// kinds are those that a manifest may be of.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                 func() any { return &apps.Deployment{} },
	"apps/v1 StatefulSet":                func() any { return &apps.StatefulSet{} },
	"v1 ConfigMap":                       func() any { return &core.ConfigMap{} },
	"v1 LimitRange":                      func() any { return &core.LimitRange{} },
	"v1 Namespace":                       func() any { return &core.Namespace{} },
	"v1 Pod":                             func() any { return &core.Pod{} },
	"v1 Service":                         func() any { return &core.Service{} },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":      func() any { return &policy.PodDisruptionBudget{} },
}

func main() {
	var all error
	for _, name := range os.Args[1:] {
		all = errors.Join(all, check(name))
	}
	if all != nil {
		fmt.Fprintln(os.Stderr, all)
		os.Exit(1)
	}
}

// check reads every document of a file.
func check(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	documents := split.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = strict(document)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func strict(document []byte) error {
	var head meta.TypeMeta
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	kind := head.APIVersion + " " + head.Kind
	make, known := kinds[kind]
	if !known {
		return fmt.Errorf("no kind %q is known here", kind)
	}
	return yaml.UnmarshalStrict(document, make())
}
