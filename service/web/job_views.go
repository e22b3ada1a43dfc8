package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The browser keeps the chosen columns and the saved views in cookies, for a year.
const (
	columnsCookie = "disdel_columns"
	viewsCookie   = "disdel_views"
	keptFor       = 365 * 24 * 3600 // seconds

	mostViews     = 12
	mostViewsText = 3000 // bytes of a cookie

	viewsFull = "full" // of an address: the view was not kept
)

// readyViews are conditions that a click adds to the filter.
var readyViews = []struct{ name, condition string }{
	{"Running", "state:running"},
	{"Failed", "state:failed"},
	{"Did not learn", `verdict:"did not learn"`},
	{"Today", "created >= today"},
	{"Last 7 days", "created < 7d"},
	{"Last 30 days", "created < 30d"},
}

// keepChoices stores what an address asks the browser to keep: columns, or a view under a name. It returns the address
// without that, ok is false if there is nothing to keep.
func keepChoices(v *visit, q url.Values) (to string, ok bool) {
	save, forget := strings.TrimSpace(q.Get("save")), q.Get("forget")
	if !q.Has("keep") && save == "" && forget == "" {
		return "", false
	}
	rest := clone(q)
	for _, name := range []string{"keep", "save", "forget", "cols", "other"} {
		rest.Del(name)
	}
	if keys := columnKeys(strings.Join(append(q["cols"], q["other"]...), ",")); len(keys) > 0 {
		rest.Set("cols", strings.Join(keys, ","))
	}
	if q.Has("keep") {
		keepCookie(v, columnsCookie, rest.Get("cols"))
	}
	views := cookieViews(v.Request)
	if save != "" {
		rest.Del("limit")
		views.Set(cut(save), rest.Encode())
	}
	views.Del(forget)
	switch text := views.Encode(); {
	case save == "" && forget == "":
	case len(text) > mostViewsText || len(views) > mostViews:
		rest.Set(viewsFull, "1")
	default:
		keepCookie(v, viewsCookie, text)
	}
	return jobsAddress(rest), true
}

// keepCookie stores a text in the browser; an empty one removes it.
func keepCookie(v *visit, name, text string) {
	c := v.site.sessions.cookie(v.Request, url.QueryEscape(text), keptFor)
	if c.Name = name; text == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

func cookieText(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	text, _ := url.QueryUnescape(c.Value)
	return text
}

func cookieColumns(r *http.Request) []string { return columnKeys(cookieText(r, columnsCookie)) }

// cookieViews are the saved views: addresses by their names.
func cookieViews(r *http.Request) url.Values {
	views, err := url.ParseQuery(cookieText(r, viewsCookie))
	if err != nil {
		return url.Values{}
	}
	return views
}

// views lists the conditions that a click adds to the filter or removes, and the saved views.
func (l *jobList) views(v *visit, q url.Values, list []row) {
	l.Views = append(l.Views, choice{Name: "All", Link: jobsAddress(without(q, "q", "status")), Chosen: l.Query == ""})
	for _, ready := range readyViews {
		l.Views = append(l.Views, l.condition(q, ready.name, ready.condition))
	}
	tags := map[string]int{}
	for i := range list {
		for _, tag := range list[i].Tags {
			tags[tag]++
		}
	}
	names := slices.SortedFunc(maps.Keys(tags), func(a, b string) int {
		return cmp.Or(cmp.Compare(tags[b], tags[a]), strings.Compare(a, b))
	})
	for _, tag := range names[:min(len(names), mostViews)] {
		l.Views = append(l.Views, l.condition(q, "tag "+tag, "tag:"+tag))
	}
	saved := cookieViews(v.Request)
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		address, err := url.ParseQuery(saved.Get(name))
		if err != nil {
			continue
		}
		forget := clone(q)
		forget.Set("forget", name)
		l.Saved = append(l.Saved, choice{
			Name: name, Link: jobsAddress(address), Chosen: address.Encode() == q.Encode(), Remove: jobsAddress(forget),
		})
	}
}

// condition is a link that adds a condition to the filter, or removes it if the filter has it.
func (l *jobList) condition(q url.Values, name, condition string) choice {
	const and = " and "
	parts := strings.Split(l.Query, and)
	chosen := slices.Contains(parts, condition)
	switch {
	case chosen:
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == condition })
	case l.Query == "":
		parts = []string{condition}
	case strings.Contains(strings.ToLower(l.Query), " or "):
		parts = []string{"(" + l.Query + ")", condition}
	default:
		parts = append(parts, condition)
	}
	to := without(q, "status")
	if to.Set("q", strings.Join(parts, and)); len(parts) == 0 {
		to.Del("q")
	}
	return choice{Name: name, Link: jobsAddress(to), Chosen: chosen}
}

func without(q url.Values, names ...string) url.Values {
	out := clone(q)
	for _, name := range names {
		out.Del(name)
	}
	return out
}
