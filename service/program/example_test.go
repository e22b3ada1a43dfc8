package program_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/program"
)

// A program becomes the network of a job; the archive of its files goes into the models' store.
func ExampleDescribe() {
	python, archive, err := program.Describe(context.Background(), program.Options{
		Python: disdel.Python{File: "net.py", Entry: "Net"}, Dir: "/home/me/digits",
		Input: []int{1, 8, 8}, Classes: 10, Batches: []int{16, 64}, Loss: "crossEntropy",
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(python.Code, len(archive), python.Network.Python.Memory)
}

// A server installs what a client's program requires, from an index that its operator chose.
func ExamplePackages_Install() {
	name, err := program.Packages{
		Requirements: "einops >= 0.7\n", Index: "https://pypi.org/simple", Cache: "/var/lib/disdel/python/tenants/ann",
	}.Install(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("/var/lib/disdel/python/tenants/ann/environments/" + name + "/bin/python")
}

// A trained program writes its network; found and archive are those of Describe, weights are the trained ones.
func ExampleExportONNX() {
	var found disdel.CustomNetwork
	var archive, weights []byte
	var file bytes.Buffer
	if err := program.ExportONNX(context.Background(), &file, program.Options{}, found, archive, weights); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Len(), "bytes of ONNX")
}
