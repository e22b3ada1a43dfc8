package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/service/tenant"
)

// attack is a request of an attacker.
type attack struct {
	name, method, path string
	body               []byte
	media              string // content type of the body; "": none
}

// attacker sends attacks with one token.
type attacker struct {
	url, token string

	mu      sync.Mutex
	answers map[string]map[int]int // guarded by mu: attack, status, count
}

// start sends every attack from many goroutines until ctx ends. In the second half it also holds streams and unfinished
// uploads open. They come later, because they use up the tenant's share, so that the server refuses most other attacks.
func (a *attacker) start(ctx context.Context, done *sync.WaitGroup, role tenant.Role) {
	all := attackRequests(role)
	for i := range attackers {
		done.Go(func() {
			for n := i * len(all) / attackers; ctx.Err() == nil; n++ {
				r := all[n%len(all)]
				a.count(ctx, r.name, send(ctx, a.url, a.token, r))
			}
		})
	}
	stream := attack{name: "event stream", method: "GET", path: "/api/v1/jobs/@last/events"}
	unfinished := []string{"PUT /api/v1/weights/sha256:" + strings.Repeat("0", 64), "POST /api/v1/jobs"}
	if role == tenant.RoleAdmin {
		unfinished = append(unfinished, "PUT /api/v1/datasets/unfinished")
	}
	for i := range idleConns {
		done.Go(func() {
			for wait(ctx, attackFor/2); ctx.Err() == nil; {
				a.count(ctx, stream.name, send(ctx, a.url, a.token, stream))
				wait(ctx, time.Second)
			}
		})
		done.Go(func() {
			for wait(ctx, attackFor/2); ctx.Err() == nil; {
				a.count(ctx, "unfinished upload", unfinishedUpload(ctx, a.url, a.token, unfinished[i%len(unfinished)]))
				wait(ctx, time.Second)
			}
		})
	}
}

// count counts an answer. After a refusal for too many requests the attacker waits a little, so that the attacks that
// follow have room again.
func (a *attacker) count(ctx context.Context, name string, status int) {
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	if a.answers[name] == nil {
		a.answers[name] = map[int]int{}
	}
	a.answers[name][status]++
	a.mu.Unlock()
	if status == http.StatusTooManyRequests {
		wait(ctx, 50*time.Millisecond)
	}
}

// report prints how each attack was answered, and returns how many were sent.
func (a *attacker) report(role tenant.Role) (sent int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.answers)) {
		fmt.Fprintf(os.Stderr, "bench: %s: %s: %v\n", role, name, a.answers[name])
		for _, n := range a.answers[name] {
			sent += n
		}
	}
	return sent
}

