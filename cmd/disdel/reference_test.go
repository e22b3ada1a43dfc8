package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/terminal"
)

// docs/reference/cli.md is what the program says of itself: go test ./cmd/disdel -run TestTheReferenceIsCurrent -update
func TestTheReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "cli.md")
	t.Setenv("DISDEL_HOME", "") // what a variable says is not the default
	want := commandline.Reference(newApp(terminal.New(nil, nil, nil)))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/cli.md is not what the program says (-program +page); run with -update\n%s", diff)
	}
}
