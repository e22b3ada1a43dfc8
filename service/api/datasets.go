package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/wire"
)

// What is shown of a data set at once: rows, and bytes of their values.
const (
	mostRows    = 1000
	mostSampled = 2 << 20
)

func listData(c *call) (int, any, error) {
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	return sendList(c, "datasets", store.All(c.Context()), func(m dataset.Manifest) any { return render.DescribeDataset(m) })
}

// addData adds a public data set by its name.
func addData(c *call) (int, any, error) {
	var in wire.Source
	if err := c.read(&in); err != nil {
		return 0, nil, err
	}
	m, err := c.Service.AddKnown(c.Context(), in.Source, in.Overwrite)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, render.DescribeDataset(m), nil
}

func showData(c *call) (int, any, error) {
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	m, err := store.Manifest(c.Context(), c.PathValue("name"))
	return http.StatusOK, render.DescribeDataset(m), err
}

// sampleData answers with held-out rows, as infer takes them.
func sampleData(c *call) (int, any, error) {
	v := c.URL.Query()
	var rows []int
	for _, text := range v["row"] {
		n, err := strconv.Atoi(text)
		if err != nil || len(rows) >= mostRows {
			return 0, nil, invalid(fmt.Sprintf("row is the number of a held-out row; at most %d at once", mostRows), err)
		}
		rows = append(rows, n)
	}
	if len(rows) == 0 {
		rows = []int{0}
	}
	seed, err := strconv.ParseInt(cmp.Or(v.Get("seed"), "1"), 10, 64)
	if err != nil {
		return 0, nil, invalid("seed is a number", err)
	}
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	m, err := store.Manifest(c.Context(), c.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	if size := disdel.Bytes(len(rows)) * m.SampleSize(); size > mostSampled && len(rows) > 1 {
		return 0, nil, invalid(fmt.Sprintf("%d rows of this data set are %v, and %v are the most at once", len(rows), size,
			disdel.Bytes(mostSampled)), nil)
	}
	doc, err := store.Sample(c.Context(), c.PathValue("name"), rows, seed)
	return http.StatusOK, doc, err
}

func removeData(c *call) (int, any, error) {
	removed, err := client.Local(c.Service).Data.Remove(c.Context(), c.PathValue("name"))
	return http.StatusOK, removed, err
}
