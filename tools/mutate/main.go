// Command mutate measures what the tests of a package notice. It changes one place of the code at a time: an operator,
// a bound, a condition, or an error that is returned. Then it runs the package's tests. A change that no test fails on,
// a survivor, shows a missing test or code that has no effect.
//
// The changed file is an overlay of the build: no file of the repository changes. The seed draws the places.
//
//	go -C tools run ./mutate -root .. -n 40 -seed 1
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	packages := flag.String("packages", "controller,scheduler,aggregator,executor,estimator", "packages, with commas")
	n := flag.Int("n", 40, "how many changes to try")
	seed := flag.Uint64("seed", 1, "draws the places")
	limit := flag.Duration("limit", 5*time.Minute, "longest time of the tests of a change; longer counts as noticed")
	flag.Parse()
	if err := run(*root, strings.Split(*packages, ","), *n, *seed, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(root string, packages []string, n int, seed uint64, limit time.Duration) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	all, err := candidates(root, packages)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "disdel-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it draws samples
	draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	tried, killed := 0, 0
	for _, m := range all {
		if tried == n {
			break
		}
		switch result, err := test(root, scratch, m, limit); {
		case err != nil:
			return err
		case result == survived:
			fmt.Printf("survived: %s\n", m)
			tried++
		case result == noticed:
			fmt.Fprintf(os.Stderr, "killed: %s\n", m)
			killed++
			tried++
		}
	}
	fmt.Printf("figure mutants %d of %d places, seed %d\nfigure mutants_killed_pct %.1f\n", tried, len(all), seed,
		100*float64(killed)/float64(max(1, tried)))
	return nil
}

// candidates returns all changes of the packages that this platform builds, in the order of the files.
func candidates(root string, packages []string) ([]mutant, error) {
	var all []mutant
	for _, name := range packages {
		folder := filepath.Join(root, name)
		p, err := build.ImportDir(folder, 0)
		if err != nil {
			return nil, err
		}
		slices.Sort(p.GoFiles)
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(folder, f))
			if err != nil {
				return nil, err
			}
			found, err := mutants(name+"/"+f, text)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

type result int

const (
	invalid  result = iota // it does not compile
	noticed                // a test fails
	survived               // all tests pass
)

// test runs the tests of a changed package.
func test(root, scratch string, m mutant, limit time.Duration) (result, error) {
	path := filepath.Join(root, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	changed, overlay, binary := filepath.Join(scratch, "changed.go"), filepath.Join(scratch, "overlay.json"),
		filepath.Join(scratch, "test")
	table, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return 0, err
	}
	for name, content := range map[string][]byte{changed: m.apply(text), overlay: table} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return 0, err
		}
	}
	pkg := filepath.Dir(path)
	compile := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	compile.Dir = pkg
	if out, err := compile.CombinedOutput(); err != nil {
		if strings.Contains(string(out), m.file[strings.LastIndex(m.file, "/")+1:]) ||
			strings.Contains(string(out), "changed.go") {
			return invalid, nil
		}
		return 0, fmt.Errorf("build the tests of %s: %w\n%s", m, err, out)
	}
	run := exec.Command(binary, "-test.failfast", "-test.timeout", limit.String())
	run.Dir = pkg
	if run.Run() != nil {
		return noticed, nil
	}
	return survived, nil
}
