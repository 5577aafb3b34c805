// The judge of exposition/, of Prometheus 2.42, which Debian 12 has: its parser, and what its storage refuses.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

var contentTypes = map[string]string{
	"text":        "text/plain; version=0.0.4; charset=utf-8",
	"openMetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
}

type page struct {
	Format string `json:"format"`
	Body   []byte `json:"body"`
}

type judgement struct {
	Why string `json:"why,omitempty"`
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	answers := json.NewEncoder(os.Stdout)
	for {
		var asked page
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		answer := judgement{}
		if err := judge(asked.Body, contentTypes[asked.Format]); err != nil {
			answer.Why = fmt.Sprintf("%q", err.Error())
		}
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func judge(page []byte, contentType string) error {
	parser, err := textparse.New(page, contentType)
	if err != nil {
		return err
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry == textparse.EntrySeries {
			var lset labels.Labels
			parser.Metric(&lset)
			// As where a target adds its labels: without those that are empty.
			lset = labels.NewBuilder(lset).Labels(labels.EmptyLabels())
			if !lset.Has(labels.MetricName) {
				return errors.New("no metric name")
			}
			if name, isTwice := lset.HasDuplicateLabelNames(); isTwice {
				return fmt.Errorf("label name %q is not unique", name)
			}
		}
	}
}
