// Command house measures the repository for the people who read it. It prints the size of the product, and how plain
// the sentences of its comments, help and docs are, as lines "figure NAME VALUE UNIT". With -words it fails if a figure
// is above its limit in limits.txt, and prints the worst sentences.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	root := flag.String("root", ".", "`FOLDER` of the repository")
	words := flag.Bool("words", false, "check the sentences against the limits of tools/house/limits.txt")
	worst := flag.Int("worst", 20, "`NUMBER` of worst sentences to print with -words")
	flag.Parse()
	if err := run(*root, *words, *worst); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(root string, words bool, worst int) error {
	files, err := tracked(root)
	if err != nil {
		return err
	}
	if !words {
		return printSize(root, files)
	}
	sentences, err := allSentences(root, files)
	if err != nil {
		return err
	}
	banned, err := readBanned(filepath.Join(root, "tools/house/banned.txt"))
	if err != nil {
		return err
	}
	figures := measure(sentences, banned)
	for _, f := range figures {
		fmt.Printf("figure %s %s %s\n", f.name, strconv.FormatFloat(f.value, 'f', -1, 64), f.unit)
	}
	printWorst(sentences, banned, worst)
	return keepLimits(filepath.Join(root, "tools/house/limits.txt"), figures)
}

// tracked lists the files that git knows.
func tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Fields(string(out))
	return slices.DeleteFunc(files, func(f string) bool {
		_, err := os.Stat(filepath.Join(root, f))
		return err != nil // deleted, and not committed yet
	}), nil
}

// figure is one measured value.
type figure struct {
	name  string
	value float64
	unit  string
}

// keepLimits returns an error that names every figure above its limit. A limit that starts with ">" is a least value.
func keepLimits(path string, figures []figure) error {
	lines, err := readLines(path)
	if err != nil {
		return err
	}
	var broken []string
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("%s: %q is not NAME < NUMBER or NAME > NUMBER", path, line)
		}
		limit, err := strconv.ParseFloat(fields[2], 64)
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == fields[0] })
		if err != nil || i < 0 {
			return fmt.Errorf("%s: %q: no such figure, or no number", path, line)
		}
		c := cmp.Compare(figures[i].value, limit)
		if fields[1] == "<" && c > 0 || fields[1] == ">" && c < 0 {
			broken = append(broken, fmt.Sprintf("%s is %v, and the limit is %v", fields[0], figures[i].value, limit))
		}
	}
	if broken != nil {
		return fmt.Errorf("the words are not plain enough:\n  %s", strings.Join(broken, "\n  "))
	}
	return nil
}

// readLines reads the lines of a file without empty lines and comments (#).
func readLines(path string) (lines []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for in.Scan() {
		if line := strings.TrimSpace(in.Text()); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, in.Err()
}
