package disdel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/test/golden"
)

// property is a part of the job file's schema.
type property struct {
	Properties map[string]property `json:"properties"`
}

// readJSON reads a file that other tests hold against the program.
func readJSON(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// cell is a text that does not end a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// docs/reference/job-fields.md says what disdel explain says: go test . -run TestTheReferenceOfJobFields -update
func TestTheReferenceOfJobFieldsIsCurrent(t *testing.T) {
	var schema property
	readJSON(t, "controller/jobfile/schema.json", &schema)
	order := []string{"apiVersion", "kind", "metadata", "model", "data", "training", "distribution", "resources",
		"reliability", "output"}
	if len(order) != len(schema.Properties) {
		t.Errorf("the job file has %d sections: %v", len(schema.Properties), slices.Sorted(maps.Keys(schema.Properties)))
	}
	var page, list strings.Builder
	for _, section := range order {
		fmt.Fprintf(&list, "- [`%s`](#%s)\n", section, strings.ToLower(section))
		fmt.Fprintf(&page, "\n## %s\n\n| field | takes | meaning |\n|---|---|---|\n", section)
		writeFields(t, &page, section, schema.Properties[section])
	}
	golden.Same(t, "docs/reference/job-fields.md", "# Fields of the job file\n\nEvery field of a job file. "+
		"`disdel explain FIELD` prints the same, with an example.\n[The job file](job-file.md) explains how they work "+
		"together, and [layers](layers.md) has the kinds of `model.layers`.\n"+
		"This page is made from the program's own table.\n\n"+list.String()+page.String(), *update)
}

// writeFields writes a field and the fields below it as rows of a table.
func writeFields(t *testing.T, page *strings.Builder, path string, p property) {
	text, err := jobfile.Explain(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(text, "\n", 3)
	_, takes, _ := strings.Cut(lines[0], "  ")
	fmt.Fprintf(page, "| `%s` | %s | %s |\n", path, cell(takes), cell(strings.TrimSpace(lines[1])))
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		writeFields(t, page, path+"."+name, p.Properties[name])
	}
}

// operation is a request of openapi.json.
type operation struct {
	Summary    string `json:"summary"`
	Role       string `json:"x-role"`
	Parameters []struct {
		Name string `json:"name"`
		In   string `json:"in"`
	} `json:"parameters"`
}

// docs/reference/api.md is openapi.json as a table: go test . -run TestTheReferenceOfTheAPI -update
func TestTheReferenceOfTheAPIIsCurrent(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	readJSON(t, "service/api/openapi.json", &doc)
	var page strings.Builder
	page.WriteString("# The HTTP API\n\n`/openapi.json` of a server describes it (OpenAPI 3.1), with the bodies of requests " +
		"and answers.\n[The server](server.md#the-api) has the rules for requests and errors.\n" +
		"This page is made from the program's own description.\n\n" +
		"A role may do what the roles before it may: `read`, `submit`, `admin`. A request without a role needs no token.\n\n" +
		"| request | role | what it does | parameters |\n|---|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "delete"} {
			op, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			var parameters []string
			for _, p := range op.Parameters {
				if p.In != "path" {
					parameters = append(parameters, "`"+p.Name+"`")
				}
			}
			fmt.Fprintf(&page, "| `%s %s` | %s | %s | %s |\n", strings.ToUpper(method), path, op.Role, cell(op.Summary),
				strings.Join(parameters, ", "))
		}
	}
	golden.Same(t, "docs/reference/api.md", page.String(), *update)
}
