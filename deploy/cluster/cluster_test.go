// Package cluster checks the files that a cluster is set up with: that their keys are those of the charts, that they
// fit together, and that Redis takes its own.
package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
)

// documents is every document of a YAML file.
func documents(t *testing.T, name string) (out []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for {
		var doc map[string]any
		if err := loader.Load(&doc); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, doc)
	}
}

// leaves is every value below v, by its path.
func leaves(prefix string, v any, out map[string]any) map[string]any {
	tree, ok := v.(map[string]any)
	if !ok {
		out[prefix] = v
		return out
	}
	for key, below := range tree {
		leaves(strings.TrimPrefix(prefix+"."+key, "."), below, out)
	}
	return out
}

// The values are keys that the charts document.
func TestValuesAreKeysOfTheCharts(t *testing.T) {
	for file, list := range map[string]string{
		"openwhisk-values.yaml": "testdata/openwhisk-keys.txt", "couchdb-values.yaml": "testdata/couchdb-keys.txt",
	} {
		known, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for key := range leaves("", documents(t, file)[0], map[string]any{}) {
			if !slices.Contains(strings.Fields(string(known)), key) {
				t.Errorf("%s: the chart knows no %s", file, key)
			}
		}
	}
}

// No invoker's pool is smaller than the largest action, which would block it for ever.
func TestThePoolHoldsTheLargestAction(t *testing.T) {
	values := leaves("", documents(t, "openwhisk-values.yaml")[0], map[string]any{})
	megabytes := func(key string) int {
		n, err := strconv.Atoi(strings.TrimSuffix(fmt.Sprint(values[key]), "m"))
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return n
	}
	pool, most := megabytes("whisk.containerPool.userMemory"), megabytes("whisk.limits.actions.memory.max")
	if pool < most {
		t.Errorf("a pool of %d MB, actions of up to %d MB", pool, most)
	}
}

// The kind is the one that actions are of, and its image has a version.
func TestTheKindIsOurs(t *testing.T) {
	for _, name := range []string{"runtimes.json", "gpu/runtimes.json"} {
		t.Run(name, func(t *testing.T) { isOurKind(t, name) })
	}
}

func isOurKind(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Description []string
		Runtimes    map[string][]struct {
			Kind                         string
			Default, Deprecated          bool
			RequireMain, SentinelledLogs bool
			Image                        struct{ Prefix, Name, Tag string }
			Attached                     struct{ AttachmentName, AttachmentType string }
			StemCells                    []struct {
				InitialCount int
				Memory       string
			}
		}
		Blackboxes []any
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&manifest); err != nil {
		t.Fatal(err)
	}
	list := manifest.Runtimes["disdel"]
	if len(list) != 1 || list[0].Kind != disdel.RuntimeKind || list[0].Image.Tag == "" || list[0].Image.Tag == "latest" ||
		!list[0].SentinelledLogs {
		t.Errorf("%+v", list)
	}
}

// manifests are the files that kubectl applies.
func manifests(t *testing.T) (out map[string][]map[string]any) {
	t.Helper()
	out = map[string][]map[string]any{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, "-values.yaml") &&
			filepath.Base(path) != "kustomization.yaml" {
			out[path] = documents(t, path)
		}
		return err
	})
	if err != nil || len(out) < 5 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

// Kubernetes' own types take the manifests, and no others.
func TestManifestsAreKubernetes(t *testing.T) {
	program := os.Getenv("DISDEL_TEST_KUBECHECK")
	if program == "" {
		t.Skip("DISDEL_TEST_KUBECHECK is not set: scripts/test-deps.sh builds what it names, scripts/test.sh sets it")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%v: scripts/test-deps.sh builds it", err)
	}
	var names []string
	for name := range manifests(t) {
		names = append(names, name)
	}
	if out, err := exec.CommandContext(t.Context(), program, names...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	spoilt := filepath.Join(t.TempDir(), "spoilt.yaml")
	text := "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selectr: {a: b}}\n"
	if err := os.WriteFile(spoilt, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, spoilt).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "selectr") {
		t.Errorf("%v\n%s", err, out)
	}
}

// at is the value at a path of keys and numbers of items, nil where there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			tree, _ := v.(map[string]any)
			v = tree[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				return nil
			}
			v = list[s]
		}
	}
	return v
}

