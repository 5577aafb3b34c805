// Says of each page whether Prometheus takes it: its parser, and what its scrape loop and its storage
// refuse of what that returns (scrape/scrape.go, append; tsdb/head_append.go, getOrCreate).
//
// A line of JSON for each page: {"format": …, "body": base64}; a line for each answer: {"samples": how many},
// or {"why": why the page is refused}.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

var contentTypes = map[string]string{
	"text":        "text/plain; version=1.0.0; charset=utf-8",
	"openMetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
	"protobuf":    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
}

type page struct {
	Format string `json:"format"`
	Body   []byte `json:"body"`
}

type judgement struct {
	Samples int    `json:"samples"`
	Why     string `json:"why,omitempty"`
}

func main() {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for {
		var asked page
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		count, err := judge(asked.Body, contentTypes[asked.Format])
		answer := judgement{Samples: count}
		if err != nil {
			answer.Why = fmt.Sprintf("%q", err.Error())
		}
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func judge(page []byte, contentType string) (count int, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	if len(page) == 0 {
		return 0, nil
	}
	parser, err := textparse.New(page, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return 0, err
	}
	var lset labels.Labels
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
		if entry != textparse.EntrySeries && entry != textparse.EntryHistogram {
			continue
		}
		count++
		if entry == textparse.EntryHistogram {
			parser.Histogram()
		}
		parser.Labels(&lset)
		// As where a target adds its labels: without those that are empty.
		lset = labels.NewBuilder(lset).Labels()
		if !lset.Has(model.MetricNameLabel) {
			return 0, errors.New("no metric name")
		}
		if !lset.IsValid(model.UTF8Validation) {
			return 0, fmt.Errorf("invalid metric name or label names: %s", lset)
		}
		if name, isTwice := lset.HasDuplicateLabelNames(); isTwice {
			return 0, fmt.Errorf("label name %q is not unique", name)
		}
	}
}
