// A job with client_golang whose numbers need every format: a classic and a native histogram, exemplars,
// start times and a UTF-8 name. It serves them on JOB_PORT, or prints its own port; each line on its stdin is one
// more row; it ends with stdin, after a POST to JOB_SNAPSHOT_URL. With JOB_SERIES it is the job of series_job.py
// instead; with arguments that of push_job.py, which pushes protobuf.
package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/push"
)

func pushJob(url, run, final, ms string) {
	rows := prometheus.NewGauge(prometheus.GaugeOpts{Name: "job_rows", Help: "Rows that were written."})
	pusher := push.New(url, "go").Grouping("run", run).Collector(rows)
	var end float64
	var work int
	fmt.Sscan(final, &end)
	fmt.Sscan(ms, &work)
	for _, value := range []float64{1, end} {
		rows.Set(value)
		if err := pusher.Push(); err != nil {
			panic(err)
		}
		if value == 1 {
			time.Sleep(time.Duration(work) * time.Millisecond)
		}
	}
}

func main() {
	if len(os.Args) == 5 {
		pushJob(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
		return
	}
	registry := prometheus.NewRegistry()
	factory := promauto.With(registry)
	series, _ := strconv.Atoi(os.Getenv("JOB_SERIES"))
	if series > 0 {
		began := time.Now()
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "job_seconds", Help: "How long it runs."}, func() float64 {
			return time.Since(began).Seconds()
		})
		left := factory.NewGaugeVec(prometheus.GaugeOpts{Name: "job_rows", Help: "Rows that are left."}, []string{"kind", "part"})
		for index := range series {
			left.WithLabelValues(fmt.Sprintf("kind-%d", index%10), fmt.Sprintf("%06d", index)).Set(float64(index) / 3)
		}
	}
	rows := factory.NewCounter(prometheus.CounterOpts{Name: "rows_total", Help: "Rows that were written."})
	classic := factory.NewHistogram(prometheus.HistogramOpts{
		Name: "classic_seconds", Help: "How long a row took.", Buckets: []float64{0.1, 1, 10},
	})
	native := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "native_seconds", Help: "The same.", NativeHistogramBucketFactor: 1.1,
	}, []string{"kind"})
	odd := factory.NewGaugeVec(prometheus.GaugeOpts{Name: "rows.left 残り", Help: "A UTF-8 name."}, []string{"the.kind"})
	sizes := factory.NewSummary(prometheus.SummaryOpts{
		Name: "row_bytes", Help: "With a quantile.", Objectives: map[float64]float64{0.5: 0.05},
	})

	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("JOB_PORT"))
	if err != nil {
		panic(err)
	}
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics:                   true,
		EnableOpenMetricsTextCreatedSamples: true,
	}))
	go http.Serve(listener, nil)
	fmt.Printf("ready %d\n", listener.Addr().(*net.TCPAddr).Port)
	if series > 0 {
		select {}
	}

	lines := bufio.NewScanner(os.Stdin)
	for count := 1; lines.Scan(); count++ {
		trace := prometheus.Labels{"trace_id": fmt.Sprintf("%08x", count)}
		seconds := float64(count) / 3
		rows.(prometheus.ExemplarAdder).AddWithExemplar(1, trace)
		classic.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, trace)
		native.WithLabelValues("good").(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, trace)
		native.WithLabelValues("bad").Observe(-seconds)
		odd.WithLabelValues("even").Set(float64(100 - count))
		sizes.Observe(seconds * 1000)
		fmt.Printf("row %d\n", count)
	}
	if url := os.Getenv("JOB_SNAPSHOT_URL"); url != "" {
		if _, err := http.Post(url, "", nil); err != nil {
			panic(err)
		}
	}
}