// What selects pods selects those that are there, images have versions, and containers are confined.
func TestManifestsFitTogether(t *testing.T) {
	pods := map[string]bool{"user-action-pod=true": true, "app=couchdb": true} // OpenWhisk's and the chart's
	all := manifests(t)
	for path, docs := range all {
		for _, doc := range docs {
			template := at(doc, "spec", "template")
			for key, value := range asTree(at(template, "metadata", "labels")) {
				pods[fmt.Sprintf("%s=%v", key, value)] = true
			}
			if list, ok := at(template, "spec", "containers").([]any); ok {
				confined(t, path, template, list)
			}
		}
	}
	for path, docs := range all {
		for _, doc := range docs {
			for key, labels := range leaves("", doc, map[string]any{}) {
				if !strings.Contains(key, "elector.") || strings.Contains(key, "nodeSelector") {
					continue
				}
				name := key[strings.LastIndex(key, ".")+1:]
				if _, after, ok := strings.Cut(key, "matchLabels."); ok {
					name = after
				}
				if !pods[fmt.Sprintf("%s=%v", name, labels)] {
					t.Errorf("%s: %s selects no pod: %v", path, key, labels)
				}
			}
		}
	}
}

func asTree(v any) map[string]any {
	tree, _ := v.(map[string]any)
	return tree
}

func confined(t *testing.T, path string, template any, containers []any) {
	t.Helper()
	if at(template, "spec", "securityContext", "runAsNonRoot") != true {
		t.Errorf("%s: pods may be root", path)
	}
	if got := at(template, "spec", "securityContext", "seccompProfile", "type"); got != "RuntimeDefault" {
		t.Errorf("%s: the seccomp profile of the pods is %v", path, got)
	}
	if at(template, "spec", "automountServiceAccountToken") != false {
		t.Errorf("%s: pods have the token of a service account", path)
	}
	for _, c := range containers {
		image := fmt.Sprint(at(c, "image"))
		if i := strings.LastIndex(image, ":"); i < 0 || image[i+1:] == "latest" {
			t.Errorf("%s: the image %s has no version", path, image)
		}
		if at(c, "securityContext", "readOnlyRootFilesystem") != true || at(c, "resources", "limits", "memory") == nil ||
			at(c, "securityContext", "allowPrivilegeEscalation") != false {
			t.Errorf("%s: %v is not confined", path, at(c, "name"))
		}
		capabilities := asTree(at(c, "securityContext", "capabilities"))
		if !reflect.DeepEqual(capabilities, map[string]any{"drop": []any{"ALL"}}) {
			t.Errorf("%s: %v has the capabilities %v", path, at(c, "name"), capabilities)
		}
		mounts := map[string]bool{}
		for _, v := range at(template, "spec", "volumes").([]any) {
			mounts[fmt.Sprint(at(v, "name"))] = true
		}
		for _, m := range at(c, "volumeMounts").([]any) {
			if !mounts[fmt.Sprint(at(m, "name"))] {
				t.Errorf("%s: there is no volume %v", path, at(m, "name"))
			}
		}
	}
}