// wait waits for a while, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// attackRequests are large requests of every kind that a token of a role may make. No route of the server runs
// conductors, so that none is among them.
func attackRequests(role tenant.Role) []attack {
	large := strings.Repeat("x", 7<<20)
	numbers := make([]int, 100)
	for i := range numbers {
		numbers[i] = i + 1
	}
	infer, sparseInfer := "/api/v1/models/tiny/infer?name=", "/api/v1/models/clicks/infer?name="
	wide := bytes.Repeat([]byte("1,"), 4_000_000)
	post := func(name, path string, file string, more map[string]any) attack {
		return attack{name: name, method: "POST", path: path, body: submissionOf(file, more)}
	}
	upload := func(name, path string, body []byte) attack {
		return attack{name: name, method: "POST", path: path, body: body}
	}
	get := func(name, path string) attack { return attack{name: name, method: "GET", path: path} }
	weights := safetensors(4 << 20)
	all := []attack{
		get("list of large records", "/api/v1/jobs?limit=1000"),
		get("list of large records", "/api/v1/history?limit=1000"),
		get("large record", "/api/v1/jobs/@last"),
		get("large report", "/api/v1/jobs/@last/report?format=html"),
		get("large logs", "/api/v1/jobs/@last/logs"),
		get("page of jobs", "/ui/jobs"),
		get("wait", "/api/v1/jobs/@last/wait?timeout=10s"),
		get("sample", "/api/v1/datasets/digits/sample?"+strings.Repeat("row=1&", 1000)),
		upload("wide CSV to infer", infer+"x.csv", wide),
		upload("wide CSV to infer, sparse", sparseInfer+"x.csv", wide),
		upload("wide libsvm to infer, sparse", sparseInfer+"x.libsvm", append([]byte("1"),
			bytes.Repeat([]byte(" 1:1"), 1_900_000)...)),
		upload("wide JSON to infer", infer+"x.json", append(append([]byte("["), wide[:7_800_000]...), "1]"...)),
		upload("rows of JSON to infer", infer+"x.json",
			append([]byte(`{"rows":[`), bytes.Repeat([]byte("{},"), 2_500_000)...)),
		upload("rows of JSON to infer, sparse", sparseInfer+"x.json",
			append(append([]byte(`{"rows":[`), bytes.Repeat([]byte(`{"1":1},`), 900_000)...), `{}]}`...)),
		upload("picture", infer+"x.png", largestPicture()),
		post("grid of estimates", "/api/v1/estimates", deep(), map[string]any{"questions": map[string]any{
			"grid": map[string]any{"workers": numbers[:10], "batchSizes": numbers[:11]},
		}}),
		post("grid of estimates, too large", "/api/v1/estimates", deep(), map[string]any{"questions": map[string]any{
			"grid": map[string]any{"workers": numbers[:10], "batchSizes": numbers},
		}}),
		post("deep YAML", "/api/v1/checks", strings.Repeat("a: [", 200_000), nil),
		post("aliases in YAML", "/api/v1/checks", bomb(), nil),
		post("100,000 sets", "/api/v1/checks", tiny, map[string]any{"sets": strings.Split(large[:100_000], "")}),
		post("200 sets over a deep network", "/api/v1/checks", deep(), map[string]any{
			"sets": slices.Repeat([]string{"training.epochs=2"}, 200),
		}),
		post("origin too large", "/api/v1/jobs", tiny, map[string]any{"origin": map[string]any{"sets": []string{large}}}),
		post("largest origin", "/api/v1/jobs", tiny, map[string]any{
			"origin": map[string]any{"command": "submit", "sets": largestSets()},
		}),
		post("deep network", "/api/v1/jobs", deep(), map[string]any{"priority": 1_000_000}),
		post("small job", "/api/v1/jobs", tiny, nil),
		post("small job", "/api/v1/jobs", tiny, nil),
		{"weights", "PUT", "/api/v1/weights/sha256:" + fmt.Sprintf("%x", sha256.Sum256(weights)), weights, ""},
		{"weights that lie", "PUT", "/api/v1/weights/sha256:" + strings.Repeat("0", 64), []byte(large), ""},
	}
	if role == tenant.RoleAdmin {
		all = append(all, dataAttacks()...)
	}
	return all
}

