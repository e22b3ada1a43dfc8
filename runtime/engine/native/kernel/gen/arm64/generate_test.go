package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The assembly in the tree is what the generator in the tree writes.
func TestAssemblyIsGenerated(t *testing.T) {
	text, stubs := generate()
	for name, want := range map[string]string{assemblyFile: text, stubsFile: stubs} {
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what gen/arm64 writes: run go generate", name)
		}
	}
}

// What is written goes where it is asked for.
func TestFilesAreWritten(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	text, stubs := generate()
	for name, want := range map[string]string{assemblyFile: text, stubsFile: stubs} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if write(filepath.Join(folder, "missing")) == nil {
		t.Error("a folder that is not there was written to")
	}
}

// Every function is declared once, and labels are its own.
func TestFunctionsAreDeclared(t *testing.T) {
	text, stubs := generate()
	names := 0
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "TEXT ·")
		if !ok {
			continue
		}
		names++
		name, _, _ = strings.Cut(name, "(")
		if n := strings.Count(stubs, "\nfunc "+name+"(args "); n != 1 {
			t.Errorf("%s is declared %d times", name, n)
		}
	}
	if declared := strings.Count(stubs, "\n//go:noescape\n"); declared != names || names < 40 {
		t.Errorf("%d functions, %d declared", names, declared)
	}
}
