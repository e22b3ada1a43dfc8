package web

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// head is the head of a column: what a click on it sorts by.
type head struct {
	Name, Title string
	Link        string
	Sorted      string // ascending, descending or "" as aria-sort has it
	Class       string
}

// choice is a link or a field of a form, and whether it is chosen.
type choice struct {
	Name, Link string
	Chosen     bool
	Remove     string // address that removes it; "": it cannot be removed
}

// jobColumn is a column of the list: a field of filters, of the job file or a label.
type jobColumn struct {
	key, name string
	text      bool                          // its cells begin on the left
	cell      func(r *row) (string, string) // text and class of a cell; nil: the field's value
}

// jobColumns are the columns with a name of their own.
var jobColumns = []jobColumn{
	{"state", "Status", true, nil},
	{"network", "Network", true, nil},
	{"data", "Data", true, nil},
	{"created", "Created", false, func(r *row) (string, string) { return when(r.Created), "" }},
	{"finished", "Finished", false, func(r *row) (string, string) {
		at, ok := r.Facts.Number("finished")
		return textIf(ok, when(time.UnixMilli(int64(1000*at)))), ""
	}},
	{"time", "Time", false, func(r *row) (string, string) { return r.Took(), "" }},
	{"rounds", "Rounds", false, nil},
	{"loss", "Loss", false, func(r *row) (string, string) { return number(r.Loss), "" }},
	{"accuracy", "Accuracy", false, func(r *row) (string, string) { return textIf(r.Result != "-", r.Result), "" }},
	{"memory", "Memory", false, func(r *row) (string, string) {
		if r.Peak == 0 || r.JobResult.Limit == 0 {
			return textIf(r.Peak > 0, r.Peak.String()), ""
		}
		return fmt.Sprintf("%v of %v", r.Peak, r.JobResult.Limit), fmt.Sprintf("full%d", r.Tenth)
	}},
	{"cost", "Cost", false, func(r *row) (string, string) { return fmt.Sprintf("%.2f GB-s", r.CostGBs), "" }},
	{"workers", "Workers", false, nil},
	{"best", "Best accuracy", false, nil},
	{"trainLoss", "Train loss", false, nil},
	{"model", "Trained model", true, nil},
	{"tag", "Tags", true, func(r *row) (string, string) { return strings.Join(r.Tags, " "), "" }},
	{"tenant", "Tenant", true, nil},
	{"batch", "Batch", true, nil},
}

// usualColumns are the columns of a list that names none.
var usualColumns = []string{
	"state", "network", "data", "created", "time", "rounds", "loss", "accuracy", "memory", "cost",
}

// mostColumns bounds the columns of a list, and mostOffered those that differ and are offered.
const (
	mostColumns = 30
	mostOffered = 40
)

// columnOf is the column of a key, which may be any field.
func columnOf(key string) jobColumn {
	for _, c := range jobColumns {
		if c.key == key {
			return c
		}
	}
	return jobColumn{key: key, name: key[strings.LastIndexByte(key, '.')+1:], text: strings.HasPrefix(key, "label.")}
}

// shown is the text and the class of a row's cell.
func (c *jobColumn) shown(r *row) (text, class string) {
	if c.cell != nil {
		return c.cell(r)
	}
	if !c.text {
		if v, ok := r.Facts.Number(c.key); ok {
			return strconv.FormatFloat(v, 'g', 6, 64), ""
		}
	}
	return cut(r.text(c.key)), ""
}

func textIf(known bool, text string) string {
	if !known {
		return ""
	}
	return text
}

// otherOrders are keys of orders that earlier versions had.
var otherOrders = map[string]string{"status": "state"}

// sortRows sorts a list by a field; rows that are equal there stay in their order, and rows without a value are last.
func sortRows(list []row, field string, down bool) {
	if field = cmp.Or(otherOrders[field], field); field == "" {
		return
	}
	sign := 1
	if down {
		sign = -1
	}
	slices.SortStableFunc(list, func(a, b row) int {
		x, known := a.Facts.Number(field)
		y, too := b.Facts.Number(field)
		if known && too {
			return sign * cmp.Compare(x, y)
		}
		s, t := a.sortText(field), b.sortText(field)
		switch {
		case known || s != "" && t == "":
			return -1
		case too || s == "" && t != "":
			return 1
		}
		return sign * strings.Compare(s, t)
	})
}