// dataAttacks are uploads of data sets.
func dataAttacks() []attack {
	rows := func(in dataset.DenseInput) []byte {
		var out bytes.Buffer
		if err := dataset.WriteDenseRows(&out, in); err != nil {
			panic(err) // of memory that is written to
		}
		return out.Bytes()
	}
	row := func(width, count int) func(func(dataset.DenseRow) error) error {
		return func(yield func(dataset.DenseRow) error) error {
			for i := range count {
				if err := yield(dataset.DenseRow{Values: make([]float32, width), Label: int32(i % 2)}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	columns := make([]dataset.Column, 60_000)
	for i := range columns {
		columns[i] = dataset.Column{Name: fmt.Sprintf("column %060d", i)}
	}
	wide := rows(dataset.DenseInput{
		Title: "wide", Shape: []int{1, 1, len(columns)}, Classes: 2, Columns: columns, Each: row(len(columns), 100),
	})
	long := rows(dataset.DenseInput{Title: "long", Shape: []int{1, 1, 3 << 20}, Classes: 2, Each: row(3<<20, 2)})
	images, imagesType := form(idx(1, 4096, 4096), idx(1))
	many, manyType := form(idx(100, 1000, 1000), idx(100))
	put := func(name string, body []byte, media string) attack {
		return attack{name, "PUT", "/api/v1/datasets/attack?overwrite=true", body, media}
	}
	return []attack{
		put("wide table", wide, dataset.RowsType), put("long rows", long, dataset.RowsType),
		put("one large IDX", images, imagesType), put("packed IDX", many, manyType),
	}
}

// idx is a packed IDX file of zeros.
func idx(sides ...int) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	size, head := 1, []byte{0, 0, 8, byte(len(sides))}
	for _, n := range sides {
		size *= n
		head = binary.BigEndian.AppendUint32(head, uint32(n))
	}
	z.Write(append(head, make([]byte, size)...)) //nolint:errcheck // memory takes all
	z.Close()                                    //nolint:errcheck // the same
	return out.Bytes()
}

// form is a data set of IDX files as a form, and its media type.
func form(images, labels []byte) (body []byte, media string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for name, data := range map[string][]byte{"images": images, "labels": labels} {
		part, err := w.CreateFormFile(name, name)
		if err != nil {
			panic(err) // of memory that is written to
		}
		part.Write(data) //nolint:errcheck // memory takes all
	}
	w.Close() //nolint:errcheck // the same
	return out.Bytes(), w.FormDataContentType()
}

// safetensors is a file of weights of so many bytes.
func safetensors(size int) []byte {
	head := fmt.Sprintf(`{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, size/4, size)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), make([]byte, size)...)
}

// deep is a job of a network of 900 layers.
func deep() string {
	return strings.Replace(tiny, "{flatten: {}}, ", "{flatten: {}}, "+strings.Repeat("{dense: {units: 10}}, ", 900), 1)
}

// bomb is YAML whose aliases stand for more and more.
func bomb() string {
	var out strings.Builder
	out.WriteString("a0: &a0 [x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&out, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), ", "))
	}
	return out.String()
}

// largestSets is the largest origin that a record may have. JSON writes each of its bytes as six.
func largestSets() []string { return slices.Repeat([]string{strings.Repeat("<>&", 1333)}, 16) }

// largestPicture is a small file of 2^24 pixels of 8 bytes each.
func largestPicture() []byte {
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewNRGBA64(image.Rect(0, 0, 1<<12, 1<<12))); err != nil {
		panic(err) // of memory that is written to
	}
	return out.Bytes()
}

// submissionOf is a submission of a job file with other fields beside it.
func submissionOf(file string, more map[string]any) []byte {
	doc := map[string]any{"file": file}
	maps.Copy(doc, more)
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err) // of strings and numbers
	}
	return text
}

// open makes a request; nil for no answer.
func open(ctx context.Context, url, token string, a attack) *http.Response {
	r, err := http.NewRequestWithContext(ctx, a.method, url+a.path, bytes.NewReader(a.body))
	if err != nil {
		return nil
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if a.media != "" {
		r.Header.Set("Content-Type", a.media)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	return res
}

// send makes a request, and returns the status of its whole answer; 0 for none.
func send(ctx context.Context, url, token string, a attack) int {
	res := open(ctx, url, token, a)
	if res == nil {
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0
	}
	return res.StatusCode
}

// answer makes a request, and returns its answer.
func answer(ctx context.Context, url, token string, a attack) (status int, body []byte) {
	res := open(ctx, url, token, a)
	if res == nil {
		return 0, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, body
}

// unfinishedUpload sends a part of a large body, and then nothing until the server or ctx ends it. It returns the
// status, 0 for none.
func unfinishedUpload(ctx context.Context, url, token, line string) int {
	var d net.Dialer
	host := strings.TrimPrefix(url, "http://")
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return 0
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 7000000\r\n\r\n",
		line, host, token)
	conn.Write(make([]byte, 1<<20)) //nolint:errcheck // the server may refuse it
	status := 0
	fmt.Fscanf(conn, "HTTP/1.1 %d", &status) //nolint:errcheck // 0 says so
	return status
}
