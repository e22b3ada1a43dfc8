package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/disdel/disdel/internal/test/faults"
	"github.com/disdel/disdel/platform/local"
)

// On servers of their own, each with TLS or a password or both, everything of a guide's first day works: a context,
// the doctor, the package and an action of it by wsk, a job, and the verification.
func TestEverythingAsOnACluster(t *testing.T) {
	t.Parallel()
	d := build(t)
	redis, authority := secureRedis(t)
	history := lockedHistory(t)
	bucket := []string{"AWS_ACCESS_KEY_ID=" + bucketKey, "AWS_SECRET_ACCESS_KEY=bucket-secret"}
	d.env = bucket
	storage := lockedBucket(t)
	cluster := *d
	cluster.home = filepath.Join(t.TempDir(), "cluster")
	_, at := cluster.up("--concurrent", "8", "--pool-memory", "1GB", "--action-env", "AWS_ACCESS_KEY_ID", "--action-env",
		"AWS_SECRET_ACCESS_KEY")
	d.env = append(bucket, "DISDEL_REDIS_PASSWORD=served", "DISDEL_COUCHDB_PASSWORD=written")
	out := succeed(d, "context", "import-wskprops", "prod", "--file", local.PropertiesFile(cluster.home),
		"--redis", redis, "--redis-ca", authority, "--couchdb", history, "--storage", storage)
	d.env = bucket
	key := local.ReadProperties(local.PropertiesFile(cluster.home))["AUTH"]
	for _, secret := range []string{"served", "written", key} {
		if strings.Contains(out, secret) {
			t.Errorf("a secret is shown:\n%s", out)
		}
	}
	succeed(d, "context", "use", "prod")

	var examined struct {
		Findings []struct{ Check, State, Found string }
	}
	read(t, succeed(d, "doctor", "-o", "json", "--settle", "10s"), &examined)
	if len(examined.Findings) != 14 {
		t.Errorf("%+v", examined)
	}
	for _, f := range examined.Findings {
		if f.State != "ok" {
			t.Errorf("%+v", f)
		}
	}
	_, told, _ := d.run("deploy", "up")
	if !strings.Contains(told, "in context prod") || !strings.Contains(told, "5 created") {
		t.Errorf("%s", told)
	}
	if _, told, _ = d.run("deploy", "up"); !strings.Contains(told, "is up to date with the manifest") {
		t.Errorf("%s", told)
	}
	invokeTrain(t, d, at.Address, redis, authority, storage)
	job := parse(t, succeed(d, "quickstart", "-o", "json", "--set", "training.epochs=2"))
	if job.Status != "succeeded" {
		t.Errorf("%+v", job)
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte(clusterJob), 0o600); err != nil {
		t.Fatal(err)
	}
	if job = parse(t, succeed(d, "submit", file, "-o", "json")); job.Status != "succeeded" {
		t.Errorf("%+v", job)
	}
	var verified struct {
		Grade string
		Cases []struct{ Name, State, Detail string }
	}
	read(t, succeed(d, "verify", "-o", "json"), &verified)
	if verified.Grade != "full" || len(verified.Cases) != 8 {
		t.Errorf("%+v", verified)
	}
	for _, c := range verified.Cases {
		if c.State != "passed" {
			t.Errorf("%+v", c)
		}
	}
	succeed(d, "deploy", "down")
}

const clusterJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: on-a-cluster}
model: {name: digits-cnn}
data: {source: "dataset://digits", split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 1, batchSize: 64, optimizer: {adam: {learningRate: 0.002}}}
distribution: {workers: 2, sync: epoch}
`

func succeed(d *tool, args ...string) string {
	d.t.Helper()
	out, errs, code := d.run(args...)
	if code != 0 {
		d.t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// invokeTrain has wsk list the package's actions and invoke the one that trains.
func invokeTrain(t *testing.T, d *tool, host, redis, authority, storage string) {
	t.Helper()
	wsk := os.Getenv("DISDEL_TEST_WSK")
	if wsk == "" {
		t.Log("DISDEL_TEST_WSK is not set: wsk is left out")
		return
	}
	succeed(d, "dataset", "add", "digits")
	var data struct{ Checksum string }
	read(t, succeed(d, "dataset", "show", "digits", "-o", "json"), &data)
	ca, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	request, _ := json.Marshal(map[string]any{
		"job": "job-00000000000000000000000001", "attempt": 1, "epochs": 1, "jobEpochs": 1, "batchSize": 32,
		"network": map[string]any{
			"name": "digits-cnn", "input": []int{1, 8, 8}, "classes": 10, "init": map[string]any{"seed": 1, "scheme": "glorot"},
		},
		"data": map[string]any{
			"url": storage + "&prefix=datasets/", "name": "digits", "checksum": data.Checksum,
			"split": map[string]any{"train": 0.8, "validation": 0.2, "seed": 1},
		},
		"shard":     map[string]int{"start": 0, "end": 320},
		"optimizer": map[string]any{"sgd": map[string]any{"learningRate": 0.1}},
		"loss":      "crossEntropy", "limitBytes": 512 << 20,
		"store": map[string]any{
			"url": strings.Replace(redis, "disdel-serve@", "disdel:worked@", 1), "prefix": "disdel", "ca": string(ca),
		},
	})
	file := filepath.Join(t.TempDir(), "train.json")
	if err := os.WriteFile(file, request, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.Command(wsk, args...)
		cmd.Env = append(os.Environ(), "WSK_CONFIG_FILE="+filepath.Join(filepath.Dir(file), "none"), "__OW_API_HOST="+host)
		properties := fmt.Sprintf("APIHOST=%s\nAUTH=%s\n", host, keyOf(t, d))
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "none"), []byte(properties), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("wsk %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if list := run("action", "list"); strings.Count(list, "/disdel/") != 4 {
		t.Errorf("%s", list)
	}
	var trained struct{ Samples, Epochs int }
	read(t, run("action", "invoke", "disdel/train", "-P", file, "--result"), &trained)
	if trained.Samples != 320 || trained.Epochs != 1 {
		t.Errorf("%+v", trained)
	}
}

// keyOf is the key of the context prod.
func keyOf(t *testing.T, d *tool) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.home, "contexts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		Contexts []struct{ Cluster struct{ Key string } }
	}
	read(t, string(text), &known)
	return known.Contexts[0].Cluster.Key
}

// secureRedis is a redis-server that speaks TLS alone, with the users of deploy/cluster, and its authority's file.
func secureRedis(t *testing.T) (address, authority string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	folder, port := t.TempDir(), unusedPort(t)
	certify(t, folder)
	acl, err := os.ReadFile("../../deploy/cluster/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile("../../deploy/cluster/redis/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer(">SERVE-PASSWORD", ">served", ">PASSWORD", ">worked", "/tls/", folder+"/",
		"/etc/redis/", folder+"/",
		"tls-port 6379", "tls-port "+port+"\nbind 127.0.0.1")
	for name, text := range map[string][]byte{"users.acl": acl, "redis.conf": conf} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(replace.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	background(t, folder, program, "redis.conf")
	awaitPort(t, port)
	return "rediss://disdel-serve@127.0.0.1:" + port + "/0", filepath.Join(folder, "ca.crt")
}

// lockedHistory is a pouchdb-server that lets nobody write but an admin.
func lockedHistory(t *testing.T) (address string) {
	t.Helper()
	program := os.Getenv("DISDEL_TEST_POUCHDB")
	if program == "" {
		program, _ = filepath.Abs("../../.cache/npm/node_modules/.bin/pouchdb-server")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("pouchdb-server is not installed; scripts/test-deps.sh installs it")
	}
	folder, port := t.TempDir(), unusedPort(t)
	admins := []byte(`{"admins": {"disdel": "written"}}`)
	if err := os.WriteFile(filepath.Join(folder, "config.json"), admins, 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, folder, program, "--port", port, "--host", "127.0.0.1", "--in-memory", "--no-stdout-logs",
		"--config", "config.json")
	awaitPort(t, port)
	return "http://disdel@127.0.0.1:" + port
}

const bucketKey = "bucket-key"

// lockedBucket is an S3 server that refuses requests that are not signed with the test's key.
func lockedBucket(t *testing.T) (address string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("training"); err != nil {
		t.Fatal(err)
	}
	inner := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+bucketKey+"/") {
			http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return "s3://training?region=x&use_path_style=true&response_checksum_validation=when_required&endpoint=" + server.URL
}

// background runs a program until the test ends.
func background(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

func unusedPort(t *testing.T) string {
	t.Helper()
	port, err := faults.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// awaitPort waits until another process listens.
func awaitPort(t *testing.T, port string) {
	t.Helper()
	for range 1200 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nothing listens on port %s", port)
}

// certify writes ca.crt, tls.crt and tls.key for 127.0.0.1 into a folder.
func certify(t *testing.T, folder string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, data []byte) {
		must(os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
	}
	made := func(name string, sign bool) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		c := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: sign,
		}
		if sign {
			c.KeyUsage = x509.KeyUsageCertSign
		} else {
			c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		}
		return c, key
	}
	root, rootKey := made("test authority", true)
	der, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	must(err)
	write("ca.crt", "CERTIFICATE", der)
	leaf, leafKey := made("redis", false)
	der, err = x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	must(err)
	write("tls.crt", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(leafKey)
	must(err)
	write("tls.key", "EC PRIVATE KEY", der)
}
