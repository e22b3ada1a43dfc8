package clients

import "testing"

// The command line, over every verb it has.
func TestWsk(t *testing.T) {
	wsk := tool(t, "DISDEL_TEST_WSK")
	p := start(t)
	home, env := environment(t, p, wsk)
	golden(t, "wsk", runScript(t, "testdata/wsk.script", home, env))
	if rest := left(t, p); len(rest) > 0 {
		t.Errorf("the script leaves %v", rest)
	}
}

// wskdeploy deploys and undeploys a manifest; wsk looks at what is there between the two.
func TestWskdeploy(t *testing.T) {
	wskdeploy := tool(t, "DISDEL_TEST_WSKDEPLOY")
	wsk := tool(t, "DISDEL_TEST_WSK")
	p := start(t)
	home, env := environment(t, p, wsk, wskdeploy)
	golden(t, "wskdeploy", runScript(t, "testdata/wskdeploy.script", home, env))
	if rest := left(t, p); len(rest) > 0 {
		t.Errorf("undeployed, yet there are %v", rest)
	}
}
