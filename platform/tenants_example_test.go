package platform_test

import (
	"context"
	"fmt"
	"os"

	"github.com/disdel/disdel/platform"
)

// A tenant gets a namespace of her own, with fewer invocations than the platform's owner, and loses it again.
func ExamplePlatform_PutNamespace() {
	cfg := platform.DefaultConfig()
	cfg.Kinds = platform.DefaultKinds(os.Args[0])
	p, err := platform.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close(context.Background())
	alice, err := p.PutNamespace(platform.Namespace{Name: "alice", InvocationsPerMinute: 10}, false)
	fmt.Println(alice.Name, len(alice.Key) > 60, err)
	_, err = p.PutNamespace(platform.Namespace{Name: "alice"}, false)
	fmt.Println(err)
	for _, n := range p.Namespaces() {
		fmt.Println(n.Name, n.InvocationsPerMinute)
	}
	fmt.Println(p.RemoveNamespace("alice"))
	// Output:
	// alice true <nil>
	// change namespaces: the namespace alice exists already
	// guest 60
	// alice 10
	// <nil>
}

func ExampleParsePrewarm() {
	w, err := platform.ParsePrewarm("nodejs:20@256MB=2")
	fmt.Println(w.Kind, w.Memory, w.Count, err)
	_, err = platform.ParsePrewarm("nodejs:20")
	fmt.Println(err)
	// Output:
	// nodejs:20 256 MB 2 <nil>
	// prewarm: "nodejs:20" is not KIND@MEMORY=COUNT
}

// Actions of Node.js find no packages in a folder that npm put none into.
func ExampleAddNodeModules() {
	err := platform.AddNodeModules(platform.DefaultKinds(os.Args[0]), "/nowhere")
	fmt.Println(err != nil)
	// Output: true
}

// Where the machine has no Node.js, there is no catalog.
func ExamplePlatform_InstallCatalog() {
	cfg := platform.DefaultConfig()
	cfg.Kinds = map[string]platform.Kind{"disdel:1": {Command: []string{os.Args[0]}}}
	p, err := platform.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close(context.Background())
	fmt.Println(p.InstallCatalog())
	// Output: install the catalog: its actions need Node.js, which this machine does not have
}
