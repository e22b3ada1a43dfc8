package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
)

// audited are the pages that Lighthouse judges, by the name of their figures.
func audited(ids []string) [][2]string {
	return [][2]string{
		{"home", "/ui/"},
		{"jobs", "/ui/jobs"},
		{"job", "/ui/jobs/" + ids[0]},
		{"compare", "/ui/compare?job=" + strings.Join(ids, "&job=")},
	}
}

// verdict is what of Lighthouse's report is read.
type verdict struct {
	At         string `json:"finalDisplayedUrl"` // differs from the asked address if that leads elsewhere
	Categories map[string]struct {
		Score  float64 `json:"score"`
		Audits []struct {
			ID     string  `json:"id"`
			Weight float64 `json:"weight"`
		} `json:"auditRefs"`
	} `json:"categories"`
	Audits map[string]struct {
		Score *float64 `json:"score"`
		Title string   `json:"title"`
	} `json:"audits"`
}

// lighthouse prints the least score of Lighthouse in each category over four pages, and what keeps a score below 100.
func lighthouse(ctx context.Context, t *tools) error {
	var ids []string
	return browse(ctx, t, func(records *history.Store) error {
		for i := range 3 {
			r := record(i, 30)
			ids = append(ids, string(r.ID))
			if err := records.Save(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}, func(s *server, _ *browser) error {
		cookie, err := s.signIn(ctx)
		if err != nil {
			return err
		}
		least := map[string]float64{}
		for _, page := range audited(ids) {
			found, err := audit(ctx, t, s.url+page[1], cookie.Name+"="+cookie.Value)
			if err != nil {
				return err
			}
			for name, category := range found.Categories {
				score, known := least[name]
				if !known || category.Score < score {
					least[name] = category.Score
				}
				for _, a := range category.Audits {
					if one := found.Audits[a.ID]; a.Weight > 0 && one.Score != nil && *one.Score < 0.9 {
						fmt.Fprintf(os.Stderr, "%s, %s: %s (%.2f)\n", page[0], name, one.Title, *one.Score)
					}
				}
			}
		}
		for _, name := range []string{"performance", "accessibility", "best-practices"} {
			rig.Figure("lighthouse_"+strings.ReplaceAll(name, "-", "_"), 100*least[name], "points")
		}
		return nil
	})
}

// mostTries bounds how often Lighthouse looks at a page: on a busy machine it sometimes misses the start of the page.
const mostTries = 3

// audit has Lighthouse judge a page as somebody sees it who has signed in, on a desk.
func audit(ctx context.Context, t *tools, address, cookie string) (out verdict, err error) {
	headers, err := json.Marshal(map[string]string{"Cookie": cookie})
	if err != nil {
		return out, err
	}
	path, err := exec.LookPath(t.chromium)
	if err != nil {
		return out, err
	}
	var text []byte
	for range mostTries {
		cmd := exec.CommandContext(ctx, "node", t.lighthouse, address, "--quiet", "--preset=desktop", "--output=json",
			"--only-categories=performance,accessibility,best-practices", "--extra-headers="+string(headers),
			"--chrome-flags=--headless=new --no-sandbox")
		cmd.Env = append(os.Environ(), "CHROME_PATH="+path)
		cmd.Stderr = os.Stderr
		if text, err = cmd.Output(); err != nil {
			continue
		}
		if err = json.Unmarshal(text, &out); err == nil && out.At != address {
			err = fmt.Errorf("it looked at %s", out.At) // such as the page to sign in
		}
		return out, err
	}
	return out, fmt.Errorf("lighthouse of %s: %w", address, err)
}
