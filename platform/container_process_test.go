package platform

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func serve(address string) {
	l, err := net.Listen("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		os.Exit(1)
	}
	var main string
	var held [][]byte
	reply := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
	http.HandleFunc("/init", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Value struct{ Main string } }
		json.NewDecoder(r.Body).Decode(&req)
		main = req.Value.Main
		switch main {
		case "init-exit":
			os.Exit(3)
		case "init-hang":
			time.Sleep(time.Hour)
		case "init-error":
			reply(w, 502, `{"error":"no such main"}`)
		default:
			if f := initBehaviours[main]; f != nil {
				status, answer := f()
				reply(w, status, answer)
				return
			}
			reply(w, 200, `{"ok":true}`)
		}
	})
	http.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Value map[string]any `json:"value"`
			ID    string         `json:"activation_id"`
		}
		raw, _ := io.ReadAll(r.Body)
		json.Unmarshal(raw, &req)
		defer func() {
			if main == "no-sentinel" {
				return
			}
			fmt.Println(sentinel)
			fmt.Fprintln(os.Stderr, sentinel)
		}()
		switch main {
		case "exit":
			os.Exit(1)
		case "hang":
			time.Sleep(time.Hour)
		case "sleep":
			if url, ok := req.Value["tell"].(string); ok { // that it runs, and in which process
				http.Get(url + "?pid=" + fmt.Sprint(os.Getpid())) //nolint:errcheck // the test fails for want of it
			}
			time.Sleep(time.Duration(req.Value["ms"].(float64)) * time.Millisecond)
			reply(w, 200, `{"slept":true}`)
		case "allocate":
			for range int(req.Value["mb"].(float64)) {
				b := make([]byte, 1<<20)
				for i := range b {
					b[i] = 1
				}
				held = append(held, b)
				time.Sleep(500 * time.Microsecond)
			}
			reply(w, 200, fmt.Sprintf(`{"held":%d}`, len(held)))
		case "app-error":
			reply(w, 200, `{"error":{"kind":"diverged"},"other":1}`)
		case "dev-error":
			reply(w, 500, `{"error":"broken"}`)
		case "text":
			reply(w, 200, `hello`)
		case "mirror": // what it is given, be it an array
			var given struct{ Value json.RawMessage }
			json.Unmarshal(raw, &given)
			reply(w, 200, string(given.Value))
		case "chunked":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			io.WriteString(w, `{}`)
		case "large":
			reply(w, 200, `{"x":"`+strings.Repeat("x", 2<<20)+`"}`)
		default:
			if f := behaviours[main]; f != nil {
				status, answer := f(req.Value)
				reply(w, status, answer)
				return
			}
			fmt.Println("hello from", os.Getpid())
			body, _ := json.Marshal(map[string]any{"pid": os.Getpid(), "got": req.Value, "env": os.Environ()})
			reply(w, 200, string(body))
		}
	})
	http.Serve(l, nil)
}