func (r *row) sortText(field string) string {
	switch field {
	case "tag":
		return strings.Join(r.Tags, " ")
	case "state":
		return strconv.Itoa(int(r.Status))
	}
	return r.text(field)
}

// columns chooses the columns: those of the address, else those that the browser keeps, else the usual ones.
func (l *jobList) columns(v *visit, q url.Values, list []row) {
	keys := cookieColumns(v.Request)
	if q.Has("cols") {
		keys = columnKeys(q.Get("cols"))
	}
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		keys = usualColumns
	}
	l.Chosen = "usual"
	if !slices.Equal(keys, usualColumns) {
		l.Chosen = "own"
	}
	l.head(q, jobColumn{key: "name", name: "Job"}, "")
	results := make([]string, len(list))
	for i := range list {
		results[i] = list[i].Figure()
	}
	metric, results := metricColumn(results)
	for i := range list {
		list[i].Result = results[i]
	}
	var columns []jobColumn
	for i, key := range keys[:min(len(keys), mostColumns)] {
		c, phone := columnOf(key), ""
		if l.Chosen == "usual" && (key == "state" || key == "accuracy") || l.Chosen == "own" && i < 2 {
			phone = " p"
		}
		if c.text {
			phone += " l"
		}
		if key == "accuracy" {
			c.name = metric
		}
		l.head(q, c, strings.TrimSpace(phone))
		columns = append(columns, c)
	}
	for i, r := range list {
		l.Groups = append(l.Groups, group{Rows: l.row(&list[i], columns), Name: string(r.ID)})
	}
	l.offer(keys, list)
}

// metricColumn is disdel.MetricColumn with a head that begins with a capital letter.
func metricColumn(results []string) (head string, cells []string) {
	head, cells = disdel.MetricColumn(results)
	return strings.ToUpper(head[:1]) + head[1:], cells
}

// head adds the head of a column. A click sorts by it, largest first; another click reverses the order.
func (l *jobList) head(q url.Values, c jobColumn, class string) {
	to, h := clone(q), head{Name: c.name, Class: class}
	if strings.Contains(c.key, ".") {
		h.Title = c.key
	}
	to.Set("sort", c.key)
	to.Del("dir")
	if c.key == cmp.Or(otherOrders[l.Sort], l.Sort) {
		h.Sorted = "ascending"
		if q.Get("dir") != "up" {
			h.Sorted = "descending"
			to.Set("dir", "up")
		}
	}
	h.Link = jobsAddress(to)
	l.Columns = append(l.Columns, h)
}

// row renders a row. A list has many of them, which a template would take long for.
func (l *jobList) row(r *row, columns []jobColumn) template.HTML {
	var out strings.Builder
	put := func(parts ...string) {
		for i, part := range parts {
			if i%2 == 1 {
				part = template.HTMLEscapeString(part)
			}
			out.WriteString(part)
		}
	}
	id := string(r.ID)
	put("\n<tr data-key=\"", id, "\"><td><input type=\"checkbox\" name=\"job\" value=\"", id,
		"\" aria-label=\"Compare ", r.Name+" "+r.Short, "\"></td><th scope=\"row\"><a href=\"", jobAddress(r.ID), "\">",
		r.Name, "</a> <small>", strings.TrimSpace(r.Short+" "+r.Labels), "</small></th>")
	for i := range columns {
		text, class := columns[i].shown(r)
		put("<td class=\"", strings.TrimSpace(class+" "+l.Columns[i+1].Class), "\">")
		if columns[i].key == "state" {
			put("<span class=\"state ", r.Badge, "\">", r.StatusText(), "</span>")
		} else {
			put("", text)
		}
		put("</td>")
	}
	put("</tr>")
	return template.HTML(out.String()) //nolint:gosec // every second part is escaped
}

