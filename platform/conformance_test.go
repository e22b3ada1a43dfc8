package platform

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
)

// swagger reads OpenWhisk's own description of its API; it lies beside the repository.
func swagger(t *testing.T) *openapi3.T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "openwhisk-apiv1-swagger.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("OpenWhisk's Swagger description is not beside the repository, in ../shared/data")
	}
	if err != nil {
		t.Fatal(err)
	}
	var old openapi2.T
	if err := json.Unmarshal(data, &old); err != nil {
		t.Fatal(err)
	}
	doc, err := openapi2conv.ToV3(&old)
	if err != nil {
		t.Fatal(err)
	}
	if err := openapi3.NewLoader().ResolveRefsIn(doc, nil); err != nil {
		t.Fatal(err)
	}
	return doc
}

// described finds the operation of the description that a request is, by its path's template.
func described(doc *openapi3.T, method, path string) (string, *openapi3.Operation) {
	path, _, _ = strings.Cut("/namespaces/"+path, "?")
	path = strings.TrimSuffix(path, "/")
	param := regexp.MustCompile(`\{[^}]*\}`)
	for template, item := range doc.Paths.Map() {
		pattern := "^" + param.ReplaceAllString(strings.ReplaceAll(template, ".", `\.`), "[^/]+") + "$"
		if op := item.GetOperation(method); op != nil && regexp.MustCompile(pattern).MatchString(path) {
			return method + " " + template, op
		}
	}
	return "", nil
}

// conforms checks a reply against the description; errors have one form everywhere.
func conforms(t *testing.T, doc *openapi3.T, op *openapi3.Operation, step string, got *replied) {
	t.Helper()
	var schema *openapi3.SchemaRef
	if r := op.Responses.Status(got.status); r == nil {
		t.Errorf("%s: the description knows no status %d", step, got.status)
	} else if c := r.Value.Content.Get("application/json"); c != nil {
		schema = c.Schema
	}
	if schema == nil && got.status >= 400 && !strings.Contains(got.body, "activationId") {
		schema = doc.Components.Schemas["ErrorMessage"]
	}
	if schema == nil {
		return
	}
	var body any
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Errorf("%s: %v in %q", step, err, got.body)
		return
	}
	if err := schema.Value.VisitJSON(body); err != nil {
		t.Errorf("%s: %v\nin %s", step, err, got.body)
	}
}

// Every verb of the API answers as OpenWhisk's own description says; $ID is the last activation's id.
func TestEveryVerbAnswersAsOpenWhiskDescribesIt(t *testing.T) {
	doc := swagger(t)
	kind := Kind{Command: []string{os.Args[0], "serve", "{listen}"}}
	p := start(t, func(c *Config) { c.Kinds = map[string]Kind{"nodejs:20": kind} })
	exec := `"exec":{"kind":"nodejs:default","code":"x","main":"mirror"}`
	seen := map[string]bool{}
	id := ""
	for _, s := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "", "", 200},
		{"GET", "_/limits", "", 200},
		{"PUT", "_/packages/p", `{"publish":true,"version":"1.0","parameters":[{"key":"a","value":1}],"annotations":[{"key":"description","value":"x"}]}`, 200},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"_","name":"p"}}`, 200},
		{"PUT", "_/packages/b", `{}`, 409},
		{"PUT", "_/actions/p/a", `{` + exec +
			`,"limits":{"memory":128,"instances":2},"annotations":[{"key":"web-export","value":true}]}`, 200},
		{"PUT", "_/actions/p/a", `{` + exec + `}`, 409},
		{"PUT", "_/actions/a", `{` + exec + `,"limits":{"memory":128}}`, 200},
		{"PUT", "_/actions/c", `{"exec":{"kind":"cobol"}}`, 400},
		{"PUT", "_/actions/a?overwrite=true", `{"delAnnotations":["x"]}`, 200},
		{"PUT", "_/actions/s", `{"exec":{"kind":"sequence","components":["/_/a","/_/b/a"]}}`, 200},
		{"GET", "_/packages", "", 200},
		{"GET", "_/packages/p", "", 200},
		{"GET", "_/packages/b", "", 200},
		{"GET", "_/packages/none", "", 404},
		{"GET", "_/actions", "", 200},
		{"GET", "_/actions/a", "", 200},
		{"GET", "_/actions/a?code=false", "", 200},
		{"GET", "_/actions/b/a", "", 200},
		{"GET", "_/actions/s", "", 200},
		{"POST", "_/actions/a?blocking=true", `{"x":1}`, 200},
		{"GET", "_/activations/$ID", "", 200},
		{"GET", "_/activations/$ID/logs", "", 200},
		{"GET", "_/activations/$ID/result", "", 200},
		{"POST", "_/actions/b/a?blocking=true&result=true", `{}`, 200},
		{"POST", "_/actions/a", `{}`, 202},
		{"POST", "_/actions/a?blocking=true", `{"error":"no"}`, 502},
		{"POST", "_/actions/s?blocking=true", `{}`, 200},
		{"GET", "_/activations/$ID", "", 200},
		{"POST", "_/actions/none", `{}`, 404},
		{"PUT", "_/triggers/t", `{"parameters":[{"key":"a","value":1}]}`, 200},
		{"POST", "_/triggers/t", `{}`, 204},
		{"PUT", "_/rules/r", `{"trigger":"/_/t","action":"/_/p/a"}`, 200},
		{"PUT", "_/rules/r", `{}`, 409},
		{"PUT", "_/rules/x", `{}`, 400},
		{"GET", "_/rules", "", 200},
		{"GET", "_/rules/r", "", 200},
		{"GET", "_/triggers", "", 200},
		{"GET", "_/triggers/t", "", 200},
		{"POST", "_/triggers/t", `{"b":2}`, 202},
		{"GET", "_/activations/$ID", "", 200},
		{"GET", "_/activations", "", 200},
		{"GET", "_/activations?docs=true", "", 200},
		{"POST", "_/rules/r", `{"status":"inactive"}`, 200},
		{"GET", "_/rules/r", "", 200},
		{"POST", "_/rules/r", `{"status":"x"}`, 400},
		{"DELETE", "_/rules/r", "", 200},
		{"DELETE", "_/rules/r", "", 404},
		{"DELETE", "_/triggers/t", "", 200},
		{"POST", "_/triggers/t", `{}`, 404},
		{"DELETE", "_/packages/p", "", 409},
		{"DELETE", "_/actions/p/a", "", 200},
		{"DELETE", "_/actions/a", "", 200},
		{"DELETE", "_/packages/b", "", 200},
		{"DELETE", "_/packages/p", "", 200},
	} {
		path := strings.ReplaceAll(s.path, "$ID", id)
		got := ask(t, p, p.AuthKey(), s.method, path, s.body)
		step := s.method + " " + path
		if got.status != s.status {
			t.Errorf("%s: %d %s, want %d", step, got.status, got.body, s.status)
		}
		if next := got.header.Get("x-openwhisk-activation-id"); next != "" {
			id = next
		}
		name, op := described(doc, s.method, path)
		if op == nil {
			t.Errorf("%s: not described", step)
			continue
		}
		seen[name] = true
		conforms(t, doc, op, step, got)
		if bare := ask(t, p, "", s.method, path, s.body); bare.status != 401 {
			t.Errorf("%s without a key: %d", step, bare.status)
		}
	}
	for template, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if name := method + " " + template; !seen[name] && !strings.HasPrefix(template, "/web") {
				t.Errorf("%s was not tried", name)
			}
		}
	}
}
