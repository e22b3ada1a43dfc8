// Command mutate measures what the tests of a package notice. It changes one place of the code at a time: an operator,
// a bound, a condition, or an error that is returned. Then it runs the package's tests. A change that no test fails on,
// a survivor, shows a missing test or code that has no effect.
//
// The changed file is an overlay of the build: no file of the repository changes. The seed draws the places, as many in
// each package. Each test runs first without a change, alone: it must pass, and it tells the code that it reaches. A
// change is tried with the tests that reach it, the fastest first. A change that no test reaches has survived at once.
// So the share of noticed changes is a lower bound. A test whose child process reaches the code is not counted, nor is
// a test of drawn cases that reaches the code only with other draws.
//
// Some changes have no effect that a test could see: the file equal.txt lists them, with reasons. They are not drawn.
// With -only all changes of some lines of a package are tried, for instance those of survivors that have tests since.
//
//	go -C tools run ./mutate -root .. -n 40 -seed 1
//	go -C tools run ./mutate -root .. -only executor/wait.go:78
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	only := flag.String("only", "", "FILE:LINE, more with commas: try all changes of these lines, and no others")
	flag.Parse()
	if err := start(*root, strings.Split(*packages, ","), *only, *n, *seed, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// tally counts the changes of a package.
type tally struct{ places, tried, killed int }

// start draws from all packages, or tries the changes of some lines.
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
	lines := strings.Split(only, ",")
	name := filepath.Dir(lines[0])
	all, err := candidates(root, []string{name})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutant) bool {
		return !slices.Contains(lines, fmt.Sprintf("%s:%d", m.file, m.line))
	})
	if len(all) == 0 {
		return fmt.Errorf("%s has nothing to change: name a line with an operator, a condition or a returned error, "+
			"for instance executor/wait.go:78", only)
	}
	tests, err := reach(root, scratch, name)
	if err == nil {
		_, err = try(root, scratch, tests, all, len(all))
	}
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
	tests, err := reach(root, scratch, name)
	if err != nil {
		return t, err
	}
	draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it draws samples
	draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return try(root, scratch, tests, all, n)
}

// try tests the first n changes that compile.
func try(root, scratch string, tests []topTest, all []mutant, n int) (t tally, err error) {
	t.places = len(all)
	for _, m := range all {
		if t.tried == n {
			break
		}
		began, reaching := time.Now(), m.reaching(tests)
		result, err := test(root, scratch, m, reaching)
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
		why := fmt.Sprintf("%d tests reach it", len(reaching))
		if len(reaching) == 0 {
			why = "no test reaches it"
		}
		fmt.Printf("survived, %s: %s\n", why, m)
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

// test runs tests of a changed package, the fastest first.
func test(root, scratch string, m mutant, tests []topTest) (result, error) {
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
	if out, err := compile(pkg, binary, "-overlay", overlay); err != nil {
		if strings.Contains(out, m.file[strings.LastIndex(m.file, "/")+1:]) || strings.Contains(out, "changed.go") {
			return invalid, nil
		}
		return 0, fmt.Errorf("build the tests of %s: %w\n%s", m, err, out)
	}
	for _, group := range groups(tests) {
		if result, err := runTests(pkg, scratch, binary, group); result != survived || err != nil {
			return result, err
		}
	}
	return survived, nil
}

// compile builds the tests of a folder, without what debuggers read.
func compile(folder, binary string, options ...string) (output string, err error) {
	build := exec.Command("go", append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}, options...)...)
	build.Dir = folder
	out, err := build.CombinedOutput()
	return string(out), err
}

// outputFile has what the tests that ran last have printed.
const outputFile = "output"

