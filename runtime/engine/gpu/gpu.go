// Package gpu is the engine for GPUs as a program has it, by the tag that it is built with: nvidia, by make cuda, for
// NVIDIA's GPUs; emulated, for tests, with devices that are the processor's; else none, and nothing of either.
//
// The tables of backends take it from here (package backends, and the action runtime of an image), and so does whoever
// asks which devices there are. It refuses nothing. Invariant: a program without a tag is pure Go.
package gpu

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/disdel/disdel"
)

// Device is a GPU that the program's engine sees.
type Device struct {
	Index      int          `json:"index"`
	ID         string       `json:"id,omitempty"` // as CUDA_VISIBLE_DEVICES may name it
	Name       string       `json:"name"`
	Memory     disdel.Bytes `json:"memory"`
	Capability string       `json:"capability"` // NVIDIA's compute capability: "8.0"
}

// MachineReport says which GPUs a machine has, whether this program has an engine for them, and what is missing.
// Missing is empty only if a job with resources.device: gpu can start on this machine.
type MachineReport struct {
	Engine  bool     `json:"engine"`            // of this program
	Driver  string   `json:"driver,omitempty"`  // its version; "" where there is none
	Library string   `json:"library,omitempty"` // libcuda.so.1
	Cards   []Card   `json:"cards"`             // as the driver lists them
	Devices []Device `json:"devices"`           // that the engine sees
	Missing []string `json:"missing"`           // what keeps jobs from a GPU here
	// what CUDA_VISIBLE_DEVICES leaves to programs; nil: it is not set, and leaves all
	Visible *string `json:"visible,omitempty"`
}

// Card is a GPU of the machine.
type Card struct {
	Model string `json:"model"`
	Bus   string `json:"bus"` // where it is plugged in
}

// MachineConfig says where Inspect looks, and what the program has.
type MachineConfig struct {
	Root      string                   // of the file system: "/"
	Libraries []string                 // folders that are looked through beside the usual ones
	Engine    bool                     // the program has one for GPUs
	Devices   func() ([]Device, error) // that it sees
	Visible   *string                  // CUDA_VISIBLE_DEVICES; nil: it is not set
}

// ThisMachine is the configuration of the machine that the program runs on.
func ThisMachine() MachineConfig {
	c := MachineConfig{
		Root: "/", Libraries: filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), Engine: Built,
		Devices: Devices,
	}
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		c.Visible = &list
	}
	return c
}

// folders are where distributions, containers and WSL have a driver's library.
var folders = []string{
	"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64",
	"usr/local/nvidia/lib", "usr/local/cuda/compat", "usr/lib/wsl/lib", "run/opengl-driver/lib",
}

// Inspect reads what NVIDIA's driver shows under /proc and /dev, so that it works in every program. Only a program with
// an engine for GPUs asks the devices themselves.
func Inspect(c MachineConfig) MachineReport {
	r := MachineReport{
		Engine: c.Engine, Cards: []Card{}, Devices: []Device{}, Missing: []string{}, Visible: c.Visible,
	}
	r.Driver = version(filepath.Join(c.Root, "proc/driver/nvidia/version"))
	r.Library = library(c)
	r.Cards = cards(filepath.Join(c.Root, "proc/driver/nvidia/gpus"))
	if r.Driver == "" && r.Library == "" {
		r.Missing = append(r.Missing,
			"NVIDIA's driver (in a container: the NVIDIA container runtime, and NVIDIA_VISIBLE_DEVICES)")
	} else if r.Library == "" {
		r.Missing = append(r.Missing,
			"libcuda.so.1, which comes with the driver (in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)")
	}
	if c.Visible != nil && strings.Trim(*c.Visible, " ,") == "" {
		r.Missing = append(r.Missing, "a device that CUDA_VISIBLE_DEVICES leaves: it is empty")
	}
	if !c.Engine {
		r.Missing = append(r.Missing, "an engine for GPUs in this program: make cuda builds one that has it")
		return r
	}
	found, err := c.Devices()
	if err != nil {
		r.Missing = append(r.Missing, err.Error())
	}
	r.Devices = append(r.Devices, found...)
	return r
}

var number = regexp.MustCompile(`\b\d{3,}\.\d+(\.\d+)?\b`)

// version is that of the driver's module.
func version(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return number.FindString(line)
}

func library(c MachineConfig) string {
	var places []string
	for _, f := range folders {
		places = append(places, filepath.Join(c.Root, f))
	}
	for _, folder := range append(places, c.Libraries...) {
		file := filepath.Join(folder, "libcuda.so.1")
		if _, err := os.Stat(file); folder != "" && err == nil {
			return file
		}
	}
	return ""
}

// cards are the machine's, by where they are plugged in.
func cards(folder string) []Card {
	out := []Card{}
	files, _ := filepath.Glob(filepath.Join(folder, "*", "information")) // the pattern is sound
	sort.Strings(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		card := Card{Bus: filepath.Base(filepath.Dir(file))}
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && key == "Model" {
				card.Model = strings.TrimSpace(value)
			}
		}
		out = append(out, card)
	}
	return out
}

// Print writes the report for people.
func (r MachineReport) Print(w io.Writer) {
	rows := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	engine := "none in this program"
	if r.Engine {
		engine = "cuda"
	}
	fmt.Fprintf(rows, "engine\t%s\n", engine)
	fmt.Fprintf(rows, "driver\t%s\n", cmp.Or(r.Driver, "none"))
	fmt.Fprintf(rows, "library\t%s\n", cmp.Or(r.Library, "none"))
	if len(r.Cards) == 0 {
		fmt.Fprintln(rows, "cards\tnone")
	}
	for _, c := range r.Cards {
		fmt.Fprintf(rows, "card\t%s at %s\n", cmp.Or(c.Model, "unknown"), c.Bus)
	}
	if r.Visible != nil {
		fmt.Fprintf(rows, "visible\tCUDA_VISIBLE_DEVICES=%s\n", *r.Visible)
	}
	for _, d := range r.Devices {
		fmt.Fprintf(rows, "device %d\t%s, %v, compute capability %s\n", d.Index, d.Name, d.Memory, d.Capability)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(rows, "missing\t%s\n", m)
	}
	_ = rows.Flush() // what w refuses, whoever made it hears of
	if len(r.Missing) == 0 {
		fmt.Fprintln(w, "jobs with resources.device: gpu can run here")
	}
}
