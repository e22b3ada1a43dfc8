package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// printSize prints how large the product is: all Go code but tests, test support and the modules beside it.
func printSize(root string, files []string) error {
	modules := modulesOf(files)
	var lines, count, longest, tests int
	var name string
	packages := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f, ".go") || inModule(f, modules) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			return err
		}
		n := bytes.Count(text, []byte("\n"))
		if strings.HasSuffix(f, "_test.go") || strings.HasPrefix(f, "internal/test/") || strings.HasPrefix(f, "test/") {
			tests += n
			continue
		}
		lines, count = lines+n, count+1
		if n > longest {
			longest, name = n, f
		}
		if dir := filepath.Dir(f); strings.HasPrefix(dir, "internal/") {
			packages[dir] = true
		}
	}
	glossary, err := glossaryRows(root)
	if err != nil {
		return err
	}
	fmt.Printf("figure product_lines %d lines of Go without tests, test support and modules beside it\n", lines)
	fmt.Printf("figure product_files %d files\n", count)
	fmt.Printf("figure longest_file %d lines, %s\n", longest, name)
	fmt.Printf("figure test_lines %d lines of Go\n", tests)
	fmt.Printf("figure internal_packages %d packages\n", len(packages))
	fmt.Printf("figure glossary_rows %d rows\n", glossary)
	return nil
}

// modulesOf lists the folders below the root that are modules of their own.
func modulesOf(files []string) (folders []string) {
	for _, f := range files {
		if dir := filepath.Dir(f); filepath.Base(f) == "go.mod" && dir != "." {
			folders = append(folders, dir+"/")
		}
	}
	return folders
}

func inModule(file string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool { return strings.HasPrefix(file, dir) })
}

// glossaryRows counts the words of the glossary.
func glossaryRows(root string) (rows int, err error) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/glossary.md"))
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| word |") {
			rows++
		}
	}
	return rows, err
}