// runTests runs tests of a folder until one fails. What they leave running or in the temporary folder is removed.
func runTests(folder, scratch, binary string, tests []topTest, options ...string) (result, error) {
	temp, err := os.MkdirTemp(scratch, "")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	text, err := os.ReadFile(binary)
	if err != nil {
		return 0, err
	}
	if bytes.Contains(text, []byte("rapid.shrinktime")) { // no small input is needed, and none may stay for later runs
		options = append(options, "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	names, limit := make([]string, len(tests)), 20*time.Second
	for i, t := range tests {
		names[i], limit = t.name, limit+5*t.took
	}
	run := exec.Command(binary, append(options, "-test.failfast", "-test.timeout", limit.String(),
		"-test.run", "^("+strings.Join(names, "|")+")$")...)
	run.Dir, run.Env = folder, append(os.Environ(), "TMPDIR="+temp)
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := os.Create(filepath.Join(scratch, outputFile))
	if err != nil {
		return 0, err
	}
	defer said.Close()
	run.Stdout, run.Stderr = said, said
	if err := run.Start(); err != nil {
		return 0, err
	}
	err = run.Wait()
	_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL) //nolint:errcheck // servers that the tests started; mostly none
	if err != nil {
		return noticed, nil
	}
	return survived, nil
}

// topTest is a test, example or fuzz target of a package. It ran alone once, for took, and reached some of the blocks.
type topTest struct {
	name   string
	took   time.Duration
	blocks []block // all of the package
}

// block is a piece of code that runs as a whole, from a line and column to others.
type block struct {
	file     string // without its folder
	from, to [2]int
	reached  bool
}

var topName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\w*$`)

// reach runs each test of a package alone. It returns an error that names the first one that fails.
func reach(root, scratch, name string) ([]topTest, error) {
	folder, binary, profile := filepath.Join(root, name), filepath.Join(scratch, "test"), filepath.Join(scratch, "profile")
	if out, err := compile(folder, binary, "-cover", "-covermode=set"); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", name, err, out)
	}
	list := exec.Command(binary, "-test.list", ".")
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", name, err)
	}
	var tests []topTest
	for _, name := range topName.FindAllString(string(out), -1) {
		t, began := topTest{name: name, took: time.Minute}, time.Now()
		switch result, err := runTests(folder, scratch, binary, []topTest{t}, "-test.coverprofile", profile); {
		case err != nil:
			return nil, err
		case result != survived:
			said, _ := os.ReadFile(filepath.Join(scratch, outputFile)) //nolint:errcheck // it is more than the error
			return nil, fmt.Errorf("%s of %s fails without any change: make it pass first\n%s", name,
				filepath.Base(folder), said)
		}
		t.took = time.Since(began)
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		t.blocks = blocks(string(text))
		tests = append(tests, t)
	}
	slices.SortStableFunc(tests, func(a, b topTest) int { return cmp.Compare(a.took, b.took) })
	return tests, nil
}

// blocks reads a profile. A line is as "module/package/file.go:7.13,9.2 1 0": the last number is 0 if it did not run.
func blocks(profile string) []block {
	var all []block
	for line := range strings.Lines(profile) {
		var b block
		var statements, runs int
		path, rest, _ := strings.Cut(line, ":")
		b.file = filepath.Base(path)
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from[0], &b.from[1], &b.to[0], &b.to[1], &statements,
			&runs); n == 6 {
			b.reached = runs > 0
			all = append(all, b)
		}
	}
	return all
}

// reaching returns the tests that run the changed code. The condition of a case is in no block: the tests of its whole
// function count. A declaration without blocks, such as a constant, concerns all tests.
func (m mutant) reaching(tests []topTest) []topTest {
	at := [2]int{m.line, m.col}
	for _, around := range []func(b block) bool{
		func(b block) bool { return slices.Compare(b.from[:], at[:]) <= 0 && slices.Compare(at[:], b.to[:]) < 0 },
		func(b block) bool { return m.within[0] <= b.from[0] && b.to[0] <= m.within[1] },
	} {
		known, reaching := false, []topTest{}
		for _, t := range tests {
			reached := false
			for _, b := range t.blocks {
				if b.file == filepath.Base(m.file) && around(b) {
					known, reached = true, reached || b.reached
				}
			}
			if reached {
				reaching = append(reaching, t)
			}
		}
		if known {
			return reaching
		}
	}
	return tests
}

// groups splits tests, the fastest first: a group runs in one process, in an order of its own. So the first groups are
// short, and slow tests run only if the fast ones notice nothing.
func groups(tests []topTest) [][]topTest {
	var all [][]topTest
	sum, most := time.Duration(0), time.Second/3
	for _, t := range tests {
		if len(all) == 0 || sum+t.took > most {
			all, sum, most = append(all, nil), 0, 3*most
		}
		last := len(all) - 1
		all[last], sum = append(all[last], t), sum+t.took
	}
	return all
}
