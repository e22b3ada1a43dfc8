package disdel_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
	order := []string{
		"apiVersion", "kind", "metadata", "model", "data", "training", "distribution", "resources",
		"reliability", "output",
	}
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
	page.WriteString("# The HTTP API\n\n`/openapi.json` of a server describes it (OpenAPI 3.1), with the bodies of " +
		"requests and answers.\n[The server](server.md#the-api) has the rules for requests and errors.\n" +
		"This page is made from the program's own description.\n\n" +
		"A role may do what the roles before it may: `read`, `submit`, `admin`. A request without a role " +
		"needs no token.\n\n" +
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

// sentenceEnd ends the part of a package comment that the list of packages has.
var sentenceEnd = regexp.MustCompile(`[.:;]\s`)

// docs/explanation/packages.md has the beginning of every package comment: go test . -run TestTheListOfPackages -update
func TestTheListOfPackagesIsCurrent(t *testing.T) {
	comments := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			_, other := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (other == nil || name == "bin" || name == "testdata" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		comments[folder] = max(comments[folder], packageComment(file))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# Packages: what lives where\n\n[Architecture](architecture.md) follows a job through " +
		"these packages. " +
		"`arch_test.go` says which package may import\nwhich. Other folders: `bench` (programs that measure, a module of " +
		"its own), `docs`,\n`examples`, `scripts` (what `make` runs), " +
		"`tools`.\n\n" +
		"This page is made from the package comments; `go doc ./FOLDER` prints the rest of each.\n\n" +
		"| folder | the package or command |\n|---|---|\n")
	for _, folder := range slices.Sorted(maps.Keys(comments)) {
		if comments[folder] == "" {
			t.Errorf("%s has no package comment", folder)
		}
		fmt.Fprintf(&page, "| `%s` | %s |\n", folder, cell(comments[folder]))
	}
	golden.Same(t, "docs/explanation/packages.md", page.String(), *update)
}

// packageComment is the beginning of a package comment without the words "Package NAME" or "Command NAME".
func packageComment(file *ast.File) string {
	text := strings.Join(strings.Fields(file.Doc.Text()), " ")
	if end := sentenceEnd.FindStringIndex(text + " "); end != nil {
		text = text[:end[0]]
	}
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 || words[0] != "Package" && words[0] != "Command" {
		return ""
	}
	return words[2]
}
