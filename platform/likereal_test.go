package platform

import "testing"

// A sequence passes on what it is given and no parameters of its package, over which components have their own.
func TestASequenceHasNoParametersOfItsPackage(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/pkg", `{"parameters":[{"key":"q","value":"pkg"},{"key":"p","value":"pkg"}]}`)
	must(t, p, "PUT", "_/actions/pkg/first", code("told", `"parameters":[{"key":"q","value":"act"}]`))
	must(t, p, "PUT", "_/actions/pkg/all", `{"exec":{"kind":"sequence","components":["/_/pkg/first"]}}`)
	got := must(t, p, "POST", "_/actions/pkg/all?blocking=true&result=true", `{"x":1}`)
	if got.at("told.q") != "act" || got.at("told.p") != "pkg" || got.at("told.x") != 1.0 {
		t.Errorf("%s", got.body)
	}
}