// The flags and variables of disdel serve are those that the program has.
func TestServeIsCalledAsItIs(t *testing.T) {
	var reference strings.Builder
	for _, page := range []string{"cli.md", "cli-platforms.md"} {
		text, err := os.ReadFile("../../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		reference.WriteString(string(text))
	}
	container := at(documents(t, "serve.yaml")[0], "spec", "template", "spec", "containers", 0)
	words := []string{}
	for _, arg := range at(container, "args").([]any) {
		if word := fmt.Sprint(arg); strings.HasPrefix(word, "--") {
			words = append(words, word)
		}
	}
	for _, e := range at(container, "env").([]any) {
		words = append(words, fmt.Sprint(at(e, "name")))
	}
	for _, word := range words {
		if !strings.Contains(reference.String(), "`"+word+"`") {
			t.Errorf("disdel serve knows no %s", word)
		}
	}
	if n, _ := at(documents(t, "serve.yaml")[0], "spec", "replicas").(int); n != 2 {
		t.Errorf("%d replicas", n)
	}
}

// What is applied together is there.
func TestTheKustomizationIsWhole(t *testing.T) {
	doc := documents(t, "kustomization.yaml")[0]
	files := slices.Concat(doc["resources"].([]any), at(doc, "configMapGenerator", 0, "files").([]any))
	for _, name := range files {
		if _, err := os.Stat(fmt.Sprint(name)); err != nil {
			t.Error(err)
		}
	}
}

// users is users.acl with the passwords of a test, in a file.
func users(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	text = []byte(strings.NewReplacer(">SERVE-PASSWORD", ">served", ">PASSWORD", ">worked").Replace(string(text)))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The users of redis/users.acl may do what jobs need, under redis/redis.conf, and nothing else; a server's may make
// users for tenants.
func TestRedisTakesItsUsers(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	port := freePort(t)
	cmd := exec.Command(program, configuration(t, port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	open := func(user string) (*aggregator.Store, error) {
		return aggregator.Open(t.Context(), disdel.Store{URLs: []string{"redis://" + user + "@127.0.0.1:" + port + "/0"}})
	}
	var worker *aggregator.Store
	for range 3000 { // another process, on a machine that may be busy
		if worker, err = open("disdel:worked"); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	server, err := open("disdel-serve:served")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	job := disdel.JobID("job-00000000000000000000000001")
	for who, s := range map[string]*aggregator.Store{"disdel": worker, "disdel-serve": server} {
		if err := uses(t.Context(), s, job); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
	refusedTo(t, port, "disdel", "worked")
	refusedTo(t, port, "disdel-serve", "served")
	err = server.AddUser(t.Context(), "disdel-tenant-ann", "word", "disdel:tenant-ann")
	if err != nil {
		t.Errorf("disdel-serve: %v", err)
	}
	if err := worker.AddUser(t.Context(), "other", "word", "other"); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("disdel makes users: %v", err)
	}
	if c, err := server.Capacity(t.Context()); err != nil || !c[0].Known || c[0].Evicts() {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := open("default:any"); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("the default user is let in: %v", err)
	}
	if text, _ := os.ReadFile("redis/users.acl"); !strings.Contains(string(text), aggregator.ACL("disdel")+"\n") {
		t.Errorf("users.acl does not have the rule\n%s", aggregator.ACL("disdel"))
	}
}

// refusals are what nobody but an admin may do, on keys of jobs' prefix or others'.
var refusals = []string{
	"FLUSHALL", "KEYS *", "SCAN 0", "CONFIG GET maxmemory", "SHUTDOWN NOSAVE", "MONITOR", "CLIENT LIST",
	"ACL LIST", "ACL DELUSER disdel", "SET other 1", "GET other", "RENAME disdel:a other", "SUBSCRIBE disdel:a",
	`EVAL "return redis.call('GET','other')" 0`, "MODULE LIST", "REPLICAOF NO ONE", "SAVE",
}

// refusedTo has a user try what is refused, on a connection of his own.
func refusedTo(t *testing.T, port, user, password string) {
	t.Helper()
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	ask := func(command string) string {
		fmt.Fprintf(c, "%s\r\n", command)
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return strings.TrimSpace(line)
	}
	if got := ask("AUTH " + user + " " + password); got != "+OK" {
		t.Fatal(got)
	}
	if got := ask("SET disdel:a 1"); got != "+OK" {
		t.Errorf("%s may not do what jobs need: %s", user, got)
	}
	for _, command := range refusals {
		got := ask(command)
		if !strings.HasPrefix(got, "-NOPERM") && !strings.Contains(got, "can't access at least one of the keys") {
			t.Errorf("%s: %s: %s", user, command, got)
		}
	}
}

// uses does what actions do.
func uses(ctx context.Context, s *aggregator.Store, job disdel.JobID) error {
	w := disdel.Weights{{Name: "w", Shape: []int{2}, Data: []float32{1, 2}}}
	id := disdel.UpdateID{Job: job}
	_, _, err := s.Claim(ctx, disdel.UpdateID{Job: job, Member: 1}, "an activation", 1)
	_, beat := s.Heartbeat(ctx, job, disdel.Progress{Task: disdel.TaskTrain})
	push := s.PushUpdate(ctx, disdel.Update{ID: id, Samples: 1, Weights: w})
	_, fetch := s.FetchUpdate(ctx, id, w)
	_, sweep := s.Sweep(ctx, job)
	return errors.Join(err, beat, push, fetch, sweep)
}

// configuration is redis.conf for a server without TLS on a port of the test's, with its users.
func configuration(t *testing.T, port string) string {
	t.Helper()
	text, err := os.ReadFile("redis/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		switch name, _, _ := strings.Cut(line, " "); {
		case strings.HasPrefix(name, "tls-"):
		case name == "port":
			out.WriteString("port " + port + "\nbind 127.0.0.1\n")
		case name == "aclfile":
			out.WriteString("aclfile " + users(t) + "\n")
		default:
			out.WriteString(line)
		}
	}
	file := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// The history's user is the database's admin, and no server's.
func TestTheHistorysUserIsNoServersAdmin(t *testing.T) {
	var security struct {
		Admins, Members struct{ Names, Roles []string }
	}
	var user struct {
		Name  string
		Roles []string
	}
	for file, into := range map[string]any{"couchdb/security.json": &security, "couchdb/user.json": &user} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(security.Admins.Names, user.Name) || !slices.Contains(security.Members.Names, user.Name) ||
		len(user.Roles) > 0 {
		t.Errorf("%+v %+v", security, user)
	}
}
