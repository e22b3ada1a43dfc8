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

// What a container engine builds of the Dockerfile is what Build makes: nobody here runs one, so lines are compared.
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
		"COPY --from=build /root-of-image/tmp /tmp",
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
