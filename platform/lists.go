package platform

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
)

// maxList is how many entries a list has at most; a limit of 0 asks for them.
const maxList = 200

// page is limit and skip of a list of a collection: 30 and 0 unless asked for.
func page(r *http.Request, collection string) (limit, skip int, err error) {
	if limit, err = number(r, "limit", 30, collection); err != nil {
		return 0, 0, err
	}
	if skip, err = number(r, "skip", 0, collection); err != nil {
		return 0, 0, err
	}
	if limit < 0 || limit > maxList {
		return 0, 0, problem{400, textQuery("limit", textLimitRange(limit, maxList, collection))}
	}
	if skip < 0 {
		return 0, 0, problem{400, textQuery("skip", textSkipRange(skip, collection))}
	}
	if limit == 0 {
		limit = maxList
	}
	return limit, skip, nil
}

func number(r *http.Request, name string, otherwise int, collection string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, problem{400, textQuery(name, textNotInteger(text, collection))}
	}
	return n, nil
}

func cut[T any](list []T, limit, skip int) []T {
	list = list[min(skip, len(list)):]
	return list[:min(limit, len(list))]
}

// entity is what lists sort by.
type entity interface {
	changed() int64
	path() string
}

// newestFirst sorts by the last change; entities of one millisecond by name, so that pages do not overlap.
func newestFirst[T entity](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(cmp.Compare(b.changed(), a.changed()), cmp.Compare(a.path(), b.path()))
	})
}

// listOf answers a list request: a count, or a page of what brief makes of the entities.
func listOf[T entity](r *http.Request, collection string, list []T, brief func(T) any) (int, any, error) {
	limit, skip, err := page(r, collection)
	if err != nil {
		return 0, nil, err
	}
	if flag(r, "count") {
		return 200, map[string]int{collection: max(0, len(list)-skip)}, nil
	}
	newestFirst(list)
	out := []any{}
	for _, v := range cut(list, limit, skip) {
		out = append(out, brief(v))
	}
	return 200, out, nil
}
