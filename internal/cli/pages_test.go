package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/disdel/disdel/examples"
)

var (
	// yamlBlock is a job file, or a part of one, with its name in its first line.
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n# ([a-z-]+\\.yaml)\n(.*?)^```$")
	shBlock   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
)

// docPages are the tutorials, how-to pages and reference pages, whose examples are run. A block of commands that begins
// with ```sh is run by testdata/tutorials.txtar or pages.txtar; one that begins with ```console needs servers, files or
// time that tests do not have.
func docPages() (paths []string, err error) {
	for _, kind := range []string{"tutorials", "how-to", "reference"} {
		found, err := filepath.Glob("../../docs/" + kind + "/*.md")
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no pages in docs")
	}
	return paths, nil
}

// pageExamples returns the job files of the pages by name, and the commands of each page by the name of a script.
func pageExamples() (jobs, scripts map[string]string, err error) {
	paths, err := docPages()
	if err != nil {
		return nil, nil, err
	}
	jobs, scripts = map[string]string{}, map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		found := yamlBlock.FindAllStringSubmatch(string(text), -1)
		if blocks := strings.Count(string(text), "\n```yaml\n"); blocks != len(found) {
			return nil, nil, fmt.Errorf("%s: %d of %d examples have a name in their first line", path, len(found), blocks)
		}
		for _, m := range found {
			if _, twice := jobs[m[1]]; twice {
				return nil, nil, fmt.Errorf("%s: another page has an example %s", path, m[1])
			}
			jobs[m[1]] = m[2]
		}
		var commands strings.Builder
		for _, m := range shBlock.FindAllStringSubmatch(string(text), -1) {
			commands.WriteString(m[1])
		}
		if commands.String() != "" {
			scripts[strings.TrimSuffix(filepath.Base(path), ".md")+".sh"] = commands.String()
		}
	}
	return jobs, scripts, nil
}

// writePages writes the examples of the pages into dir. Sections that a job file leaves out are those of quickstart's
// job.
func writePages(dir string) error {
	jobs, scripts, err := pageExamples()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	quickstart, err := examples.Get("digits-cnn")
	if err != nil {
		return err
	}
	sections := regexp.MustCompile(`(?m)^\w+:.*\n( .*\n)*`).FindAllString(quickstart.File, -1)
	for name, text := range jobs {
		text = "\n" + text
		for _, section := range sections {
			if key, _, _ := strings.Cut(section, ":"); !strings.Contains(text, "\n"+key+":") {
				text += section
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	for name, text := range scripts {
		text = strings.ReplaceAll(text, "127.0.0.1:7070", "127.0.0.1:"+port) // others may test here at the same time
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// freePort is a port that nobody listens at.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// Every job file of the pages is submitted, and every page's commands are run.
func TestScriptsOfPagesTakeEveryExample(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("testdata/guide.txtar")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadFile("testdata/pages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	tutorials, err := os.ReadFile("testdata/tutorials.txtar")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, tutorials...)
	jobs, scripts, err := pageExamples()
	if err != nil {
		t.Fatal(err)
	}
	var submitted strings.Builder
	submitted.WriteString(string(guide))
	for name, commands := range scripts {
		submitted.WriteString(commands)
		if !strings.Contains(string(pages), "exec sh -e "+name+"\n") {
			t.Errorf("neither testdata/tutorials.txtar nor pages.txtar runs %s", name)
		}
	}
	for name := range jobs {
		if !regexp.MustCompile(`submit ` + regexp.QuoteMeta(name) + `\s`).MatchString(submitted.String()) {
			t.Errorf("neither testdata/guide.txtar nor a page submits %s", name)
		}
	}
}
