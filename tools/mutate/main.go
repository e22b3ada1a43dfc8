// Command mutate measures what the tests of a package notice. It changes one place of the code at a time: an operator,
// a bound, a condition, or an error that is returned. Then it runs the package's tests. A change that no test fails on,
// a survivor, shows a missing test or code that has no effect.
//
// The changed file is an overlay of the build: no file of the repository changes. The seed draws the places, as many in
// each package. The tests run first without a change: they must pass, and a change may take four times as long.
//
// Some changes have no effect that a test could see: the file equal.txt lists them, with reasons. They are not drawn.
// With -only all changes of one line are tried, for instance those of a survivor that has a test since.
//
//	go -C tools run ./mutate -root .. -n 40 -seed 1
//	go -C tools run ./mutate -root .. -only executor/wait.go:78
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	packages := flag.String("packages", "controller,scheduler,aggregator,executor,estimator", "packages, with commas")
	n := flag.Int("n", 40, "how many changes to try")
	seed := flag.Uint64("seed", 1, "draws the places")
	jobs := flag.Int("jobs", 2, "how many packages to test at once")
	only := flag.String("only", "", "FILE:LINE: try all changes of this line, and no others")
	flag.Parse()
	if err := start(*root, strings.Split(*packages, ","), *only, *n, *seed, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// tally counts the changes of a package.
type tally struct{ places, tried, killed int }

// start draws from all packages, or tries the changes of one line.
func start(root string, packages []string, only string, n int, seed uint64, jobs int) error {
	if only == "" {
		return run(root, packages, n, seed, jobs)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "disdel-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	all, err := candidates(root, []string{filepath.Dir(only)})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return fmt.Sprintf("%s:%d", m.file, m.line) != only })
	if len(all) == 0 {
		return fmt.Errorf("%s has nothing to change: name a line with an operator, a condition or a returned error, "+
			"for instance executor/wait.go:78", only)
	}
	_, err = try(root, scratch, all, len(all), 10*time.Minute)
	return err
}

func run(root string, packages []string, n int, seed uint64, jobs int) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "disdel-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tallies, failures := make([]tally, len(packages)), make([]error, len(packages))
	free := make(chan struct{}, jobs)
	var all sync.WaitGroup
	for i, name := range packages {
		share := (n + len(packages) - 1 - i) / len(packages)
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			own := filepath.Join(scratch, name)
			if failures[i] = os.Mkdir(own, 0o700); failures[i] == nil {
				tallies[i], failures[i] = measure(root, own, name, share, seed)
			}
		})
	}
	all.Wait()
	var sum tally
	for i, t := range tallies {
		fmt.Printf("figure mutants_killed_pct_%s %.1f %% of %d\n", packages[i], percent(t), t.tried)
		sum.places, sum.tried, sum.killed = sum.places+t.places, sum.tried+t.tried, sum.killed+t.killed
	}
	fmt.Printf("figure mutants %d of %d places, seed %d\nfigure mutants_killed_pct %.1f\n", sum.tried, sum.places, seed,
		percent(sum))
	return errors.Join(failures...)
}

func percent(t tally) float64 { return 100 * float64(t.killed) / float64(max(1, t.tried)) }

// measure tries n drawn changes of a package.
func measure(root, scratch, name string, n int, seed uint64) (t tally, err error) {
	all, err := candidates(root, []string{name})
	if err != nil || len(all) == 0 {
		return t, err
	}
	began := time.Now()
	switch result, err := test(root, scratch, mutant{file: all[0].file}, 30*time.Minute); {
	case err != nil:
		return t, err
	case result != survived:
		return t, fmt.Errorf("the tests of %s fail without any change: make them pass first", name)
	}
	draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it draws samples
	draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return try(root, scratch, all, n, max(30*time.Second, 4*time.Since(began)))
}

// try tests the first n changes that compile.
func try(root, scratch string, all []mutant, n int, limit time.Duration) (t tally, err error) {
	t.places = len(all)
	for _, m := range all {
		if t.tried == n {
			break
		}
		began := time.Now()
		result, err := test(root, scratch, m, limit)
		if err != nil {
			return t, err
		}
		if result == invalid {
			continue
		}
		t.tried++
		if result == noticed {
			t.killed++
			fmt.Fprintf(os.Stderr, "killed: %s (%.0f s)\n", m, time.Since(began).Seconds())
			continue
		}
		fmt.Printf("survived: %s\n", m)
	}
	return t, nil
}

// candidates returns the changes of the packages that this platform builds, in the order of the files, without those
// of equal.txt.
func candidates(root string, packages []string) ([]mutant, error) {
	var all []mutant
	equal := equalChanges()
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
			all = append(all, slices.DeleteFunc(found, func(m mutant) bool { return equal[m.key()] != "" })...)
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
	return runTests(pkg, scratch, binary, limit)
}

// runTests runs the tests of a folder until one fails. What they leave running or in the temporary folder is removed.
func runTests(folder, scratch, binary string, limit time.Duration) (result, error) {
	temp, err := os.MkdirTemp(scratch, "")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	inputs := filepath.Join(folder, "testdata", "rapid") // that a change failed on: they say nothing about the next one
	if _, err := os.Stat(inputs); os.IsNotExist(err) {
		defer os.RemoveAll(inputs)
	}
	tests := exec.Command(binary, "-test.failfast", "-test.timeout", limit.String())
	tests.Dir, tests.Env = folder, append(os.Environ(), "TMPDIR="+temp)
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := tests.Start(); err != nil {
		return 0, err
	}
	err = tests.Wait()
	_ = syscall.Kill(-tests.Process.Pid, syscall.SIGKILL) //nolint:errcheck // servers that the tests started; mostly none
	if err != nil {
		return noticed, nil
	}
	return survived, nil
}
