package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func texts(t *testing.T) map[string]string {
	t.Helper()
	texts, err := generate()
	if err != nil || len(texts) != 4 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	return texts
}

// The assembly in the tree is what the generator in the tree writes.
func TestAssemblyIsGenerated(t *testing.T) {
	for name, want := range texts(t) {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what gen writes: run go generate", name)
		}
	}
}

// What is written goes where it is asked for.
func TestFilesAreWritten(t *testing.T) {
	folder := t.TempDir()
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	for name, want := range texts(t) {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if write(filepath.Join(folder, "missing")) == nil {
		t.Error("a folder that is not there was written to")
	}
}

// AVX2 and arm64 have the same kernels, except those of sparse entries, which only amd64 has.
func TestEveryMachineHasEveryKernel(t *testing.T) {
	all := texts(t)
	names := func(file, suffix string) (out []string) {
		for _, name := range regexp.MustCompile(`(?m)^TEXT ·(\w+?)_?`+suffix+`\(`).FindAllStringSubmatch(all[file], -1) {
			out = append(out, name[1])
		}
		slices.Sort(out)
		return out
	}
	missing := func(from, in []string) []string {
		return slices.DeleteFunc(from, func(name string) bool { return slices.Contains(in, name) })
	}
	amd64, arm64 := names("kernels_amd64.s", "256"), names("kernels_arm64.s", "Neon")
	if m := missing(slices.Clone(arm64), amd64); len(m) > 0 {
		t.Errorf("amd64 has no %v", m)
	}
	want := []string{"addEntries", "addEntriesOnes", "changes", "changesSent", "entrySums", "entrySumsOnes", "exactSquares"}
	if m := missing(amd64, arm64); !slices.Equal(m, want) {
		t.Errorf("arm64 has no %v, want only %v to be missing", m, want)
	}
}

// Every function is declared once.
func TestFunctionsAreDeclared(t *testing.T) {
	all := texts(t)
	for _, machine := range []string{"amd64", "arm64"} {
		text, stubs := all["kernels_"+machine+".s"], all["stubs_"+machine+".go"]
		names := regexp.MustCompile(`(?m)^TEXT ·(\w+)`).FindAllStringSubmatch(text, -1)
		for _, name := range names {
			if n := strings.Count(stubs, "\nfunc "+name[1]+"(args "); n != 1 {
				t.Errorf("%s is declared %d times", name[1], n)
			}
		}
		if declared := strings.Count(stubs, "\n//go:noescape\n"); declared != len(names) || declared < 40 {
			t.Errorf("%s: %d functions, %d declared", machine, len(names), declared)
		}
	}
}
