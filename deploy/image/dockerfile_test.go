package image

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The image for GPUs is run as the other: the same user, entry point and port; and it asks for the driver.
func TestTheDockerfileForGPUsIsRunAsTheOther(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plain, gpu := read("Dockerfile"), read("Dockerfile.gpu")
	_, last, _ := strings.Cut(plain, "FROM scratch\n")
	for line := range strings.Lines(last) {
		if strings.HasPrefix(line, "COPY --from=build /etc/ssl") {
			continue // the base has them
		}
		if !strings.Contains(gpu, line) {
			t.Errorf("the Dockerfile for GPUs lacks %q", line)
		}
	}
	for _, words := range []string{"NVIDIA_VISIBLE_DEVICES=all", "compute,utility", "-tags nvidia", "cuda-deps.sh"} {
		if !strings.Contains(gpu, words) {
			t.Errorf("the Dockerfile for GPUs lacks %q", words)
		}
	}
}

// What a container engine builds of the Dockerfile is what Build makes: tests run no engine, and compare
// lines. `make images` builds it. A folder that COPY makes is its owner's alone, so that /tmp is copied as a part of /.
func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "FROM scratch\n")
	lines := strings.Split(strings.ReplaceAll(last, " \\\n ", ""), "\n")
	config, err := plainImage.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	want := []string{
		"USER " + c.User, "ENV " + strings.Join(c.Env, " "), fmt.Sprintf("ENTRYPOINT [%q]", c.Entrypoint[0]),
		"COPY --from=build " + certificatesPath + " " + certificatesPath, "COPY --from=build /disdel-runtime " + programPath,
		"COPY --from=build /root-of-image/ /",
	}
	for port := range c.ExposedPorts {
		want = append(want, "EXPOSE "+strings.TrimSuffix(port, "/tcp"))
	}
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("the Dockerfile lacks %q", line)
		}
	}
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "LABEL ") })
	for label := range c.Labels {
		if !strings.Contains(label, "description") && (at < 0 || !strings.Contains(lines[at], label+"=")) {
			t.Errorf("the Dockerfile has no label %s", label)
		}
	}
	for _, build := range []string{"CGO_ENABLED=0", "-trimpath", `"-s -w -X main.release=$VERSION"`} {
		if !strings.Contains(string(text), build) {
			t.Errorf("the Dockerfile builds without %s", build)
		}
	}
}

// The image with Python is run as the other, and its build names files that the repository has. requirements.txt is the
// user's. Nobody here runs a container engine.
func TestTheDockerfileForPythonNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile.python")
	if err != nil {
		t.Fatal(err)
	}
	build, last, _ := strings.Cut(string(text), "FROM python:$PYTHON-slim-bookworm\n")
	config, err := plainImage.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"USER " + config.Config.User, fmt.Sprintf("ENTRYPOINT [%q]", config.Config.Entrypoint[0]), "EXPOSE 8080",
		"COPY --from=build /disdel-runtime " + programPath, pythonVariable + "=/usr/local/bin/python3",
	} {
		if !strings.Contains(last, line) {
			t.Errorf("the Dockerfile for Python lacks %q", line)
		}
	}
	if !strings.Contains(build, " -o /disdel-runtime ./cmd/disdel-runtime") {
		t.Error("the Dockerfile for Python does not build the runtime")
	}
	names := []string{"cmd/disdel-runtime"}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "COPY" && !strings.HasPrefix(words[1], "--") {
			names = append(names, words[1:len(words)-1]...)
		}
	}
	for _, name := range names {
		if _, err := os.Stat("../../" + name); err != nil && name != "requirements.txt" {
			t.Errorf("the Dockerfile for Python names %s: %v", name, err)
		}
	}
}