// offer offers columns: those with a name, those that are chosen, and fields that differ between the listed jobs.
func (l *jobList) offer(keys []string, list []row) {
	all := make([]string, 0, len(jobColumns)+mostOffered)
	for _, c := range jobColumns {
		all = append(all, c.key)
	}
	for _, key := range slices.Concat(keys, differing(list)) {
		if !slices.Contains(all, key) && len(all) < len(jobColumns)+mostOffered {
			all = append(all, key)
		}
	}
	for _, key := range all {
		name := columnOf(key).name
		if strings.Contains(key, ".") {
			name = key
		}
		l.Choices = append(l.Choices, choice{Name: name, Link: key, Chosen: slices.Contains(keys, key)})
	}
}

// mostScanned bounds the jobs whose job files are compared.
const mostScanned = 200

// notOfAChoice are fields that differ between jobs but that nobody chose.
var notOfAChoice = []string{"metadata.", "output.", "data.checksum"}

// differing are the fields of the job files that differ between jobs, and the labels.
func differing(list []row) []string {
	values, count, out := map[string]string{}, map[string]int{}, map[string]bool{}
	list = list[:min(len(list), mostScanned)]
	for i := range list {
		for path, value := range list[i].Facts.Settings {
			if key, ok := strings.CutPrefix(path, "metadata.labels."); ok {
				out["label."+key] = true
			}
			if slices.ContainsFunc(notOfAChoice, func(start string) bool { return strings.HasPrefix(path, start) }) {
				continue
			}
			if first, ok := values[path]; ok && first != value {
				out[path] = true
			}
			values[path] = value
			count[path]++
		}
	}
	for path, n := range count {
		if n < len(list) {
			out[path] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// groupings are the fields that the list offers to group by.
var groupings = []string{"network", "data", "tag", "state", "tenant", "batch"}

// group puts the rendered rows into groups of the same value, in the order in which the values first appear. A job is
// in the group of each of its tags.
func (l *jobList) group(by string, list []row) {
	rendered := l.Groups
	l.Groups, l.GroupBy, l.Shown, l.Totals = nil, by, len(list), totals(list)
	for _, key := range groupings {
		l.GroupOf = append(l.GroupOf, choice{Name: columnOf(key).name, Link: key, Chosen: key == by})
	}
	if by != "" && !slices.Contains(groupings, by) {
		l.GroupOf = append(l.GroupOf, choice{Name: by, Link: by, Chosen: true})
	}
	if by == "" {
		var all strings.Builder
		for _, one := range rendered {
			all.WriteString(string(one.Rows))
		}
		l.Groups = []group{{Rows: template.HTML(all.String())}} //nolint:gosec // of row, which escapes
		return
	}
	var names []string
	members := map[string][]row{}
	texts := map[string]*strings.Builder{}
	for i := range list {
		for _, name := range list[i].groups(by) {
			if texts[name] == nil {
				names, texts[name] = append(names, name), &strings.Builder{}
			}
			members[name] = append(members[name], list[i])
			texts[name].WriteString(string(rendered[i].Rows))
		}
	}
	for _, name := range names {
		rows := template.HTML(texts[name].String()) //nolint:gosec // of row, which escapes
		title := columnOf(by).name + ": " + cmp.Or(name, "none")
		l.Groups = append(l.Groups, group{Name: title, Totals: totals(members[name]), Rows: rows})
	}
}

func (r *row) groups(by string) []string {
	if by == "tag" && len(r.Tags) > 0 {
		return r.Tags
	}
	return []string{r.text(by)}
}

// totals says how many jobs there are, the best accuracy, and what they cost together.
func totals(list []row) string {
	cost, took, best := 0.0, disdel.Millis(0), -1.0
	for i := range list {
		cost, took = cost+list[i].CostGBs, took+list[i].Duration
		if v := list[i].Accuracy; v != nil {
			best = max(best, *v)
		}
	}
	parts := []string{strconv.Itoa(len(list)) + " jobs"}
	if len(list) == 1 {
		parts[0] = "1 job"
	}
	if best >= 0 {
		parts = append(parts, fmt.Sprintf("best accuracy %.4f", best))
	}
	if took > 0 {
		parts = append(parts, took.Text()+" in all")
	}
	return strings.Join(append(parts, fmt.Sprintf("%.2f GB-s", cost)), " · ")
}

// columnKeys reads the keys of columns with commas between.
func columnKeys(text string) (keys []string) {
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" && len(key) <= mostText && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
