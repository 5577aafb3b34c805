// Says how Go's HTTP client, with which Prometheus scrapes, reads what a server answers.
//
// Stdin: a JSON array of base64 per line, what the server writes after each request before it closes its last
// connection. Stdout: a line of JSON for each, in their order.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
)

type verdict struct {
	// Of each request: where it was sent, and its target.
	Requests []string `json:"requests"`
	// 0: no answer that can be read.
	Status      int    `json:"status"`
	ContentType []byte `json:"contentType"`
	Body        []byte `json:"body"`
	// Why there is no answer, or no more of its body.
	Error string `json:"error"`
}

func judge(answers [][]byte) (v verdict) {
	next := 0
	serve := func(address string, conn net.Conn) {
		defer conn.Close()
		for reader := bufio.NewReader(conn); next < len(answers); {
			request, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			v.Requests = append(v.Requests, address+" "+request.RequestURI)
			next++
			if _, err := conn.Write(answers[next-1]); err != nil {
				return
			}
		}
	}
	transport := &http.Transport{
		// As common/config/http_config.go of Prometheus has it.
		DisableCompression: true,
		// What a server sends is the same over a pipe: no byte of it goes through the kernel.
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go serve(address, theirs)
			return ours, nil
		},
	}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("http://127.0.0.1:8000/metrics")
	if err != nil {
		v.Error = err.Error()
		return v
	}
	defer answer.Body.Close()
	v.Status, v.ContentType = answer.StatusCode, []byte(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK {
		return v
	}
	v.Body, err = io.ReadAll(answer.Body)
	if err != nil {
		v.Error = err.Error()
	}
	return v
}

func main() {
	// Of what came after an answer, which is in none of the verdicts.
	log.SetOutput(io.Discard)
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	waiting := make(chan chan verdict, 4*runtime.NumCPU())
	go func() {
		defer close(waiting)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var answers [][]byte
			if err := json.Unmarshal(line, &answers); err != nil {
				panic(err)
			}
			result := make(chan verdict, 1)
			waiting <- result
			go func() { result <- judge(answers) }()
		}
	}()
	encoder := json.NewEncoder(out)
	for result := range waiting {
		if err := encoder.Encode(<-result); err != nil {
			panic(err)
		}
	}
}
